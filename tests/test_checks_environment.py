from __future__ import annotations

from ast import literal_eval
from types import ModuleType

import pytest
from django.apps import AppConfig
from django.core.checks import WARNING, run_checks
from django.core.management import call_command
from django.db import connection, connections
from django.urls import include, path

from mcp_django.checks import (
    check_bodies,
    check_chain,
    check_databases,
    check_middleware,
    check_session_cache,
    check_sqlite,
    check_store,
    check_time_zones,
    check_view,
)

pytestmark = pytest.mark.database


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
        monkeypatch.setattr("mcp_django.checks.connections", fresh)

    return set_database


def ids(messages):
    return [one.id for one in messages]


@pytest.mark.parametrize(
    ("database", "words"),
    [
        ({"OPTIONS": GOOD}, None),
        ({"OPTIONS": GOOD, "CONN_MAX_AGE": 0}, None),
        ({"OPTIONS": {**GOOD, "pool": True}, "CONN_MAX_AGE": 0}, None),
        ({"OPTIONS": GOOD, "CONN_MAX_AGE": 60}, "DATABASES['default'][\"CONN_MAX_AGE\"] = 0."),
        ({"OPTIONS": GOOD, "CONN_MAX_AGE": None}, "DATABASES['default'][\"CONN_MAX_AGE\"] = 0."),
        (
            {"ENGINE": "django.db.backends.postgresql", "CONN_MAX_AGE": 60},
            '["OPTIONS"]["pool"] = {"min_size": 2, "max_size": 10}',
        ),
    ],
)
def test_connections_that_views_keep_under_asgi_are_told(configure, database, words):
    configure(**database)

    warnings = list(check_databases())

    assert ids(warnings) == ([] if words is None else ["mcp_django.W004"])
    for warning in warnings:
        assert f"CONN_MAX_AGE = {database['CONN_MAX_AGE']}" in warning.msg
        assert words in warning.hint


@pytest.mark.parametrize("left_out", list(GOOD))
def test_the_hint_for_a_missing_option_of_sqlite_mends_it(configure, left_out):
    configure(OPTIONS={name: GOOD[name] for name in GOOD if name != left_out})

    # Not at every command.
    assert list(check_sqlite()) == []
    (warning,) = list(check_sqlite(databases=["default"]))

    assert warning.id == "mcp_django.W003"
    _, _, options = warning.hint.partition(" = ")
    configure(OPTIONS=literal_eval(options))
    assert list(check_sqlite(databases=["default"])) == []


@pytest.mark.parametrize(
    ("urlconf", "application", "count"),
    [
        ("tests.urls", None, 0),
        ("tests.urls", "tests.asgi.application", 1),
        ("django.contrib.auth.urls", None, 1),
        (None, None, 1),
    ],
)
def test_a_site_under_wsgi_may_keep_connections(configure, settings, urlconf, application, count):
    settings.ROOT_URLCONF, settings.ASGI_APPLICATION = urlconf, application
    configure(OPTIONS=GOOD, CONN_MAX_AGE=60)

    assert len(list(check_databases())) == count


def test_middleware_that_runs_round_a_call_is_listed_and_that_of_browsers_is_not(settings):
    assert list(check_chain()) == []
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.middleware.locale.LocaleMiddleware"]

    (message,) = list(check_chain())

    assert message.id == "mcp_django.I001"
    assert "LocaleMiddleware" in message.msg
    assert "Csrf" not in message.msg


TENANT = "tests.transports.middlewares.UserTenant"


def test_middleware_that_does_not_see_the_caller_of_the_view_is_named_and_the_hint_mends_it(
    settings,
):
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, TENANT]

    (warning,) = list(check_view())

    assert warning.id == "mcp_django.W007"
    assert TENANT in warning.msg
    assert "Csrf" not in warning.msg
    between, _, _ = warning.hint.removeprefix("MIDDLEWARE = ").partition("]")
    settings.MIDDLEWARE = literal_eval(f"{between}]")
    assert list(check_view()) == []


def test_a_site_without_the_view_needs_nothing_in_front_of_it_but_an_application(settings):
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, TENANT]
    settings.ROOT_URLCONF = "django.contrib.auth.urls"
    settings.ASGI_APPLICATION = "site.asgi.application"

    assert list(check_view()) == []
    del settings.ROOT_URLCONF
    assert list(check_view()) == []
    del settings.ASGI_APPLICATION
    assert ids(check_view()) == ["mcp_django.W013"]


@pytest.mark.parametrize(("route", "found"), [("mcp/", ["mcp_django.W016"]), ("mcp", [])])
def test_an_endpoint_that_needs_its_slash_is_told(settings, route, found):
    settings.ROOT_URLCONF = ModuleType("routes")
    settings.ROOT_URLCONF.urlpatterns = [path(route, include("mcp_django.urls"))]

    assert ids(check_view()) == found


def test_middleware_that_cannot_be_imported_is_told_once(settings):
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "nowhere.Middleware"]

    assert list(check_view()) == list(check_chain()) == []
    assert ids(check_middleware()) == ["mcp_django.E006"]


@pytest.mark.parametrize("choice", ["always", "Auto", ["nowhere.Middleware"]])
def test_a_choice_that_cannot_run_is_an_error(settings, choice):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "RUN_MIDDLEWARE": choice}

    assert ids(check_middleware()) == ["mcp_django.E006"]


class Daphne(AppConfig):
    """The app without what its own configuration does: install a reactor with a loop for good."""

    name = "daphne"


@pytest.mark.django_db
@pytest.mark.needs("daphne")
def test_where_daphne_serves_the_proxy_has_to_limit_bodies(settings):
    without = ids(check_bodies())
    settings.INSTALLED_APPS = [f"{__name__}.Daphne", *settings.INSTALLED_APPS]
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "MAX_BODY": 12345}

    (warning,) = check_bodies()

    assert without == []
    assert (warning.id, warning.level) == ("mcp_django.W008", WARNING)
    assert "client_max_body_size 12345;" in warning.hint
    assert "mcp_django.W008" in ids(run_checks(include_deployment_checks=True))
    assert "mcp_django.W008" not in ids(run_checks())


@pytest.mark.django_db
def test_the_checks_run_with_all_others():
    call_command("check", fail_level="WARNING", verbosity=0)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("knows", "databases", "expected"),
    [(False, ["default"], ["mcp_django.W006"]), (False, None, []), (True, ["default"], [])],
)
def test_a_database_that_cannot_tell_the_months_of_the_site_is_told(
    settings, monkeypatch, knows, databases, expected
):
    monkeypatch.setattr(connection.features, "has_zoneinfo_database", knows)
    settings.TIME_ZONE = "Europe/Paris"

    assert ids(check_time_zones(databases=databases)) == expected


@pytest.mark.parametrize("alias", ["defualt", "", "broken"])
def test_a_cache_that_cannot_be_had_is_an_error_and_no_crash(settings, alias):
    settings.CACHES = {**settings.CACHES, "broken": {"BACKEND": "tests.nowhere.Cache"}}
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "SESSION_CACHE": alias}

    [error] = check_store()

    assert error.id == "mcp_django.E011"
    assert repr(alias) in error.msg
    assert check_session_cache() == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("table", "databases", "expected"),
    [
        ("nowhere", ["default"], ["mcp_django.W015"]),
        ("nowhere", ["other"], []),
        ("nowhere", None, []),
        ("mcp_cache", ["default"], []),
    ],
)
def test_a_cache_without_its_table_is_told_to_who_asks_the_database(
    settings, table, databases, expected
):
    settings.CACHES = {"default": {**settings.CACHES["database"], "LOCATION": table}}

    assert ids(check_store(databases=databases)) == expected


class Replica:
    def db_for_read(self, model, **hints):
        return "replica" if model._meta.app_label == "django_cache" else None


BACKENDS = "django.core.cache.backends"


@pytest.mark.parametrize(
    ("backend", "location", "routers", "is_shared"),
    [
        ("locmem.LocMemCache", "", [], False),
        ("dummy.DummyCache", "", [], False),
        ("filebased.FileBasedCache", "/tmp/x", [], False),
        ("db.DatabaseCache", "mcp_cache", [], True),
        ("db.DatabaseCache", "mcp_cache", [f"{__name__}.Replica"], False),
        ("redis.RedisCache", "redis://127.0.0.1:1/1", [], True),
        ("redis.RedisCache", ["redis://127.0.0.1:1/1", "redis://127.0.0.1:2/1"], [], False),
    ],
)
def test_a_deployment_is_told_when_processes_do_not_share_sessions(
    settings, backend, location, routers, is_shared
):
    settings.CACHES = {"default": {"BACKEND": f"{BACKENDS}.{backend}", "LOCATION": location}}
    settings.DATABASE_ROUTERS = routers

    assert ids(check_session_cache()) == ([] if is_shared else ["mcp_django.W014"])
