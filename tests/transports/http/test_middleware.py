"""Which classes run around a call."""

from __future__ import annotations

import pytest
from django.conf import settings as django_settings

from mcp_django.transports.http.middleware import chosen, loaded

HERE = "tests.transports.middlewares"


@pytest.fixture
def choose(settings):
    def set_both(choice, *names):
        paths = [f"{HERE}.{name}" for name in names]
        settings.MIDDLEWARE = [*settings.MIDDLEWARE, *paths]
        settings.MCP_DJANGO = {**settings.MCP_DJANGO, "RUN_MIDDLEWARE": choice}

    return set_both


def test_a_site_with_djangos_browser_classes_alone_has_no_chain_at_all():
    assert chosen() == []
    assert loaded.chain() is None
    assert loaded.is_known_to_be_empty


@pytest.mark.parametrize(
    ("choice", "paths"),
    [
        # Subclasses of browser classes are browser classes.
        ("auto", [f"{HERE}.function", "django.middleware.locale.LocaleMiddleware"]),
        ("none", []),
        ([f"{HERE}.both"], [f"{HERE}.both"]),
    ],
)
def test_a_setting_says_which_classes_run(choose, settings, choice, paths):
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.middleware.locale.LocaleMiddleware"]
    choose(choice, "OwnSessions", "OwnCsrf", "OwnUsers", "function")

    assert sorted(chosen(), reverse=True) == paths


def test_project_runs_the_whole_setting(choose):
    choose("project", "function")

    assert chosen() == django_settings.MIDDLEWARE


def test_the_chain_is_loaded_once_and_again_when_a_setting_changes(choose):
    choose([f"{HERE}.both"])
    assert not loaded.is_known_to_be_empty
    first = loaded.chain()

    assert loaded.chain() is first
    assert not loaded.is_known_to_be_empty
    choose([f"{HERE}.function"])
    assert loaded.chain() is not first
