"""What the other tests here rely on: that each kind of fault is noticed."""

from __future__ import annotations

import time

import pytest

from tests.browser.looks import every_look
from tests.waiting import PATIENCE


@pytest.fixture
def page(browse):
    tab = browse()
    tab.goto("/admin/login/")
    return tab


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("console.error('over there')", "over there"),
        ("setTimeout(() => nothing.there, 0)", "nothing is not defined"),
        ("fetch('https://example.invalid/font.woff').catch(() => 0)", "example.invalid"),
        ("fetch('/static/nothing.js').catch(() => 0)", "404"),
    ],
)
def test_what_goes_wrong_in_a_page_is_noticed(page, script, told):
    page.evaluate(f"() => {{ {script} }}")
    deadline = time.monotonic() + PATIENCE  # a name server may take its time
    while not page.faults and time.monotonic() < deadline:
        page.evaluate("1")  # it hears what happened meanwhile
    faults, page.faults = page.faults, []

    assert told in " ".join(faults)


def test_what_somebody_cannot_use_is_a_finding(page):
    page.set_content("<html lang=en><title>x</title><main><h1>x</h1><input></main>")
    with pytest.raises(AssertionError, match="label: input"):
        page.check_accessible()

    page.set_content("<a href='/'>There</a><span role=button>Here</span>")
    page.tab_to("link", "There")
    with pytest.raises(AssertionError, match="No tab leads to button 'Here'"):
        page.tab_to("button", "Here")

    page.set_content("<style>a {outline: none}</style><a href='/'>There</a>")
    with pytest.raises(AssertionError, match="unseen"):
        page.tab_to("link", "There")


def test_a_tab_for_another_test_remembers_nothing(page):
    page.evaluate("localStorage.kept = sessionStorage.kept = document.cookie = 'kept=1'")
    page.evaluate("console.error('over there')")

    page.forget()
    page.goto("/admin/login/")

    kept = page.evaluate("[localStorage.kept, sessionStorage.kept, document.cookie].join()")
    assert "kept" not in kept
    assert page.faults == []


@every_look
def test_looks_differ(page, look):
    assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") == (
        look.name == "dark"
    )
    assert page.locator(".login-box").count() == (look.name == "jazzmin")
    assert (page.viewport_size["width"] < 500) == (look.name == "narrow")
