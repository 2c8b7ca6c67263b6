"""Sessions, in every kind of store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mcp_django.stores import bounds

HOSTILE = {
    "name": "\x00' OR 1=1 \ud800 \U0001f600",
    "version": "x" * 5000,
    "deep": [[{"a": None}]],
}


def test_a_session_is_found_by_its_key_as_it_was_added(store, add_session):
    added = add_session(
        client=HOSTILE, capabilities={"roots": {"listChanged": True}}, user="1", log_level="error"
    )

    assert store.session("s1") == added
    assert store.session("s2") is None
    assert store.session("") is None


def test_an_ended_session_is_not_there(store, session):
    assert store.end_session("s1")

    assert store.session("s1") is None
    assert store.sessions() == []
    assert not store.end_session("s1")


@pytest.mark.parametrize(("changes", "seconds"), [({}, 1800), ({"SESSION_IDLE": 90}, 90)])
def test_nothing_brings_an_idle_session_back(
    store, clock, add_session, settings, changes, seconds
):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, **changes}
    add_session()
    clock.pass_by(seconds=seconds - 1)
    assert store.session("s1")

    clock.pass_by(seconds=1)
    store.see("s1")
    store.update_session("s1", is_initialized=True)

    assert store.session("s1") is None
    assert store.sessions() == []
    assert not store.subscribe("s1", "django://site", most=5)
    assert not store.end_session("s1")


def test_use_is_written_once_a_minute_and_keeps_a_session(store, clock, add_session):
    added = add_session()

    clock.pass_by(seconds=59)
    store.see("s1")
    assert store.session("s1").seen == added.seen
    for _ in range(5):
        clock.pass_by(minutes=20)
        store.see("s1")

    assert store.session("s1").seen == clock()


def test_what_a_handshake_agrees_on_is_kept_with_what_was_there_before(store, add_session):
    before = add_session(revision="2024-11-05", log_level="error")
    store.subscribe("s1", "django://site", most=1)
    agreed = {"revision": "2025-11-25", "client": HOSTILE, "capabilities": {"roots": {}}}

    store.update_session("s1", **agreed)
    store.update_session("s2", **agreed)
    store.update_session("s1", is_initialized=True)
    store.update_session("s1", log_level="warning")

    changed = {**agreed, "is_initialized": True, "log_level": "warning"}
    assert store.session("s1") == replace(before, **changed)
    assert store.subscriptions("s1") == {"django://site"}
    assert store.session("s2") is None


def test_all_sessions_newest_first(store, clock, add_session):
    keys = ["old", "middle", "new"]
    for key in keys:
        add_session(key)
        clock.pass_by(seconds=1)

    assert [session.key for session in store.sessions()] == keys[::-1]


def test_subscriptions_are_the_sessions_own_by_case_and_of_any_length(store, add_session):
    add_session("s1")
    add_session("s2")
    uris = {"django://a", "django://A", "django://É", "django://" + "é" * 4000}

    for uri in uris:
        assert store.subscribe("s1", uri, most=5)

    assert store.subscriptions("s1") == uris
    assert store.subscriptions("s2") == frozenset()


def test_a_session_has_so_many_subscriptions_and_no_more(store, session):
    assert store.subscribe("s1", "django://1", most=2)
    assert store.subscribe("s1", "django://2", most=2)

    assert not store.subscribe("s1", "django://3", most=2)
    assert store.subscribe("s1", "django://2", most=2)
    store.unsubscribe("s1", "django://1")

    assert store.subscribe("s1", "django://3", most=2)
    assert store.subscriptions("s1") == {"django://2", "django://3"}


@pytest.mark.parametrize("gone", ["unknown", "ended", "idle"])
def test_a_session_that_is_gone_has_no_subscriptions(store, clock, add_session, gone):
    if gone != "unknown":
        add_session()
        store.subscribe("s1", "django://1", most=5)
    if gone == "ended":
        store.end_session("s1")
    if gone == "idle":
        clock.pass_by(minutes=30)

    assert store.subscriptions("s1") == frozenset()
    assert not store.subscribe("s1", "django://2", most=5)
    store.unsubscribe("s1", "django://1")
    if gone == "ended":
        add_session()
        assert store.subscriptions("s1") == frozenset()


# The standalone stream


def test_one_process_holds_the_standalone_stream_until_it_gives_it_back(store, add_session):
    assert not store.hold_standalone("s1", owner="a")
    store.free_standalone("s1", owner="a")
    add_session()

    assert store.hold_standalone("s1", owner="a")
    assert store.hold_standalone("s1", owner="a")
    store.free_standalone("s1", owner="b")
    assert not store.hold_standalone("s1", owner="b")
    store.free_standalone("s1", owner="a")

    assert store.hold_standalone("s1", owner="b")


def test_a_process_that_renews_its_lease_keeps_the_stream_until_it_dies(store, clock, session):
    store.hold_standalone("s1", owner="a")
    clock.pass_by(seconds=14)
    store.renew("a")
    clock.pass_by(seconds=14)
    assert not store.hold_standalone("s1", owner="b")

    clock.pass_by(seconds=1)

    assert store.hold_standalone("s1", owner="b")
    assert not store.hold_standalone("s1", owner="a")


# Too many of one principal


@pytest.mark.parametrize(
    ("user", "most"), [("1", "MOST_SESSIONS"), ("", "MOST_ANONYMOUS")], ids=["user", "anonymous"]
)
def test_with_one_session_too_many_the_one_goes_that_was_not_heard_of_for_longest(
    store, clock, add_session, monkeypatch, user, most
):
    monkeypatch.setattr(bounds, most, 3)
    for key in ("a", "b", "c"):
        add_session(key, user=user)
        clock.pass_by(minutes=2)
    store.see("a")
    store.subscribe("b", "test://b", most=9)

    add_session("d", user=user)

    assert {session.key for session in store.sessions()} == {"a", "c", "d"}
    assert store.subscriptions("b") == frozenset()


def test_sessions_of_others_and_those_that_are_over_do_not_count(
    store, clock, add_session, monkeypatch
):
    monkeypatch.setattr(bounds, "MOST_SESSIONS", 3)
    add_session("old", user="1")
    clock.pass_by(minutes=31)
    add_session("other", user="2", principal="default/user:2/")
    add_session("ended", user="1")
    store.end_session("ended")

    for key in ("a", "b", "c"):
        add_session(key, user="1")

    assert {session.key for session in store.sessions()} == {"other", "a", "b", "c"}
