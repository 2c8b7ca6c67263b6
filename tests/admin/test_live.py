"""Live: who sees what of sessions and streams, and who ends them."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from html import unescape

import pytest
from django.contrib import admin
from django.contrib.admin.models import DELETION, LogEntry
from django.urls import resolve, reverse
from django.utils import timezone

from mcp_django.models import ServerSettings, UserRestriction
from mcp_django.stores.sessions import get_store
from mcp_django.subscriptions.topics import control_topic
from tests.admin.looking import add_session, add_stream, allow, text_of, url
from tests.clients import browser_of

pytestmark = pytest.mark.django_db
LIVE = url("live")
URI = "django://objects/shop.order/5"


@pytest.fixture
def ada(make_user):
    return make_user("ada")


@pytest.fixture
def warden(make_user):
    """Sees and ends everything."""
    names = [f"{verb}_{name}" for verb in ("view", "delete") for name in ("session", "livestream")]
    return make_user("warden", *names, is_staff=True)


@pytest.fixture
def browser(warden):
    return browser_of(warden)


@pytest.fixture
def make_session(ada):
    return partial(add_session, user=ada)


@pytest.fixture
def make_stream(ada):
    return partial(add_stream, user=ada)


def keys_on(page):
    keys = re.findall(r'<button [^>]*value="([^"]+)"', page.content.decode())
    return [key for key in keys if key != "all"]


# What is shown


def test_sessions_and_streams_are_shown_with_all_that_is_known(
    browser, make_session, make_stream, make_user
):
    make_session(uris=[URI])
    make_stream()

    text = text_of(browser.get(LIVE))
    gone = make_user("gone")
    make_session("s2", user=None, is_initialized=False, client={})
    make_session("s3", user=gone, principal="default/user:77/x")
    gone.delete()
    others = text_of(browser.get(LIVE))

    assert "anonymous End unnamed (handshake not complete)" in others
    assert "default/user:77/x End Editor" in others

    assert "Sessions: 1" in text
    assert "ada End Editor 1.2 Streamable HTTP 2025-11-25" in text
    assert "Streams: 1" in text
    assert "ada End Assistant Subscriptions 2026-07-28" in text
    assert "(5 minutes)" in text
    assert "0 minutes ago" in text
    assert f"lists of tools {URI}" in text
    assert text.count(URI) == 2


def test_the_newest_come_first_and_the_rest_on_other_pages(
    browser, make_session, make_stream, monkeypatch
):
    monkeypatch.setattr("mcp_django.admin.live.ON_PAGE", 2)
    for number in range(5):
        make_session(f"s{number}", minutes=number)
        make_stream(f"t{number}", minutes=number)

    first = browser.get(LIVE, {"user": "ada"})
    second = browser.get(f"{LIVE}?{older(first)}")
    beyond = browser.get(LIVE, {"sessions": "99", "streams": "x"})

    assert keys_on(first) == ["s0", "s1", "t0", "t1"]
    assert keys_on(second) == ["s2", "s3", "t0", "t1"]
    assert keys_on(beyond) == ["s4", "t0", "t1"]
    assert "user=ada" in older(first)
    assert "Page 2 of 3 · Newer sessions · Older sessions" in text_of(second)


def older(page):
    link = re.search(r'href="\?([^"]+)">Older sessions', page.content.decode())
    return unescape(link[1])


def test_one_user_is_shown_alone(browser, make_session, make_stream, make_user):
    make_session("hers")
    make_stream("her-stream")
    make_session("his", user=make_user("bob"))

    assert keys_on(browser.get(LIVE, {"user": "ada"})) == ["hers", "her-stream"]
    assert keys_on(browser.get(LIVE, {"user": "bob"})) == ["his"]
    for nobody in ("ad", "\0", "x" * 300):
        page = browser.get(LIVE, {"user": nobody})
        assert "There is no user of this name." in text_of(page)
        assert keys_on(page) == []


def test_a_client_with_many_long_subscriptions_does_not_fill_the_page(browser, make_session):
    make_session(uris=[f"x://{number}/{'y' * 1500}" for number in range(25)])

    page = browser.get(LIVE)

    assert "and 5 more" in text_of(page)
    assert len(page.content) < 40_000


def test_what_is_on_another_server_is_not_of_this_page(browser, make_session, make_stream, heard):
    make_session(server="other")
    make_stream(server="other")

    assert keys_on(browser.get(LIVE)) == []
    browser.post(LIVE, {"sessions": "s1"})
    browser.post(LIVE, {"streams": "t1"})

    assert get_store().session("s1") is not None
    assert heard.topics == set()
    assert not LogEntry.objects.exists()


def test_a_store_that_is_gone_is_said_and_no_page_of_errors(
    browser, make_session, monkeypatch, caplog
):
    make_session()

    def gone():
        raise ConnectionError("gone")

    monkeypatch.setattr("mcp_django.admin.live.get_store", gone)

    assert "cannot be reached" in text_of(browser.get(LIVE))
    ended = browser.post(LIVE, {"sessions": "s1"}, follow=True)
    assert "cannot be reached" in ended.content.decode()
    assert "ConnectionError: gone" in caplog.text


def test_the_page_says_what_there_is_to_know_of_the_server(
    browser, warden, monkeypatch, configure
):
    configure(SESSION_CACHE="database")
    before = text_of(browser.get(LIVE))
    configure(SESSION_CACHE="default")
    ServerSettings.objects.create(closed=True)
    after = text_of(browser.get(LIVE))

    assert before.count("There are none.") == 2
    assert "or have it switched off" in before
    for words in ("Staff closed this server", "what the process knows"):
        assert words not in before
        assert words in after
    assert "Staff closed this server" in text_of(browser.get(url("overview")))
    allow(warden, "mcp_django.view_serversettings", "mcp_django.change_userrestriction")
    text = text_of(browser.get(LIVE))
    assert "use a switch: server settings , user restrictions" in text

    monkeypatch.delitem(admin.site._registry, UserRestriction)
    assert "user restrictions" not in text_of(browser.get(LIVE))


# Who may see it

#: Permissions, and which lists they show. They end nothing.
PERMISSIONS = [
    (("view_session",), ["Sessions"]),
    (("view_livestream",), ["Streams"]),
    (("view_session", "view_livestream"), ["Sessions", "Streams"]),
    (("view_session", "delete_livestream"), ["Sessions"]),
    (("view_livestream", "delete_session"), ["Streams"]),
]


@pytest.mark.parametrize(("names", "seen"), PERMISSIONS)
def test_each_list_is_for_those_with_the_permission_for_it_and_ends_nothing_without_another(
    make_user, make_session, make_stream, heard, names, seen
):
    make_session(uris=["x://of-session"])
    make_stream(topics=("x://of-stream",))
    browser = browser_of(make_user("bob", *names, is_staff=True))

    page = browser.get(LIVE)

    text = text_of(page)
    assert [title for title in ("Sessions", "Streams") if f"{title}: 1" in text] == seen
    assert text.count("x://of-") == len(seen)
    assert keys_on(page) == []
    for sent in ({"sessions": "s1"}, {"streams": "t1"}):
        assert browser.post(LIVE, sent).status_code == 403
    assert get_store().session("s1") is not None
    assert heard.topics == set()
    assert not LogEntry.objects.exists()


# Ending


def test_a_session_is_ended_and_the_log_says_so(browser, warden, make_session, heard):
    make_session("s1")
    make_session("s2")

    page = browser.post(f"{LIVE}?user=ada", {"sessions": "s1"}, follow=True)

    assert page.redirect_chain == [(f"{LIVE}?user=ada", 302)]
    assert "Ended the session of ada, Editor 1.2." in page.content.decode()
    assert keys_on(page) == ["s2"]
    assert control_topic("session", "s1") in heard.topics
    entry = LogEntry.objects.get()
    assert (entry.user, entry.action_flag) == (warden, DELETION)
    assert (entry.content_type.model, entry.object_id) == ("assistants", "s1")
    assert entry.get_change_message() == "Ended the session of ada, Editor 1.2."
    assert browser.get(reverse("admin:index")).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_a_session_is_ended_where_middleware_holds_a_transaction(browser, make_session, settings):
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "tests.transports.middlewares.in_transaction"]
    make_session("s1")

    browser.post(LIVE, {"sessions": "s1"})

    assert get_store().session("s1") is None
    # Nor does a transaction of requests.
    assert resolve(LIVE).func._non_atomic_requests >= {"default"}


def test_a_stream_is_told_to_close_and_the_log_says_so(browser, make_stream, heard):
    make_stream()

    page = browser.post(LIVE, {"streams": "t1"}, follow=True)

    assert "Ended the stream of ada, Assistant." in page.content.decode()
    assert heard.topics == {control_topic("close", "t1")}
    assert LogEntry.objects.get().content_type.model == "assistants"


@pytest.mark.parametrize("key", ["nothing", "", "server default", "user default 1", "\0", "t1"])
def test_a_key_of_nothing_ends_nothing(browser, make_session, make_stream, heard, key):
    make_session()
    make_stream()

    page = browser.post(LIVE, {"sessions": key}, follow=True)
    browser.get(LIVE, {"sessions": "s1", "streams": "t1"})
    browser.post(LIVE, {})

    assert "This session is over already." in page.content.decode()
    assert keys_on(page) == ["s1", "t1"]
    assert heard.topics == set()
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize(
    ("address", "left", "title"),
    [(LIVE, [], "of everybody: 3"), (f"{LIVE}?user=ada", ["b1"], "of ada: 2")],
)
def test_all_sessions_are_ended_at_once_of_everybody_or_of_one_user(
    browser, make_user, make_session, address, left, title
):
    make_session("a1")
    make_session("a2", minutes=2)
    make_session("b1", user=make_user("bob"))

    page = browser.post(address, {"sessions": "all"}, follow=True)

    assert [session.key for session in get_store().sessions()] == left
    assert f"Ended all sessions {title}." in page.content.decode()
    assert LogEntry.objects.get().get_change_message() == f"Ended all sessions {title}."


def test_a_session_that_was_not_heard_of_for_five_minutes_is_counted_and_not_listed(
    browser, make_session, make_stream
):
    before = timezone.now() - timedelta(minutes=5, seconds=1)
    make_session("present")
    make_session("streaming", minutes=20, seen=before)
    make_session("gone", minutes=30, seen=before)
    make_stream(session="streaming")

    page = browser.get(LIVE)

    assert keys_on(page) == ["present", "streaming", "t1"]
    assert "Sessions: 2" in text_of(page)
    assert "Not heard of for five minutes: 1." in text_of(page)
    assert "Ends all sessions of everybody: 3." in text_of(page)
    browser.post(LIVE, {"sessions": "all"})
    assert not get_store().sessions()
