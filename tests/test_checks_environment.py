from __future__ import annotations

from ast import literal_eval

import pytest
from django.core.management import call_command
from django.db import connection, connections

from mcp_django.checks_environment import (
    check_databases,
    check_middleware,
    check_store,
    check_time_zones,
)

GOOD = {
    "transaction_mode": "IMMEDIATE",
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    "timeout": 20,
}


@pytest.fixture
def configure(monkeypatch):
    """A site with one SQLite database of these settings."""

    def set_database(**database):
        settings = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:", **database}
        fresh = type(connections)({"default": settings})
        monkeypatch.setattr("mcp_django.checks_environment.connections", fresh)

    return set_database


def ids(messages):
    return [one.id for one in messages]


def test_a_database_that_is_set_up_well_gives_no_message(configure):
    configure(OPTIONS=GOOD, CONN_MAX_AGE=60)

    assert list(check_databases()) == []


@pytest.mark.parametrize("left_out", list(GOOD))
def test_the_hint_for_a_missing_option_of_sqlite_mends_it(configure, left_out):
    configure(OPTIONS={name: GOOD[name] for name in GOOD if name != left_out}, CONN_MAX_AGE=60)

    (warning,) = list(check_databases())

    assert warning.id == "mcp_django.W003"
    _, _, options = warning.hint.partition(" = ")
    configure(OPTIONS=literal_eval(options), CONN_MAX_AGE=60)
    assert list(check_databases()) == []


def test_connections_that_are_not_kept_are_told_unless_there_is_a_pool(configure):
    configure(OPTIONS=GOOD, CONN_MAX_AGE=0)
    without = ids(check_databases())
    configure(OPTIONS={**GOOD, "pool": True}, CONN_MAX_AGE=0)

    assert without == ["mcp_django.W004"]
    assert list(check_databases()) == []


def test_no_message_where_only_browser_middleware_is_configured():
    assert list(check_middleware()) == []


def test_what_runs_round_a_call_is_listed(settings):
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.middleware.locale.LocaleMiddleware"]

    (message,) = list(check_middleware())

    assert message.id == "mcp_django.I001"
    assert "LocaleMiddleware" in message.msg
    assert "Csrf" not in message.msg


@pytest.mark.parametrize("choice", ["always", "Auto", ["nowhere.Middleware"]])
def test_a_choice_that_cannot_run_is_an_error(settings, choice):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "RUN_MIDDLEWARE": choice}

    assert ids(check_middleware()) == ["mcp_django.E006"]


def test_middleware_that_does_not_import_is_an_error_and_no_crash(settings):
    settings.MIDDLEWARE = ["nowhere.Middleware"]

    assert ids(check_middleware()) == ["mcp_django.E006"]


@pytest.mark.django_db
def test_the_checks_run_with_all_others():
    call_command("check", fail_level="WARNING", verbosity=0)


@pytest.mark.django_db
def test_a_database_that_cannot_tell_the_months_of_the_site_is_told(settings, monkeypatch):
    monkeypatch.setattr(connection.features, "has_zoneinfo_database", False)
    settings.TIME_ZONE = "Europe/Paris"

    assert ids(check_time_zones(databases=["default"])) == ["mcp_django.W006"]
    assert list(check_time_zones()) == []


@pytest.mark.django_db
def test_a_database_that_knows_the_zone_gives_no_message(settings, monkeypatch):
    monkeypatch.setattr(connection.features, "has_zoneinfo_database", True)
    settings.TIME_ZONE = "Europe/Paris"

    assert list(check_time_zones(databases=["default"])) == []


@pytest.mark.parametrize("name", ["database", "memory", "mcp_django.stores.memory.MemoryStore"])
def test_a_store_that_can_be_had_gives_no_message(settings, name):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "STORE": name}

    assert list(check_store()) == []


@pytest.mark.parametrize("name", ["redis", "mamory", "nowhere.Store"])
def test_a_store_that_cannot_be_had_is_an_error_and_no_crash(settings, name):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "STORE": name}

    (message,) = check_store()

    assert message.id == "mcp_django.E011"
    assert repr(name) in message.msg
