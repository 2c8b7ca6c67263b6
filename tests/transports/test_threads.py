from __future__ import annotations

import asyncio
import threading
import time
from contextvars import ContextVar
from threading import Event

import pytest
from django.db import Error, connection, connections
from django.utils import timezone, translation

from mcp_django.exceptions import Busy, Cancelled
from mcp_django.transports.threads import (
    OutOfTime,
    Run,
    ThreadLane,
    as_exception,
    close_old_connections,
)
from tests.transports.wire import PATIENCE, Gate

ANYTHING = ContextVar("ANYTHING", default="nothing")


@pytest.fixture
def make_lane():
    made = []

    def make(size=1, max_waiting=10):
        lane = ThreadLane("test", size=size, max_waiting=max_waiting)
        made.append(lane)
        return lane

    yield make
    for lane in made:
        lane.close()


def start(lane, job, *, seconds=PATIENCE, cancelled=None, **options):
    return lane.start(job, seconds=seconds, cancelled=cancelled or Event(), **options)


async def done(future):
    async with asyncio.timeout(PATIENCE):
        return await future


async def lose_a_thread(lane, gate):
    with pytest.raises(OutOfTime):
        await done(start(lane, gate.wait, seconds=0.01))


@pytest.mark.asyncio
async def test_a_job_runs_in_a_thread_of_the_lane_and_its_result_comes_back(make_lane):
    name = await done(start(make_lane(), lambda: threading.current_thread().name))

    assert name.startswith("mcp-test")


@pytest.mark.asyncio
async def test_what_a_job_raises_comes_back(make_lane):
    def job():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await done(start(make_lane(), job))


@pytest.mark.parametrize("kind", [StopIteration, SystemExit, asyncio.CancelledError])
@pytest.mark.asyncio
async def test_what_a_future_cannot_carry_comes_back_as_an_error(make_lane, kind):
    def job():
        raise kind

    with pytest.raises(RuntimeError, match=kind.__name__):
        await done(start(make_lane(), job))


@pytest.mark.asyncio
async def test_an_ordinary_exception_is_handed_on_as_it_is():
    error = ValueError("as it is")

    assert as_exception(error) is error


@pytest.mark.asyncio
async def test_jobs_of_two_threads_run_at_the_same_time(make_lane):
    lane, together = make_lane(size=2), threading.Barrier(2)

    first, second = (start(lane, lambda: together.wait(PATIENCE)) for _ in range(2))

    assert {await done(first), await done(second)} == {0, 1}


@pytest.mark.asyncio
async def test_a_full_queue_refuses(make_lane, gate):
    lane = make_lane(max_waiting=1)
    running = start(lane, gate.wait)
    await gate.until_reached()
    waiting = start(lane, int)

    with pytest.raises(Busy):
        start(lane, int)

    gate.open()
    await done(running)
    assert await done(waiting) == 0
    assert lane.waiting == 0


@pytest.mark.asyncio
async def test_the_end_of_a_call_that_has_taken_effect_is_never_refused(make_lane, gate):
    lane = make_lane(max_waiting=0)

    with pytest.raises(Busy):
        start(lane, int)

    assert await done(start(lane, int, is_owed=True)) == 0


@pytest.mark.asyncio
async def test_waiting_for_a_thread_does_not_count_as_running(make_lane, gate):
    lane = make_lane()
    blocking = start(lane, gate.wait)
    await gate.until_reached()
    late = start(lane, lambda: "done", seconds=0.02)

    # Longer than the late job may run.
    await asyncio.wait({late}, timeout=0.06)
    gate.open()

    await done(blocking)
    assert await done(late) == "done"


@pytest.mark.asyncio
async def test_a_job_that_runs_for_too_long_is_told_and_its_thread_counted(make_lane, gate):
    lane, cancelled = make_lane(), Event()

    with pytest.raises(OutOfTime):
        await done(start(lane, gate.wait, seconds=0.01, cancelled=cancelled))

    assert cancelled.is_set()
    assert lane.zombies == 1


@pytest.mark.asyncio
async def test_a_lost_thread_counts_no_more_when_its_job_ends(make_lane, gate):
    lane = make_lane()
    await lose_a_thread(lane, gate)

    gate.open()
    await done(start(lane, int, is_owed=True))

    assert lane.zombies == 0
    assert await done(start(lane, int)) == 0


@pytest.mark.parametrize(("size", "bearable"), [(1, 0), (2, 0), (3, 1), (4, 1)])
@pytest.mark.asyncio
async def test_a_lane_refuses_when_half_of_its_threads_are_lost(make_lane, gate, size, bearable):
    lane = make_lane(size=size)

    for _ in range(bearable):
        await lose_a_thread(lane, gate)
    assert await done(start(lane, int)) == 0
    await lose_a_thread(lane, gate)

    with pytest.raises(Busy):
        start(lane, int)


@pytest.mark.asyncio
async def test_a_job_cancelled_in_the_queue_never_starts_and_leaves_its_place(make_lane, gate):
    lane, cancelled, started = make_lane(), Event(), Event()
    running = start(lane, gate.wait)
    await gate.until_reached()
    waiting = start(lane, started.set, cancelled=cancelled)

    waiting.cancel()
    await asyncio.wait({waiting}, timeout=PATIENCE)

    assert lane.waiting == 0
    gate.open()
    await done(running)
    await done(start(lane, int))
    assert cancelled.is_set()
    assert not started.is_set()


@pytest.mark.asyncio
async def test_a_job_whose_flag_is_set_before_it_begins_does_not_run(make_lane):
    cancelled, started = Event(), Event()
    cancelled.set()

    with pytest.raises(Cancelled):
        await done(start(make_lane(), started.set, cancelled=cancelled))

    assert not started.is_set()


@pytest.mark.asyncio
async def test_a_job_cancelled_while_it_runs_is_told(make_lane, gate):
    lane, cancelled = make_lane(), Event()
    running = start(lane, gate.wait, cancelled=cancelled)
    await gate.until_reached()

    running.cancel()
    await asyncio.wait({running}, timeout=PATIENCE)

    assert cancelled.is_set()


@pytest.mark.asyncio
async def test_a_cancelled_job_that_goes_on_for_too_long_counts_as_lost(make_lane, gate):
    lane, cancelled = make_lane(), Event()
    running = start(lane, gate.wait, seconds=0.02, cancelled=cancelled)
    await gate.until_reached()

    running.cancel()
    await asyncio.wait({start(lane, int)}, timeout=0.1)

    assert lane.zombies == 1


@pytest.mark.asyncio
async def test_a_result_that_nobody_waits_for_is_closed(make_lane, gate):
    lane, closed = make_lane(), asyncio.Event()

    class Unwanted:
        def close(self):
            closed.set()

    def job():
        gate.wait()
        return Unwanted()

    running = start(lane, job)
    await gate.until_reached()
    running.cancel()
    gate.open()

    assert await done(closed.wait())


@pytest.mark.asyncio
async def test_a_job_that_ends_while_the_loop_looks_at_the_clock_is_no_loss(make_lane):
    lane = make_lane()
    run = Run(int, lane=lane, seconds=0, cancelled=Event())
    run.started = time.monotonic()
    lane.end(run)

    run._look()

    assert lane.zombies == 0
    assert not run.cancelled.is_set()
    assert not run.future.done()


def test_a_thread_ends_quietly_when_its_loop_is_gone(make_lane):
    lane, gate = make_lane(), Gate()

    async def leave():
        start(lane, gate.wait)
        await gate.until_reached()

    asyncio.run(leave())
    gate.open()
    lane.close()

    assert gate.opened.is_set()


@pytest.mark.asyncio
async def test_the_context_of_the_request_is_seen_in_the_thread_and_leaks_nowhere(make_lane):
    lane = make_lane()

    def job():
        found = ANYTHING.get(), translation.get_language(), timezone.get_current_timezone_name()
        ANYTHING.set("left by a job")
        translation.activate("it")
        timezone.activate("Asia/Tokyo")
        return found

    ANYTHING.set("of the request")
    with translation.override("fr"), timezone.override("Europe/Paris"):
        first = await done(start(lane, job))
    ANYTHING.set("of another request")
    second = await done(start(lane, job))

    assert first == ("of the request", "fr", "Europe/Paris")
    assert second == ("of another request", "en-us", "UTC")


@pytest.mark.asyncio
async def test_closing_a_lane_ends_its_threads_and_the_next_job_starts_new_ones(make_lane):
    lane = make_lane(size=2)
    thread = await done(start(lane, threading.current_thread))

    lane.close()
    lane.close()

    assert not thread.is_alive()
    assert await done(start(lane, threading.current_thread)) is not thread


# Connections


def backend():
    """What tells one connection from another."""
    connection.ensure_connection()
    return connection.connection


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_thread_keeps_its_connection(make_lane):
    lane = make_lane()

    first = await done(start(lane, backend))

    assert await done(start(lane, backend)) is first


# SQLite's connections always call themselves usable.
@pytest.mark.skipif(connection.vendor == "sqlite", reason="A file does not hang up.")
@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_connection_that_became_unusable_is_replaced(make_lane):
    lane = make_lane()

    def spoil():
        raw = backend()
        raw.close()
        with pytest.raises(Error), connection.cursor() as cursor:
            cursor.execute("SELECT 1")

    def ask():
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            return cursor.fetchone()

    await done(start(lane, spoil))

    assert await done(start(lane, ask)) == (1,)


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_connection_that_is_too_old_is_replaced(make_lane):
    lane = make_lane()
    first = await done(start(lane, backend))

    def grow_old():
        connection.close_at = time.monotonic() - 1

    await done(start(lane, grow_old))

    assert await done(start(lane, backend)) is not first


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_job_that_leaves_autocommit_off_leaves_no_transaction_to_the_next(make_lane):
    lane = make_lane()

    await done(start(lane, lambda: connection.set_autocommit(False)))

    assert await done(start(lane, lambda: connection.get_autocommit()))


@pytest.mark.asyncio
async def test_a_connection_that_cannot_be_closed_does_not_hold_up_the_others(monkeypatch):
    class Broken:
        def close_if_unusable_or_obsolete(self):
            raise Error("gone")

    closed = []

    class Whole:
        def close_if_unusable_or_obsolete(self):
            closed.append(self)

    monkeypatch.setattr(connections, "all", lambda **options: [Broken(), Whole()])

    close_old_connections()

    assert len(closed) == 1
