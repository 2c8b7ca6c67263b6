"""A cache may lose an entry at any time: to make room, or with its server."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.cache.backends.locmem import LocMemCache

from mcp_django.signing import digest_of
from mcp_django.stores.cache import (
    CacheStore,
    lease_name,
    list_name,
    log_name,
    question_names,
    session_name,
    streams_name,
    whose,
)
from mcp_django.stores.interface import Log, Question
from tests.stores.conftest import START, make_session

QUESTION, ANSWER = question_names(digest_of("q1"))


def session_is_over(store, other):
    assert store.session("s1") is None
    assert store.subscriptions("s1") == frozenset()
    assert store.read("l1", session="s1", after=0) is None
    assert store.append("l1", [b"b"]) == 0
    assert not store.end_session("s1")


def session_is_not_listed_until_it_is_used(store, other):
    assert [session.key for session in store.sessions()] == ["s2"]
    store.clock.pass_by(minutes=1)
    store.see("s1")
    assert {session.key for session in store.sessions()} == {"s1", "s2"}
    assert store.end_session("s1")


def log_is_over(store, other):
    assert store.read("l1", session="s1", after=0) is None
    assert store.append("l1", [b"b"]) == 0
    assert not store.close_orphan("l1", b"end")


def question_is_withdrawn(store, other):
    assert store.take_answer("q1") is None
    assert not store.answer("s1", "q1", b"no")


def question_is_open_again(store, other):
    assert store.take_answer("q1") is None
    assert store.answer("s1", "q1", b"no")
    assert store.take_answer("q1") == b"no"


def owner_is_gone_until_it_renews_its_lease(store, other):
    assert store.read("l1", session="s1", after=0).is_orphaned
    assert store.streams() == []
    store.renew("hub")
    assert not store.read("l1", session="s1", after=0).is_orphaned
    assert len(store.streams()) == 1


def other_processes_read_streams_with_the_next_sign_of_life(store, other):
    assert len(store.streams()) == 1
    assert other.streams() == []
    store.renew("hub")
    assert other.streams() == store.streams()


#: Names of entries, and what their loss means.
LOST = {
    "session": (session_name("s1"), session_is_over),
    "sessions": ("", session_is_not_listed_until_it_is_used),
    "log": (log_name("l1"), log_is_over),
    "question": (QUESTION, question_is_withdrawn),
    "answer": (ANSWER, question_is_open_again),
    "lease": (lease_name("hub"), owner_is_gone_until_it_renews_its_lease),
    "streams": (streams_name("hub"), other_processes_read_streams_with_the_next_sign_of_life),
    "owners": ("owners", other_processes_read_streams_with_the_next_sign_of_life),
}


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("kind", LOST)
def test_what_is_lost_is_over_and_nothing_else_is(
    store, cache, clock, add_session, open_log, kind
):
    add_session("s2", principal="default/user:2/")
    open_log("l2", session="s2")
    store.append("l2", [b"theirs"])
    store.subscribe("s2", "django://2", most=5)
    store.answer("s1", "q1", b"yes")
    name, is_lost = LOST[kind]
    name = name or list_name(whose(store.session("s1")))
    assert store.documents.get(name)

    store.documents.drop(name)

    is_lost(store, CacheStore(lambda: cache, clock=clock))
    assert [event.data for event in store.read("l2", session="s2", after=0).events] == [b"theirs"]
    assert store.subscriptions("s2") == {"django://2"}
    # And all can begin again.
    store.end_session("s1")
    begun = add_session("s1")
    store.open_log(Log(key="l1", session="s1", owner="hub"))
    store.ask(Question(session="s1", id="q1", owner="hub"))
    assert store.session("s1") == begun
    assert store.append("l1", [b"a"]) == 1
    assert begun in store.sessions()


def test_a_cache_that_is_too_small_loses_sessions_and_mixes_nothing():
    cache = LocMemCache("small", {"OPTIONS": {"MAX_ENTRIES": 20}})
    store = CacheStore(lambda: cache, clock=lambda: START)
    lost = 0

    for number in range(300):
        key, before = f"s{number}", f"s{number - 3}"
        caller = {"principal": f"user:{number % 7}", "user": "1"}
        store.add_session(make_session(key, now=START, **caller))
        store.open_log(Log(key=f"l{key}", session=key, owner="hub"))
        store.subscribe(key, f"django://{key}", most=5)
        store.append(f"l{key}", [key.encode()])
        store.ask(Question(session=key, id=f"q{key}", owner="hub"))
        store.answer(key, f"q{key}", key.encode())

        assert store.subscriptions(before) in (frozenset(), {f"django://{before}"})
        assert store.take_answer(f"q{before}") in (None, before.encode())
        assert store.read(f"l{before}", session=key, after=0) is None
        page = store.read(f"l{before}", session=before, after=0)
        lost += page is None
        assert page is None or [event.data for event in page.events] in ([], [before.encode()])

    assert lost


# What nobody loses


@pytest.fixture
def cache_of_today(locmem):
    """A store whose clock is that of its cache."""
    return CacheStore(lambda: locmem)


def begin(store):
    store.add_session(make_session("s1", now=store.clock(), transport="http_sse"))
    store.open_log(Log(key="index", session="s1", owner="hub"))
    store.open_log(Log(key="ended", session="s1", owner="hub"))
    store.append("ended", [b"a"], is_final=True)


@pytest.mark.thorough
def test_a_session_that_is_used_keeps_what_goes_on(cache_of_today, locmem):
    time_machine = pytest.importorskip("time_machine")  # not in the group of the gate
    store = cache_of_today
    with time_machine.travel(START, tick=False) as now:
        begin(store)
        for _ in range(300):
            now.shift(timedelta(minutes=1))
            store.see("s1")

        assert store.append("index", [b"a"]) == 1
        assert [session.key for session in store.sessions()] == ["s1"]
        assert locmem.get(f"mcp:1:{log_name('ended')}") is None


@pytest.mark.thorough
def test_all_that_nobody_uses_expires_by_itself(cache_of_today, locmem):
    time_machine = pytest.importorskip("time_machine")
    store = cache_of_today
    with time_machine.travel(START, tick=False) as now:
        begin(store)
        store.ask(Question(session="s1", id="q1", owner="hub"))
        store.answer("s1", "q1", b"yes")
        names = [key.partition(":1:")[2] for key in locmem._cache]
        now.shift(timedelta(hours=1))

        assert len(names) >= 7
        assert [name for name in names if locmem.get(name) is not None] == []
