"""Threads, sinks, forks and ends of processes."""

from __future__ import annotations

import queue
import threading

import pytest

from mcp_django.subscriptions.outbox import Gathering, Outbox
from mcp_django.subscriptions.topics import Change
from tests.waiting import PATIENCE

ONE, TWO = Change(topic="one"), Change(topic="two")


def patient():
    """Repeats would wait for an hour."""
    return Gathering(gather=3600)


@pytest.fixture
def outbox():
    found = Outbox(make=patient)
    yield found
    found.close()


@pytest.fixture
def batches(outbox):
    found: queue.Queue[frozenset[Change]] = queue.Queue()
    outbox.add_sink(found.put)
    return found


def test_each_sink_gets_what_is_published_in_another_thread(outbox, batches):
    threads = queue.Queue()
    outbox.add_sink(lambda batch: threads.put(threading.current_thread()))

    outbox.publish([ONE, TWO])

    assert batches.get(timeout=PATIENCE) == {ONE, TWO}
    thread = threads.get(timeout=PATIENCE)
    assert thread is not threading.current_thread()
    assert thread.daemon


def test_a_sink_that_fails_takes_nothing_from_the_others(outbox, caplog):
    def fail(batch):
        raise RuntimeError("broken")

    outbox.add_sink(fail)
    found = queue.Queue()
    outbox.add_sink(found.put)

    outbox.publish([ONE])
    outbox.publish([TWO])

    assert outbox.flush(PATIENCE)
    assert found.get_nowait() | (found.get_nowait() if not found.empty() else set()) == {ONE, TWO}
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

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outbox.flush(PATIENCE)

    found = set()
    while not batches.empty():
        found |= batches.get_nowait()
    assert len(found) == 200


def test_where_no_thread_can_start_the_publisher_hands_over_itself(outbox, batches, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)

    outbox.publish([ONE])

    assert batches.get_nowait() == {ONE}
