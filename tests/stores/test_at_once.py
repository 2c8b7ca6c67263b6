"""Many processes and threads at the same thing, in every kind of cache."""

from __future__ import annotations

from functools import partial
from itertools import chain

import pytest

from mcp_django.stores.sessions import MOST_LOGS, MOST_QUESTIONS, Store, StoreFull
from tests.exposure.races import together

pytestmark = pytest.mark.database


THREADS = 8


@pytest.fixture
def at_once(cache, clock):
    """What each of the threads gets from `work(store, number)`. All begin together, each with a
    store of its own, as so many processes have.
    """

    def run(work):
        answers = together(lambda n: work(Store(lambda: cache, clock=clock), n), count=THREADS)
        assert [answer for answer in answers if isinstance(answer, Exception)] == []
        return answers

    return run


def ask(store, id):
    store.ask("s1", id, owner="hub")
    return True


def begin(store, key):
    store.open_log(key, session="s1", owner="hub")
    return True


#: What every thread does, and how many of them it works for.
RACES = {
    "the last subscription": (lambda store, n: store.subscribe("s1", f"django://{n}", most=1), 1),
    "the same subscription": (
        lambda store, n: store.subscribe("s1", "django://", most=1),
        THREADS,
    ),
    "the answer of somebody": (lambda store, n: store.take_answer("q2") is not None, 1),
    "an answer": (lambda store, n: store.answer("s1", "q1", b"%d" % n), 1),
    "the end of a session": (lambda store, n: store.end_session("s1"), 1),
}


@pytest.mark.parametrize("name", RACES)
def test_of_many_at_once_no_more_have_it_than_may(store, add_session, at_once, name):
    work, winners = RACES[name]
    add_session()
    ask(store, "q1")
    ask(store, "q2")
    store.answer("s1", "q2", b"yes")

    assert sum(at_once(work)) == winners


def test_an_orphan_is_closed_once(store, clock, log, at_once, read):
    clock.pass_by(seconds=15)

    at_once(lambda store, n: store.append("l1", [b"%d" % n], is_final=True, if_orphan=True))

    assert len(read()) == 1


@pytest.mark.thorough
@pytest.mark.parametrize(("add", "most"), [(ask, MOST_QUESTIONS), (begin, MOST_LOGS)])
def test_many_do_not_get_past_a_limit(store, session, at_once, add, most):
    for number in range(most - 3):
        add(store, f"k{number}")

    def add_one(store, thread):
        try:
            return add(store, f"t{thread}")
        except StoreFull:
            return False

    assert sum(at_once(add_one)) == 3


@pytest.mark.thorough
def test_events_of_many_have_each_number_once(store, log, at_once):
    def append(store, thread):
        return [store.append("l1", [b"%d.%d" % (thread, turn)] * 2) for turn in range(10)]

    numbers = at_once(append)

    page = store.read("l1", session="s1", after=0)
    assert [event.number for event in page.events] == list(range(1, 161))
    assert sorted(chain.from_iterable(numbers)) == list(range(2, 161, 2))
    for thread, mine in enumerate(numbers):
        assert mine == sorted(mine)
        for turn, number in enumerate(mine):
            assert page.events[number - 1].data == b"%d.%d" % (thread, turn)


def test_nothing_follows_the_event_that_ends_a_log(store, log, at_once, read):
    at_once(lambda store, n: store.append("l1", [b"%d" % n], is_final=n == 3))

    assert read()[-1] == b"3"


@pytest.mark.thorough
def test_a_session_may_end_while_all_kinds_of_things_are_added(
    store, add_session, open_log, at_once
):
    for turn in range(5):
        session, log = f"s{turn}", f"l{turn}"
        add_session(session)
        open_log(log, session=session)

        at_once(partial(do_one_of_all_kinds, session=session, log=log))

        assert store.session(session) is None
        assert store.append(log, [b"c"]) == 0
        assert store.subscriptions(session) == frozenset()
        assert not store.answer(session, f"{log}.5", b"")


def do_one_of_all_kinds(store, thread, *, session, log):
    jobs = [
        lambda: store.end_session(session),
        lambda: store.append(log, [b"a"] * 5),
        lambda: store.append(log, [b"b"], is_final=True),
        lambda: store.subscribe(session, "django://1", most=5),
        lambda: store.open_log(f"{log}.4", session=session, owner="hub"),
        lambda: store.ask(session, f"{log}.5", owner="hub"),
        lambda: store.see(session),
        lambda: store.renew("hub"),
    ]
    jobs[thread]()


@pytest.mark.thorough
def test_threads_of_one_process_take_turns(store, session, cache, clock, at_once):
    taken = at_once(lambda other, n: store.subscribe("s1", f"django://{n}", most=THREADS))

    assert all(taken)
    assert len(store.subscriptions("s1")) == THREADS
