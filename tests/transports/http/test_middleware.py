from __future__ import annotations

import pytest
from django.conf import settings as django_settings
from django.http import HttpRequest, HttpResponse

from mcp_django.transports.http.middleware import Chain, chosen, is_browser_only, loaded
from tests.transports.middlewares import seen

HERE = "tests.transports.middlewares"


@pytest.fixture(autouse=True)
def forget():
    seen.clear()
    yield
    seen.clear()


@pytest.fixture
def choose(settings):
    def set_both(choice, *paths):
        settings.MIDDLEWARE = [*settings.MIDDLEWARE, *paths]
        settings.MCP_DJANGO = {**settings.MCP_DJANGO, "RUN_MIDDLEWARE": choice}

    return set_both


def pass_through(*names):
    def view(request):
        raise AssertionError("The chain never calls the view.")

    def innermost(request):
        seen.append("innermost")
        return HttpResponse("ours")

    return Chain([f"{HERE}.{name}" for name in names])(HttpRequest(), innermost, view=view)


# Which classes run


def test_a_site_with_djangos_browser_classes_alone_has_no_chain_at_all():
    assert chosen() == []
    assert loaded.chain() is None
    assert loaded.is_known_to_be_empty


def test_by_itself_everything_runs_that_is_no_browser_class(choose):
    choose("auto", f"{HERE}.function", f"{HERE}.OwnSessions", f"{HERE}.Tenant")

    assert chosen() == [f"{HERE}.function", f"{HERE}.Tenant"]


@pytest.mark.parametrize("name", ["OwnSessions", "OwnCsrf", "OwnUsers"])
def test_subclasses_of_browser_classes_are_browser_classes(name):
    assert is_browser_only(f"{HERE}.{name}")


def test_locale_middleware_is_no_browser_class():
    assert not is_browser_only("django.middleware.locale.LocaleMiddleware")


def test_none_runs_nothing(choose):
    choose("none", f"{HERE}.function")

    assert loaded.chain() is None


def test_project_runs_the_whole_setting(choose):
    choose("project", f"{HERE}.function")

    assert chosen() == django_settings.MIDDLEWARE


def test_a_list_runs_what_it_names(choose):
    choose([f"{HERE}.both"], f"{HERE}.function")

    assert chosen() == [f"{HERE}.both"]


def test_the_chain_is_loaded_once_and_again_when_a_setting_changes(choose):
    choose([f"{HERE}.both"])
    assert not loaded.is_known_to_be_empty
    first = loaded.chain()

    assert loaded.chain() is first
    assert not loaded.is_known_to_be_empty
    choose([f"{HERE}.function"])
    assert loaded.chain() is not first


# What a chain does


def test_middleware_runs_in_order_round_the_innermost_function():
    response = pass_through("function", "both")

    assert seen == ["function in", "both", "innermost", "function out"]
    assert response.content == b"ours"


def test_a_class_for_async_servers_only_runs_all_the_same():
    response = pass_through("function", "Async", "both")

    assert seen == ["function in", "async in", "both", "async view", "innermost", "function out"]
    assert response["X-Async"] == "yes"


def test_a_sync_hook_of_an_async_class_runs():
    pass_through("AsyncWithSyncHook")

    assert seen == ["async in", "sync view", "innermost"]


def test_a_class_that_takes_itself_out_is_left_out():
    assert pass_through("Unused", "both").content == b"ours"


def test_hooks_for_views_run_in_order_and_see_the_view():
    pass_through("ViewHook", "SecondViewHook")

    assert seen == [("view", (), {}, False), "second", "innermost"]


def test_a_hook_for_views_can_answer_in_place_of_the_view():
    assert pass_through("ViewRefusal").status_code == 403
    assert seen == []


def test_what_middleware_raises_is_a_response_for_the_middleware_outside(caplog):
    response = pass_through("function", "Raising")

    assert response.status_code == 500
    assert seen == ["function in", "function out"]
    assert "ValueError" in caplog.text
