"""Many threads at the same thing, in every kind of store."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import pytest
from django.db import connections

from mcp_django.stores.bounds import MOST_LOGS, MOST_QUESTIONS
from mcp_django.stores.interface import Log, Question, StoreFull
from tests.waiting import PATIENCE

pytestmark = pytest.mark.database


THREADS = 8


@pytest.fixture
def at_once():
    """What each of the threads gets from `work(number)`. All begin together."""

    def run(work, *, threads=THREADS):
        barrier = threading.Barrier(threads)

        def one(number):
            try:
                barrier.wait(PATIENCE)
                return work(number)
            finally:
                connections.close_all()

        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(one, range(threads), timeout=60))

    return run


@pytest.mark.thorough
def test_events_of_many_have_each_number_once(store, add_session, open_log, at_once, read):
    add_session()
    open_log()

    def append(thread):
        return [store.append("l1", [b"%d.%d" % (thread, turn)] * 2) for turn in range(10)]

    numbers = at_once(append)

    page = store.read("l1", session="s1", after=0)
    assert [event.number for event in page.events] == list(range(1, 161))
    assert sorted(chain.from_iterable(numbers)) == list(range(2, 161, 2))
    for thread, mine in enumerate(numbers):
        assert mine == sorted(mine)
        for turn, number in enumerate(mine):
            assert page.events[number - 1].data == b"%d.%d" % (thread, turn)
            assert page.events[number - 2].data == b"%d.%d" % (thread, turn)


def test_nothing_follows_the_event_that_ends_a_log(store, add_session, open_log, at_once, read):
    add_session()
    open_log()

    at_once(lambda thread: store.append("l1", [b"%d" % thread], is_final=thread == 3))

    assert read()[-1] == b"3"


def test_many_subscribers_do_not_get_past_the_limit(store, add_session, at_once):
    add_session()
    store.subscribe("s1", "django://first", most=2)

    got = at_once(lambda thread: store.subscribe("s1", f"django://{thread}", most=2))

    assert sum(got) == 1
    assert len(store.subscriptions("s1")) == 2


def test_the_same_subscription_of_many_is_one(store, add_session, at_once):
    add_session()

    got = at_once(lambda thread: store.subscribe("s1", "django://same", most=2))

    assert all(got)
    assert store.subscriptions("s1") == {"django://same"}


def test_one_of_many_closes_an_orphan(store, clock, add_session, open_log, at_once, read):
    add_session()
    open_log()
    store.append("l1", [b"a"])
    clock.pass_by(seconds=15)

    closed = at_once(lambda thread: store.close_orphan("l1", b"%d" % thread))

    assert sum(closed) == 1
    assert read() == [b"a", b"%d" % closed.index(True)]


def test_one_of_many_answers_and_one_of_many_gets_the_answer(store, add_session, at_once):
    add_session()
    store.ask(Question(session="s1", id="q1", owner="hub"))

    answered = at_once(lambda thread: store.answer("s1", "q1", b"%d" % thread))
    taken = at_once(lambda thread: store.take_answer("q1"))

    assert sum(answered) == 1
    assert [one for one in taken if one is not None] == [b"%d" % answered.index(True)]


def test_one_of_many_gets_the_standalone_stream(store, add_session, at_once):
    add_session()

    assert sum(at_once(lambda thread: store.hold_standalone("s1", owner=f"hub{thread}"))) == 1


def test_one_of_many_ends_a_session(store, add_session, open_log, at_once):
    add_session()
    open_log()
    store.append("l1", [b"a"])

    assert sum(at_once(lambda thread: store.end_session("s1"))) == 1


@pytest.mark.thorough
def test_many_do_not_ask_past_the_limit(store, add_session, at_once):
    add_session()
    for number in range(MOST_QUESTIONS - 3):
        store.ask(Question(session="s1", id=f"q{number}", owner="hub"))

    def ask(thread):
        try:
            store.ask(Question(session="s1", id=f"t{thread}", owner="hub"))
        except StoreFull:
            return False
        return True

    assert sum(at_once(ask)) == 3


@pytest.mark.thorough
def test_many_do_not_open_logs_past_the_limit(store, add_session, open_log, at_once):
    add_session()
    for number in range(MOST_LOGS - 3):
        open_log(f"l{number}")

    def begin(thread):
        try:
            store.open_log(Log(key=f"t{thread}", session="s1", owner="hub"))
        except StoreFull:
            return False
        return True

    assert sum(at_once(begin)) == 3


@pytest.mark.thorough
def test_a_session_may_end_while_all_kinds_of_things_are_added(
    store, add_session, open_log, at_once
):
    for turn in range(5):
        add_session(f"s{turn}")
        open_log(f"l{turn}", session=f"s{turn}")

        def work(thread, turn=turn):
            session, log = f"s{turn}", f"l{turn}"
            jobs = [
                lambda: store.end_session(session),
                lambda: store.append(log, [b"a"] * 5),
                lambda: store.append(log, [b"b"], is_final=True),
                lambda: store.subscribe(session, f"django://{thread}", most=5),
                lambda: store.open_log(Log(key=f"{log}.{thread}", session=session, owner="hub")),
                lambda: store.ask(Question(session=session, id=f"{log}.{thread}", owner="hub")),
                lambda: store.see(session),
                lambda: store.renew("hub"),
            ]
            jobs[thread]()

        at_once(work)

        assert store.session(f"s{turn}") is None
        assert store.append(f"l{turn}", [b"c"]) == 0
        assert store.subscriptions(f"s{turn}") == frozenset()
        assert not store.answer(f"s{turn}", f"l{turn}.5", b"")
    store.prune()
    assert store.prune() == 0


def test_many_may_prune_and_show_streams(store, clock, add_session, open_log, at_once):
    for number in range(20):
        add_session(f"s{number}")
        open_log(f"l{number}", session=f"s{number}")
    clock.pass_by(minutes=30)

    assert sum(at_once(lambda thread: store.prune())) >= 40
    assert store.sessions() == []
    assert store.prune() == 0
