"""A site of fields and models of other people's packages: blocks, money, countries, trees."""

from __future__ import annotations

from tests.settings import *

INSTALLED_APPS = [
    *INSTALLED_APPS,
    "django_countries",
    "djmoney",
    "polymorphic",
    "taggit",
    "treebeard",
    "wagtail",
    "wagtail.admin",
    "tests.sites.bakery",
]
WAGTAILADMIN_BASE_URL = "http://testserver"
CURRENCIES = ("EUR", "USD")
#: Their tables are made at once, and not in a hundred steps.
MIGRATION_MODULES = {"wagtail": None, "wagtailadmin": None}
