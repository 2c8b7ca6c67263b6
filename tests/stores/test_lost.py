"""A cache may lose an entry at any time: to make room, or with its server."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.cache.backends.locmem import LocMemCache

from mcp_django.signing import digest_of
from mcp_django.stores.sessions import LISTS_OF_SESSIONS, Store
from tests.stores.conftest import START, make_session

LOG, QUESTION = digest_of("l1"), digest_of("q1")


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


def question_is_withdrawn(store, other):
    assert not store.answer("s1", "q1", b"no")
    assert store.take_answer("q1") is None


def owner_is_gone_until_it_renews_its_lease(store, other):
    assert store.read("l1", session="s1", after=0).is_orphaned
    assert other.streams() == []
    store.renew("hub")
    assert not store.read("l1", session="s1", after=0).is_orphaned
    assert len(other.streams()) == 1


def other_processes_read_streams_with_the_next_sign_of_life(store, other):
    assert len(store.streams()) == 1
    assert other.streams() == []
    store.renew("hub")
    assert other.streams() == store.streams()


#: Names of entries, and what their loss means.
LOST = {
    "session:s1": session_is_over,
    "sessions": session_is_not_listed_until_it_is_used,
    f"log:{LOG}": log_is_over,
    f"question:{QUESTION}": question_is_withdrawn,
    f"answer:question:{QUESTION}": question_is_withdrawn,
    "lease:hub": owner_is_gone_until_it_renews_its_lease,
    "streams:hub": other_processes_read_streams_with_the_next_sign_of_life,
    "owners": other_processes_read_streams_with_the_next_sign_of_life,
}


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("name", LOST)
def test_what_is_lost_is_over_and_nothing_else_is(store, other, add_session, open_log, name):
    add_session("s2", principal="default/user:2/")
    open_log("l2", session="s2")
    store.append("l2", [b"theirs"])
    store.subscribe("s2", "django://2", most=5)
    if name.startswith("answer"):
        store.answer("s1", "q1", b"yes")
    lists = [f"sessions:{number}" for number in range(LISTS_OF_SESSIONS)]
    lists = [at for at in lists if "s1" in (store.documents.get(at) or ())]

    assert [store.documents.drop(at) for at in (lists if name == "sessions" else [name])] == [True]

    LOST[name](store, other)
    assert [event.data for event in store.read("l2", session="s2", after=0).events] == [b"theirs"]
    assert store.subscriptions("s2") == {"django://2"}
    # And all can begin again.
    store.end_session("s1")
    begun = add_session("s1")
    store.open_log("l1", session="s1", owner="hub")
    store.ask("s1", "q1", owner="hub")
    assert store.session("s1") == begun
    assert store.append("l1", [b"a"]) == 1
    assert begun in store.sessions()


def test_a_cache_that_is_too_small_loses_sessions_and_mixes_nothing():
    cache = LocMemCache("small", {"OPTIONS": {"MAX_ENTRIES": 20}})
    store = Store(lambda: cache, clock=lambda: START)
    lost = 0

    for number in range(300):
        key, before = f"s{number}", f"s{number - 3}"
        caller = {"principal": f"user:{number % 7}", "user": "1"}
        store.add_session(make_session(key, now=START, **caller))
        store.open_log(f"l{key}", session=key, owner="hub")
        store.subscribe(key, f"django://{key}", most=5)
        store.append(f"l{key}", [key.encode()])
        store.ask(key, f"q{key}", owner="hub")
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
    return Store(lambda: locmem)


def begin(store):
    store.add_session(make_session("s1", now=store.clock(), transport="http_sse"))
    store.open_log("index", session="s1", owner="hub")
    store.open_log("ended", session="s1", owner="hub")
    store.append("ended", [b"a"], is_final=True)


@pytest.mark.thorough
def test_a_session_that_is_used_keeps_what_goes_on(cache_of_today, locmem):
    time_machine = pytest.importorskip("time_machine")  # not in the group of the gate
    store = cache_of_today
    with time_machine.travel(START, tick=False) as now:
        begin(store)
        for _ in range(300):
            now.shift(timedelta(minutes=1))
            store.renew("hub")
            store.see("s1")

        assert store.append("index", [b"a"]) == 1
        assert [session.key for session in store.sessions()] == ["s1"]
        assert locmem.get(f"mcp:2:log:{digest_of('ended')}") is None


@pytest.mark.thorough
def test_all_that_nobody_uses_expires_by_itself(cache_of_today, locmem):
    time_machine = pytest.importorskip("time_machine")
    store = cache_of_today
    with time_machine.travel(START, tick=False) as now:
        begin(store)
        store.ask("s1", "q1", owner="hub")
        store.answer("s1", "q1", b"yes")
        store.ask("s1", "q2", owner="hub")
        names = [key.partition(":1:")[2] for key in locmem._cache]
        now.shift(timedelta(hours=1))

        assert len(names) >= 7
        assert [name for name in names if locmem.get(name) is not None] == []
