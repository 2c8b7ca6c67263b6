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


@pytest.fixture(scope="package")
def idle_tabs(chromium: Any) -> dict[str, list[Tab]]:
    """Tabs of earlier tests, by what they were opened with: a new one starts processes, and has
    nothing in its cache."""
    return {}


@pytest.fixture
def browse(
    chromium: Any,
    playwright: PlaywrightThread,
    live_server: LiveServer,
    look: Look,
    idle_tabs: dict[str, list[Tab]],
) -> Iterator[Callable[..., Tab]]:
    """A tab in which a user is logged in. The test fails on whatever went wrong in it."""
    opened: list[tuple[Tab, list[Tab]]] = []

    def open_tab(user: Any = None, **options: Any) -> Tab:
        options = {"reduced_motion": "reduce", **look.context, **options}
        idle = idle_tabs.setdefault(f"{look.name} {sorted(options.items())}", [])
        if idle:
            tab = idle.pop()
        else:
            # Without a route: it would switch the cache off.
            context = chromium.new_context(base_url=live_server.url, **options)
            context.set_default_timeout(10_000)
            tab = Tab(playwright, context, look)
        opened.append((tab, idle))
        if user is not None:
            tab.context.add_cookies([{**login_cookie(user), "url": live_server.url}])
        return tab

    yield open_tab
    faults = []
    for tab, idle in opened:
        tab.evaluate("1")  # it hears what happened meanwhile
        faults += tab.faults
        tab.forget()
        idle.append(tab)
    assert faults == []


def login_cookie(user: Any) -> dict[str, str]:
    client = Client()
    client.force_login(user)
    name = site_settings.SESSION_COOKIE_NAME
    return {"name": name, "value": client.cookies[name].value}
