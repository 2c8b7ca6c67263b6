from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings as site_settings
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from tests.browser.looks import LIGHT, Look
from tests.browser.playwright_thread import PlaywrightThread
from tests.browser.tabs import Tab

#: No sandbox: CI runs as root. The others keep the browser from asking for anything by itself.
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="package")
def playwright() -> Iterator[PlaywrightThread]:
    from playwright.sync_api import sync_playwright

    thread = PlaywrightThread()
    started = thread.run(lambda: sync_playwright().start())
    thread.started = started
    yield thread
    started.stop()
    thread.close()


@pytest.fixture(scope="package")
def chromium(playwright: PlaywrightThread) -> Iterator[Any]:
    from tests.services import path_of

    browser = playwright.started.chromium.launch(executable_path=path_of("chromium"), args=OPTIONS)
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def live_server() -> Iterator[LiveServer]:
    # Not localhost, which may mean another address to the browser.
    server = LiveServer("127.0.0.1")
    yield server
    server.stop()


@pytest.fixture
def look(request: pytest.FixtureRequest, settings: Any) -> Look:
    """What pages look like: light, unless the test is marked with `every_look`."""
    chosen: Look = getattr(request, "param", LIGHT)
    settings.TEMPLATES = chosen.templates(settings.TEMPLATES)
    return chosen


@pytest.fixture
def browse(
    chromium: Any, playwright: PlaywrightThread, live_server: LiveServer, look: Look
) -> Iterator[Callable[..., Tab]]:
    """A tab in which a user is logged in. The test fails on whatever went wrong in it."""
    opened: list[tuple[Any, Tab]] = []

    def open_tab(user: Any = None, **options: Any) -> Tab:
        context = chromium.new_context(
            base_url=live_server.url, reduced_motion="reduce", **{**look.context, **options}
        )
        context.set_default_timeout(10_000)
        # Chromium asks for it by itself, and the site of the tests has none.
        context.route("**/favicon.ico", lambda route: route.fulfill(status=204))
        if user is not None:
            context.add_cookies([{**login_cookie(user), "url": live_server.url}])
        tab = Tab(playwright, context, look)
        opened.append((context, tab))
        return tab

    yield open_tab
    for context, tab in opened:
        tab.evaluate("1")  # it hears what happened meanwhile
        context.close()
    assert [fault for _, tab in opened for fault in tab.faults] == []


def login_cookie(user: Any) -> dict[str, str]:
    client = Client()
    client.force_login(user)
    name = site_settings.SESSION_COOKIE_NAME
    return {"name": name, "value": client.cookies[name].value}


@pytest.fixture
def boss(make_user: Callable[..., Any]) -> Any:
    """A superuser."""
    return make_user("boss", is_staff=True, is_superuser=True)
