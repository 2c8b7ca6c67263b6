"""People log in with an e-mail address, and their keys are UUIDs."""

from __future__ import annotations

from tests.settings import *

INSTALLED_APPS = [*INSTALLED_APPS, "tests.sites.accounts"]
AUTH_USER_MODEL = "accounts.Account"
