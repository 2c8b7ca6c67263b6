"""Of the tests here only those of the site whose settings are in force are collected."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

_, _, site = settings.SETTINGS_MODULE.rpartition("tests.sites.")
collect_ignore = [
    path.name for path in Path(__file__).parent.glob("test_*.py") if path.name != f"test_{site}.py"
]
