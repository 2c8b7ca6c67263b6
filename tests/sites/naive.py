"""Times without a zone, in a country whose clocks go back: an hour that exists twice."""

from __future__ import annotations

from tests.settings import *

USE_TZ = False
TIME_ZONE = "Europe/Paris"
