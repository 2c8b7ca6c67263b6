"""A site of packages that keep what opens accounts: second factors, tokens, settings."""

from __future__ import annotations

import warnings

from tests.settings import *

with warnings.catch_warnings():
    # social_django imports it, which it warns of.
    warnings.simplefilter("ignore", DeprecationWarning)
    import defusedxml.cElementTree  # noqa: F401

INSTALLED_APPS = [
    *INSTALLED_APPS,
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "constance",
    "django_otp",
    "django_otp.plugins.otp_static",
    "django_otp.plugins.otp_totp",
    "knox",
    "rest_framework",
    "rest_framework.authtoken",
    "rest_framework_api_key",
    "reversion",
    "social_django",
    "tests.sites.vault",
]
MIDDLEWARE = [*MIDDLEWARE, "allauth.account.middleware.AccountMiddleware"]
CONSTANCE_CONFIG = {"MAIL_LOGIN": ("", "How the site opens its mailbox.")}
CONSTANCE_BACKEND = "constance.backends.database.DatabaseBackend"
