"""The whole site lives below a path."""

from __future__ import annotations

from tests.settings import *

FORCE_SCRIPT_NAME = "/back/office"
