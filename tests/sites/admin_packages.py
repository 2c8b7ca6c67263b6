"""A site whose admin is drawn, sorted, nested and translated by packages, with a tree in it."""

from __future__ import annotations

from tests.settings import *

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "modeltranslation",
    *(name for name in INSTALLED_APPS if name != "jazzmin"),
    "adminsortable2",
    "mptt",
    "parler",
    "solo",
    "tests.sites.festival",
    "tests.sites.kitchen",
]
MIDDLEWARE = [*MIDDLEWARE, "django.middleware.locale.LocaleMiddleware"]
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "German")]
PARLER_LANGUAGES = {None: [{"code": "en"}, {"code": "de"}], "default": {"fallbacks": ["en"]}}
