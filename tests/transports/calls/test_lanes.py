from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from threading import Event

import pytest
from django.db import Error, connection, connections
from django.utils import timezone, translation

from mcp_django.auth.authenticate import ADDRESS
from mcp_django.connections import KEPT, close_old_connections
from mcp_django.exceptions import Busy, Cancelled
from mcp_django.exposure.primitives import Lane
from mcp_django.transports.calls.lanes import (
    LONGEST_TURN,
    Lanes,
    OutOfTime,
    QuickFunctions,
    Run,
    ThreadLane,
    as_exception,
)
from tests.transports.wire import Gate
from tests.waiting import PATIENCE

pytestmark = pytest.mark.database


ANYTHING = ContextVar("ANYTHING", default="nothing")


@pytest.fixture
def make_lane():
    made = []

    def make(size=1, max_waiting=10, takes_turns=False):
        lane = ThreadLane("test", size=size, max_waiting=max_waiting, takes_turns=takes_turns)
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


@pytest.mark.thorough
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
    assert lane.lost_threads == 1


@pytest.mark.asyncio
async def test_a_lost_thread_counts_no_more_when_its_job_ends(make_lane, gate):
    lane = make_lane()
    await lose_a_thread(lane, gate)

    gate.open()
    await done(start(lane, int, is_owed=True))

    assert lane.lost_threads == 0
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


@pytest.mark.thorough
@pytest.mark.asyncio
async def test_a_cancelled_job_that_goes_on_for_too_long_counts_as_lost(make_lane, gate):
    lane, cancelled = make_lane(), Event()
    running = start(lane, gate.wait, seconds=0.02, cancelled=cancelled)
    await gate.until_reached()

    running.cancel()
    await asyncio.wait({start(lane, int)}, timeout=0.1)

    assert lane.lost_threads == 1


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

    assert lane.lost_threads == 0
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

    usual = translation.get_language()
    ANYTHING.set("of the request")
    with translation.override("fr"), timezone.override("Europe/Paris"):
        first = await done(start(lane, job))
    ANYTHING.set("of another request")
    second = await done(start(lane, job))

    assert first == ("of the request", "fr", "Europe/Paris")
    assert second == ("of another request", usual, "UTC")


@pytest.mark.asyncio
async def test_closing_a_lane_ends_its_threads_and_the_next_job_starts_new_ones(make_lane):
    lane = make_lane(size=2)
    thread = await done(start(lane, threading.current_thread))

    lane.close()
    lane.close()

    assert not thread.is_alive()
    assert await done(start(lane, threading.current_thread)) is not thread


# Callers


@pytest.mark.asyncio
async def test_callers_take_turns_whoever_came_first(make_lane, gate):
    lane, order = make_lane(max_waiting=40), []
    running = start(lane, gate.wait)
    await gate.until_reached()
    many = [start(lane, partial(order.append, "ada"), caller="ada") for _ in range(3)]
    two = [start(lane, partial(order.append, "ben"), caller="ben") for _ in range(2)]

    gate.open()
    await asyncio.gather(*map(done, [running, *many, *two]))

    assert order == ["ada", "ben", "ada", "ben", "ada"]


@pytest.mark.asyncio
async def test_a_caller_fills_a_quarter_of_the_queue_and_others_still_get_a_place(make_lane, gate):
    lane = make_lane(max_waiting=8)
    running = start(lane, gate.wait)
    await gate.until_reached()
    first = [start(lane, int, caller="ada") for _ in range(2)]

    with pytest.raises(Busy):
        start(lane, int, caller="ada")
    owed = start(lane, int, caller="ada", is_owed=True)
    other = start(lane, int, caller="ben")

    gate.open()
    await asyncio.gather(*map(done, [running, *first, owed, other]))


@pytest.mark.asyncio
async def test_strangers_of_many_addresses_leave_a_quarter_of_the_queue_to_users(make_lane, gate):
    lane = make_lane(max_waiting=8)
    running = start(lane, gate.wait)
    await gate.until_reached()
    strangers = [start(lane, int, caller=f"{ADDRESS}{n}") for n in range(6)]

    with pytest.raises(Busy):
        start(lane, int, caller=f"{ADDRESS}6")
    users = [start(lane, int, caller=name) for name in ("ada", "ben")]

    gate.open()
    await asyncio.gather(*map(done, [running, *strangers, *users]))
    await done(start(lane, int, caller=f"{ADDRESS}6"))


@pytest.mark.asyncio
async def test_no_caller_has_all_threads_of_a_lane(make_lane, gate):
    lane = make_lane(size=2, max_waiting=40)
    first = start(lane, gate.wait, caller="ada")
    await gate.until_reached()
    second = start(lane, int, caller="ada")

    assert await done(start(lane, int, caller="ben")) == 0
    assert not second.done()
    gate.open()
    await done(first)
    assert await done(second) == 0
    assert lane.waiting == 0


@pytest.mark.asyncio
async def test_jobs_of_the_process_itself_may_have_all_threads(make_lane):
    lane, together = make_lane(size=2), threading.Barrier(2)

    both = [start(lane, lambda: together.wait(PATIENCE)) for _ in range(2)]

    assert {await done(job) for job in both} == {0, 1}


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.asyncio
async def test_jobs_that_are_withdrawn_and_come_again_all_find_a_thread(make_lane, gate, size):
    lane, ran = make_lane(size=size, max_waiting=80), []
    running = start(lane, gate.wait, caller="ada")
    await gate.until_reached()

    for number in range(20):
        unwanted = [start(lane, int, caller=caller) for caller in ("ada", "ben")]
        for job in unwanted:
            job.cancel()
        await asyncio.wait(unwanted, timeout=PATIENCE)
        wanted = start(lane, partial(ran.append, number), caller="ada")
        if number % 2:
            wanted.cancel()
            await asyncio.wait({wanted}, timeout=PATIENCE)
        else:
            running = asyncio.gather(running, wanted)
    gate.open()
    await done(running)
    lane.close()

    assert ran == list(range(0, 20, 2))
    assert lane.waiting == 0
    assert not lane._running


@pytest.mark.asyncio
async def test_a_job_that_is_withdrawn_while_it_is_held_back_takes_no_turn_of_others(
    make_lane, gate
):
    lane, ran = make_lane(size=2), []
    running = start(lane, gate.wait, caller="ada")
    await gate.until_reached()
    held_back = start(lane, int, caller="ada")
    await done(start(lane, int, caller="ben"))
    assert lane.waiting == 1

    held_back.cancel()
    await asyncio.wait({held_back}, timeout=PATIENCE)
    later = start(lane, partial(ran.append, "later"), caller="ada")
    await done(start(lane, int))
    gate.open()
    await asyncio.gather(*map(done, [running, later]))

    assert ran == ["later"]
    lane.close()
    assert lane.waiting == 0
    assert not lane._running


@pytest.mark.asyncio
async def test_a_lane_that_is_closed_while_jobs_are_held_back_runs_them_first(make_lane, gate):
    lane, ran = make_lane(size=2), Event()
    running = start(lane, gate.wait, caller="ada")
    await gate.until_reached()
    held_back = start(lane, ran.set, caller="ada")
    await done(start(lane, int))

    closing = asyncio.create_task(asyncio.to_thread(lane.close))
    gate.open()
    await asyncio.gather(*map(done, [closing, running, held_back]))

    assert ran.is_set()
    assert lane.workers == []


# Quick functions, one at a time


async def teach(lane, *functions):
    """Have the lane know these functions, each of which was quick."""
    for function in functions:
        await done(start(lane, int, function=function))


class Meeting:
    """How many jobs ran at the same time at most."""

    def __init__(self):
        self.lock, self.inside, self.most = threading.Lock(), 0, 0

    def __call__(self):
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        # Others get the interpreter's lock here, and would come in.
        time.sleep(0)
        sum(range(1000))
        with self.lock:
            self.inside -= 1


@pytest.mark.asyncio
async def test_functions_that_are_known_to_be_quick_run_one_at_a_time(make_lane):
    lane, meeting = make_lane(size=4, max_waiting=400, takes_turns=True), Meeting()
    await teach(lane, "a", "b")

    jobs = [start(lane, meeting, function="ab"[n % 2], caller=f"user {n % 5}") for n in range(60)]
    await asyncio.gather(*map(done, jobs))

    assert meeting.most == 1
    assert lane.waiting == 0


@pytest.mark.parametrize("taught", [["a"], []])
@pytest.mark.asyncio
async def test_a_function_that_is_not_known_to_be_quick_runs_beside_others(make_lane, taught):
    lane, together = make_lane(size=4, takes_turns=True), threading.Barrier(2)
    await teach(lane, *taught)

    both = [start(lane, lambda: together.wait(PATIENCE), function=name) for name in ("a", "b")]

    assert {await done(job) for job in both} == {0, 1}


@pytest.mark.asyncio
async def test_where_threads_do_not_fight_quick_functions_run_together(make_lane):
    lane, together = make_lane(size=2), threading.Barrier(2)
    await teach(lane, "a")

    both = [start(lane, lambda: together.wait(PATIENCE), function="a") for _ in range(2)]

    assert {await done(job) for job in both} == {0, 1}


@pytest.mark.asyncio
async def test_a_quick_function_that_is_slow_for_once_does_not_hold_up_the_others(make_lane, gate):
    lane = make_lane(size=4, takes_turns=True)
    await teach(lane, "a", "b")
    slow = start(lane, gate.wait, function="a", caller="ada")
    await gate.until_reached()

    assert await done(start(lane, int, function="b", caller="ben")) == 0
    assert await done(start(lane, int, function="b", caller="ada")) == 0
    assert not slow.done()
    gate.open()
    await done(slow)


@pytest.mark.asyncio
async def test_a_function_that_was_slow_once_takes_no_turn_of_others(make_lane, gate):
    lane, together = make_lane(size=4, takes_turns=True), threading.Barrier(2)
    await teach(lane, "a", "b")
    slow = start(lane, gate.wait, function="a")
    await gate.until_reached()
    await done(start(lane, int, function="b"))

    again = start(lane, lambda: together.wait(PATIENCE), function="a")
    quick = start(lane, lambda: together.wait(PATIENCE), function="b")

    assert {await done(again), await done(quick)} == {0, 1}
    gate.open()
    await done(slow)


@pytest.mark.thorough
@pytest.mark.asyncio
async def test_a_quick_function_that_is_lost_takes_no_turn_with_it(make_lane, gate):
    lane = make_lane(size=4, takes_turns=True)
    await teach(lane, "a", "b")

    with pytest.raises(OutOfTime):
        await done(start(lane, gate.wait, function="a", seconds=0.01))

    assert await done(start(lane, int, function="b")) == 0


@pytest.mark.asyncio
async def test_what_is_withdrawn_while_it_waits_for_its_turn_never_runs(make_lane, gate):
    lane, ran = make_lane(size=4, takes_turns=True), []
    await teach(lane, "a")
    first = start(lane, gate.wait, function="a")
    await gate.until_reached()
    unwanted = start(lane, partial(ran.append, "unwanted"), function="a")

    unwanted.cancel()
    await asyncio.wait({unwanted}, timeout=PATIENCE)
    gate.open()
    await done(first)
    await done(start(lane, partial(ran.append, "wanted"), function="a"))

    assert ran == ["wanted"]


@pytest.mark.asyncio
async def test_a_quick_function_that_raises_gives_up_its_turn(make_lane):
    lane = make_lane(size=4, takes_turns=True)
    await teach(lane, "a")

    def job():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await done(start(lane, job, function="a"))

    assert await done(start(lane, int, function="a")) == 0


@pytest.mark.asyncio
async def test_quick_functions_of_one_caller_do_not_delay_another_by_more_than_one(
    make_lane, gate
):
    lane, order = make_lane(size=4, max_waiting=40, takes_turns=True), []
    await teach(lane, "a")
    first = start(lane, gate.wait, function="a", caller="ada")
    await gate.until_reached()
    many = [
        start(lane, partial(order.append, "ada"), function="a", caller="ada") for _ in range(5)
    ]
    one = start(lane, partial(order.append, "ben"), function="a", caller="ben")

    gate.open()
    await asyncio.gather(*map(done, [first, *many, one]))

    assert order.index("ben") <= 1


def test_a_function_is_quick_until_it_takes_long_and_again_after_many_quick_runs():
    quick = QuickFunctions()

    assert "a" not in quick
    quick.note("a", seconds=0.02, cpu=0.02)
    assert "a" in quick
    quick.note("a", seconds=2, cpu=2)
    assert "a" not in quick
    # Quick again, which may be luck: the answer was in a cache.
    quick.note("a", seconds=0.001, cpu=0.001)
    assert "a" not in quick
    for _ in range(50):
        quick.note("a", seconds=0.001, cpu=0.001)
    assert "a" in quick


def test_a_machine_that_is_busy_for_a_moment_makes_no_function_slow():
    quick = QuickFunctions()
    for _ in range(10):
        quick.note("a", seconds=0.001, cpu=0.001)

    quick.note("a", seconds=LONGEST_TURN, cpu=0.001)

    assert "a" in quick


def test_a_function_that_held_up_others_is_slow_at_once_and_recovers():
    quick = QuickFunctions()
    quick.note("a", seconds=0.001, cpu=0.001)

    quick.note_slow("a")
    assert "a" not in quick
    for _ in range(10):
        quick.note("a", seconds=0.001, cpu=0.001)

    assert "a" in quick


@pytest.mark.parametrize(
    ("seconds", "cpu", "is_quick"), [(0.009, 0.0, True), (0.03, 0.01, True), (0.03, 0.001, False)]
)
def test_what_mostly_waits_is_not_quick(seconds, cpu, is_quick):
    quick = QuickFunctions()

    quick.note("a", seconds=seconds, cpu=cpu)

    assert ("a" in quick) is is_quick


def test_turns_are_for_functions_of_the_site_on_sqlite():
    lanes = Lanes()

    assert lanes[Lane.WORK].takes_turns is (connection.vendor == "sqlite")
    assert not lanes[Lane.QUERY].takes_turns


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


@pytest.fixture(params=["closed", "pool", "kept"])
def database(request, monkeypatch):
    """What the site does with connections of views. The test's own connection stays."""
    given = connections.settings["default"]
    options, age = {**given["OPTIONS"]}, 0
    if request.param == "pool":
        options["pool"] = {"min_size": 1}
    elif request.param == "kept":
        age = 30
    settings = {**given, "CONN_MAX_AGE": age, "OPTIONS": options}
    monkeypatch.setitem(connections.settings, "default", settings)
    return settings


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_thread_keeps_its_connection_whatever_views_do_with_theirs(make_lane, database):
    lane = make_lane()

    first = await done(start(lane, backend))
    ages = await done(start(lane, lambda: connection.close_at - time.monotonic()))

    assert await done(start(lane, backend)) is first
    assert 0 < ages <= (database["CONN_MAX_AGE"] or KEPT)


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_thread_takes_no_connection_out_of_a_pool(make_lane, database):
    lane = make_lane()

    settings = await done(start(lane, lambda: connection.settings_dict))

    assert "pool" not in settings["OPTIONS"]
    assert settings["NAME"] == database["NAME"]


def test_the_connections_of_others_are_as_the_site_has_them(database):
    def ask():
        return connections["default"].settings_dict

    with ThreadPoolExecutor(1) as others:
        assert others.submit(ask).result() is database


@pytest.mark.skipif(connection.vendor == "sqlite", reason="A file does not hang up.")
@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_connection_that_was_lost_while_nobody_called_is_replaced(make_lane, monkeypatch):
    lane = make_lane()

    def ask():
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            return cursor.fetchone()

    raw = await done(start(lane, backend))
    raw.close()
    monkeypatch.setattr("mcp_django.connections.QUIET", 0)

    assert await done(start(lane, ask)) == (1,)


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
        connection = None

        def close_if_unusable_or_obsolete(self):
            raise Error("gone")

    closed = []

    class Whole:
        connection = None

        def close_if_unusable_or_obsolete(self):
            closed.append(self)

    monkeypatch.setattr(connections, "all", lambda **options: [Broken(), Whole()])

    close_old_connections()

    assert len(closed) == 1


def test_a_lane_without_a_slow_function_looks_again_after_a_whole_turn(make_lane):
    assert make_lane(takes_turns=True).hurry() == LONGEST_TURN
