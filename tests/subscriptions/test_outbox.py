"""When a change goes out, and what becomes of too many. Threads, sinks, and ends of processes."""

from __future__ import annotations

import atexit
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User

from mcp_django.principal import Principal
from mcp_django.subscriptions.outbox import Gathering, Outbox, collapse
from mcp_django.subscriptions.topics import ANSWER, EVERYTHING, LOG, TOOLS, Change, control_topic
from tests.changed import list_changed
from tests.waiting import PATIENCE

ORDERS = "django://objects/shop.order"
ONE, TWO = Change(topic="one"), Change(topic="two")


def order(number, **options):
    return Change(topic=f"{ORDERS}/{number}", **options)


@pytest.fixture
def gathering(clock):
    return Gathering(clock=clock, gather=0.25, most=10)


def test_the_first_change_goes_out_at_once_and_repeats_within_the_time_become_one(
    gathering, clock
):
    is_news = [gathering.add([order(1), order(1)]), gathering.add([order(2)])]
    waits = [gathering.wait()]
    first = gathering.take()
    waits.append(gathering.wait())

    for _ in range(5):
        clock.now += 0.04
        is_news.append(gathering.add([order(1), order(3)]))

    assert (first, waits) == ({order(1), order(2)}, [0, None])
    assert is_news == [True, False, True, False, False, False, False]
    assert gathering.take() == {order(3)}
    assert gathering.wait() == pytest.approx(0.05)
    clock.now += 0.06
    assert gathering.take() == {order(1)}
    assert not gathering
    clock.now += 0.25
    gathering.add([order(1)])
    assert gathering.take() == {order(1)}


def test_nothing_is_remembered_of_what_went_out_long_ago(gathering, clock):
    for number in range(100):
        gathering.add([order(number)])
        gathering.take()
        clock.now += 0.1

    assert len(gathering._gone) <= 4


def test_too_many_records_become_their_collection_as_hidden_and_as_far_as_they_were():
    collapsed = collapse(
        [
            *(order(1), order(2, is_hidden=True), order(3, server="b")),
            *(order(number, users=frozenset(str(number))) for number in range(20)),
            *(list_changed(TOOLS, users=frozenset(str(number))) for number in range(20)),
        ],
        most=10,
    )

    collection = Change(topic=ORDERS, is_whole=True)
    assert collapsed == {
        collection,
        Change(topic=ORDERS, is_whole=True, is_hidden=True),
        Change(topic=ORDERS, is_whole=True, server="b"),
        list_changed(TOOLS),
    }
    assert collection.touches(order(1).topic)
    assert collection.touches(ORDERS)
    assert not collection.touches("django://objects/shop.orders/1")


def test_what_has_no_collection_becomes_everything_but_for_what_processes_tell_each_other(
    gathering,
):
    log = Change(topic=control_topic(LOG, "a"))
    for _ in range(3):
        # It never waits.
        gathering.add([log])
        assert gathering.take() == {log}

    answers = {Change(topic=control_topic(ANSWER, str(number))) for number in range(11)}
    reports = {Change(topic=f"shop://reports/{year}") for year in range(11)}

    for others in (set(), answers):
        gathering.add(reports | others)
        assert gathering.take() == {EVERYTHING, *others}
    assert EVERYTHING.touches("shop://reports/3")
    assert EVERYTHING.touches(TOOLS)
    caller = Principal(user=User(pk=1), scopes=frozenset(), method="x", server="any", tenant="a")
    assert EVERYTHING.concerns(caller, user="1")


# The thread, and what it hands changes to


@pytest.fixture
def outbox():
    """Its repeats would wait for an hour."""
    outbox = Outbox(make=lambda: Gathering(gather=3600))
    yield outbox
    outbox.flush()
    atexit.unregister(outbox.flush)


@pytest.fixture
def batches(outbox):
    batches = queue.Queue()
    outbox.add_sink(batches.put)
    return batches


def test_each_sink_gets_what_is_published_in_another_thread_whatever_becomes_of_others(
    outbox, caplog
):
    def fail(batch):
        raise RuntimeError("broken")

    batches, threads = queue.Queue(), queue.Queue()
    for sink in (fail, batches.put, lambda batch: threads.put(threading.current_thread())):
        outbox.add_sink(sink)

    for change in (ONE, TWO):
        outbox.publish([change])
        assert outbox.flush(PATIENCE)
        assert batches.get_nowait() == {change}

    thread = threads.get_nowait()
    assert thread is not threading.current_thread()
    assert thread.daemon
    assert "could not be handed over" in caplog.text


def test_flush_does_not_wait_for_repeats(outbox, batches):
    outbox.publish([ONE])
    assert batches.get(timeout=PATIENCE) == {ONE}
    outbox.publish([ONE])
    assert batches.empty()

    assert outbox.flush(PATIENCE)

    assert batches.get_nowait() == {ONE}


def test_a_publisher_never_waits_for_a_sink_that_hangs_and_flush_gives_up(outbox):
    left, entered = threading.Event(), threading.Event()

    def hang(batch):
        entered.set()
        left.wait(PATIENCE)

    outbox.add_sink(hang)
    outbox.publish([ONE])
    assert entered.wait(PATIENCE)

    outbox.publish(Change(topic=str(number)) for number in range(5000))

    assert len(outbox._waiting) <= 1000
    assert not outbox.flush(0.01)
    left.set()
    assert outbox.flush(PATIENCE)


def test_a_sink_that_flushes_does_not_wait_for_itself(outbox):
    found = queue.Queue()
    outbox.add_sink(lambda batch: found.put(outbox.flush(PATIENCE)))

    outbox.publish([ONE])

    assert found.get(timeout=PATIENCE) is False


def test_the_default_sink_is_made_once_in_the_thread_of_the_outbox_when_that_works(
    outbox, batches, caplog
):
    found, made = queue.Queue(), []
    answers = iter([RuntimeError("no layer"), found.put])

    def factory():
        made.append(threading.current_thread().name)
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    outbox.register_default_sink(factory)
    assert not made
    for change in (ONE, TWO, Change(topic="three")):
        outbox.publish([change])
        assert outbox.flush(PATIENCE)

    assert made == ["mcp-outbox"] * 2
    assert found.get_nowait() == {TWO}
    assert found.get_nowait() == {Change(topic="three")}
    assert "cannot be told" in caplog.text


def test_a_thread_that_died_is_replaced(outbox, monkeypatch):
    died = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    found = queue.Queue()
    answers = iter([SystemExit, None])

    def sink(batch):
        if (answer := next(answers)) is not None:
            raise answer
        found.put(batch)

    outbox.add_sink(sink)
    outbox.publish([ONE])
    outbox._thread.join(PATIENCE)

    outbox.publish([TWO])

    assert found.get(timeout=PATIENCE) == {TWO}


def test_many_threads_publish_and_nothing_is_lost(outbox, batches):
    def work(name):
        for number in range(50):
            outbox.publish([Change(topic=f"{name}/{number}")])

    with ThreadPoolExecutor(4) as threads:
        threads.map(work, "abcd")
    assert outbox.flush(PATIENCE)
    assert len(frozenset().union(*batches.queue)) == 200


def test_where_no_thread_can_start_the_publisher_hands_over_itself(outbox, batches, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)

    outbox.publish([ONE])

    assert batches.get_nowait() == {ONE}
