"""A site whose forms have rows within rows, by django-nested-admin."""

from __future__ import annotations

from tests.settings import *

INSTALLED_APPS = [*INSTALLED_APPS, "nested_admin", "tests.sites.kitchen"]
