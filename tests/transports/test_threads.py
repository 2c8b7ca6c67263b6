from __future__ import annotations

import asyncio
import os
import threading
import time
from contextvars import ContextVar
from functools import partial
from threading import Event

import pytest
from django.db import connection, connections
from django.utils import timezone, translation

from mcp_django.auth.authenticate import ADDRESS
from mcp_django.connections import KEPT
from mcp_django.exceptions import Busy
from mcp_django.protocol.jsonrpc import Notification, Request
from mcp_django.protocol.negotiation import Envelope
from mcp_django.protocol.revisions import LATEST_LEGACY
from mcp_django.transports.exchanges import Call, Exchange
from mcp_django.transports.threads import Lane, Lanes, OutOfTime, ThreadLane, lane_of
from tests.children import finished
from tests.waiting import PATIENCE, wait_until

pytestmark = [pytest.mark.asyncio, pytest.mark.database]

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


async def blocked(lane, gate, **options):
    """A job that has begun and waits at the gate."""
    running = start(lane, gate.wait, **options)
    await gate.until_reached()
    return running


async def withdraw(job):
    job.cancel()
    await asyncio.wait({job}, timeout=PATIENCE)


async def lose_a_thread(lane, gate):
    with pytest.raises(OutOfTime):
        await done(start(lane, gate.wait, seconds=0.01))


@pytest.mark.parametrize(
    ("kind", "comes_back"),
    [
        (ZeroDivisionError, ZeroDivisionError),
        # What a future cannot carry, or would end the server.
        (StopIteration, RuntimeError),
        (SystemExit, RuntimeError),
        (asyncio.CancelledError, RuntimeError),
    ],
)
async def test_what_a_job_raises_comes_back_as_an_error(make_lane, kind, comes_back):
    def job():
        raise kind(kind.__name__)

    with pytest.raises(comes_back, match=kind.__name__):
        await done(start(make_lane(), job))


# Jobs that take too long, or are not wanted any more


@pytest.mark.thorough
async def test_waiting_for_a_thread_does_not_count_as_running(make_lane, gate):
    lane = make_lane()
    blocking = await blocked(lane, gate)
    late = start(lane, lambda: "done", seconds=0.02)

    # Longer than the late job may run.
    await asyncio.wait({late}, timeout=0.06)
    gate.open()

    await done(blocking)
    assert await done(late) == "done"


@pytest.mark.parametrize(("size", "bearable"), [(1, 0), (2, 1), (3, 1), (4, 2)])
async def test_a_lane_refuses_while_more_than_half_of_its_threads_are_lost(
    make_lane, gate, size, bearable
):
    lane = make_lane(size=size)

    for _ in range(bearable):
        await lose_a_thread(lane, gate)
    assert await done(start(lane, int)) == 0
    await lose_a_thread(lane, gate)

    with pytest.raises(Busy):
        start(lane, int)
    gate.open()
    await asyncio.gather(*(done(start(lane, int, is_owed=True)) for _ in range(size)))
    await asyncio.to_thread(lane.close)
    assert lane.lost_threads == 0
    assert await done(start(lane, int)) == 0


@pytest.mark.thorough
async def test_a_job_cancelled_while_it_runs_is_told_and_counts_as_lost_if_it_goes_on(
    make_lane, gate
):
    lane, cancelled = make_lane(), Event()
    running = await blocked(lane, gate, seconds=0.02, cancelled=cancelled)

    await withdraw(running)
    await asyncio.wait({start(lane, int)}, timeout=0.1)

    assert cancelled.is_set()
    assert lane.lost_threads == 1


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


async def test_a_thread_ends_quietly_when_its_loop_is_gone(make_lane, gate):
    lane = make_lane()

    await asyncio.to_thread(asyncio.run, blocked(lane, gate))
    gate.open()
    await asyncio.to_thread(lane.close)

    assert lane.waiting == lane.lost_threads == 0


async def test_the_context_of_the_request_is_seen_in_the_thread_and_leaks_nowhere(make_lane):
    lane = make_lane()

    def job():
        seen = ANYTHING.get(), translation.get_language(), timezone.get_current_timezone_name()
        ANYTHING.set("left by a job")
        translation.activate("it")
        timezone.activate("Asia/Tokyo")
        return seen

    usual = translation.get_language()
    ANYTHING.set("of the request")
    with translation.override("fr"), timezone.override("Europe/Paris"):
        first = await done(start(lane, job))
    ANYTHING.set("of another request")
    second = await done(start(lane, job))

    assert first == ("of the request", "fr", "Europe/Paris")
    assert second == ("of another request", usual, "UTC")


async def test_a_lane_that_is_closed_runs_what_waits_and_starts_new_threads_for_the_next(
    make_lane, gate
):
    lane, ran = make_lane(size=2), Event()
    running = await blocked(lane, gate, caller="ada")
    held_back = start(lane, ran.set, caller="ada")
    thread = await done(start(lane, threading.current_thread))

    closing = asyncio.create_task(asyncio.to_thread(lane.close))
    gate.open()
    await asyncio.gather(*map(done, [closing, running, held_back]))

    assert ran.is_set()
    assert not thread.is_alive()
    assert await done(start(lane, threading.current_thread)) is not thread


# Callers


async def test_strangers_leave_a_quarter_to_users_however_many_addresses_they_have(
    make_lane, gate
):
    """What one user may fill of it: test_concurrent_calls.py."""
    lane = make_lane(max_waiting=8)
    running = await blocked(lane, gate)
    jobs = [start(lane, int, caller=f"{ADDRESS}{number}") for number in range(6)]

    with pytest.raises(Busy):
        start(lane, int, caller=f"{ADDRESS}6")
    jobs += [start(lane, int, caller=caller) for caller in ("ada", "ben")]

    gate.open()
    await asyncio.gather(*map(done, [running, *jobs]))
    await done(start(lane, int, caller=f"{ADDRESS}6"))


#: Size of a lane, who runs jobs, who comes then, and whose jobs of those begin. The slow callers
#: were slow a moment ago, and "-" is the process itself.
SHARES = [
    (1, "ada", "ben", ""),
    (2, "ada", "ada ben", "ben"),
    (2, "-", "-", "-"),
    # Half of the threads are the most, and two callers leave one to the third.
    (6, "ada", "ada ada ada", "ada ada"),
    (4, "ada", "ada ben ben cara", "ada ben cara"),
    (1, "", "slow1", "slow1"),
    (2, "slow1", "slow2 ada", "ada"),
    (4, "slow1 slow1 slow2", "slow2 slow3 ada", "ada"),
]


@pytest.mark.parametrize(("size", "running", "coming", "beginning"), SHARES)
async def test_nobody_has_more_than_half_of_the_threads_and_slow_callers_never_the_last(
    make_lane, monkeypatch, size, running, coming, beginning
):
    # Nobody gets slow, however busy the machine is.
    monkeypatch.setattr("mcp_django.transports.threads.LONGEST_TURN", PATIENCE)
    lane, begun, opened = make_lane(size=size, max_waiting=40), [], Event()
    for number in (1, 2, 3):
        lane._slow[f"slow{number}"] = time.monotonic() + 10 * PATIENCE

    def job(caller):
        begun.append(caller)
        opened.wait(PATIENCE)

    names = [*running.split(), *coming.split()]
    jobs = [start(lane, partial(job, name), caller=name.strip("-")) for name in names]
    expected = [*running.split(), *beginning.split()]
    await asyncio.to_thread(wait_until, lambda: len(begun) == len(expected))
    waiting = lane.waiting

    opened.set()
    await asyncio.gather(*map(done, jobs))
    assert waiting == len(names) - len(expected)
    assert sorted(begun[: len(expected)]) == sorted(expected)


async def test_a_caller_whose_job_took_long_waits_behind_the_others(make_lane, gate, monkeypatch):
    # For long enough, and every job takes long.
    monkeypatch.setattr("mcp_django.transports.threads.SLOW_FOR", 1e9)
    monkeypatch.setattr("mcp_django.transports.threads.LONGEST_TURN", 0)
    lane, ran = make_lane(), []
    await done(start(lane, partial(time.sleep, 0.001), caller="ada"))

    blocking = await blocked(lane, gate)
    jobs = [start(lane, partial(ran.append, name), caller=name) for name in ("ada", "ben")]
    gate.open()
    await asyncio.gather(*map(done, [blocking, *jobs]))

    assert ran == ["ben", "ada"]


async def test_strangers_wait_behind_users_from_however_many_addresses(make_lane, gate):
    lane, ran = make_lane(), []
    names = [f"{ADDRESS}192.0.2.{number}" for number in range(5)]

    blocking = await blocked(lane, gate)
    jobs = [start(lane, partial(ran.append, name), caller=name) for name in [*names, "ada"]]
    gate.open()
    await asyncio.gather(*map(done, [blocking, *jobs]))

    assert ran == ["ada", *names]


async def test_a_job_whose_caller_is_slow_no_longer_begins_though_no_other_ends(
    make_lane, gate, monkeypatch
):
    monkeypatch.setattr("mcp_django.transports.threads.LONGEST_LOOK", 0.01)
    lane = make_lane(size=2)
    lane._slow |= dict.fromkeys(["ada", "ben"], time.monotonic() + PATIENCE)
    blocking = await blocked(lane, gate, caller="ben")
    waiting = start(lane, int, caller="ada")
    assert lane.waiting == 1

    del lane._slow["ada"]

    assert await done(waiting) == 0
    gate.open()
    await done(blocking)


@pytest.mark.parametrize("size", [1, 2])
async def test_jobs_that_are_withdrawn_and_come_again_all_find_a_thread(make_lane, gate, size):
    lane, ran = make_lane(size=size, max_waiting=80), []
    running = await blocked(lane, gate, caller="ada")

    for number in range(20):
        for caller in ("ada", "ben"):
            await withdraw(start(lane, int, caller=caller))
        wanted = start(lane, partial(ran.append, number), caller="ada")
        if number % 2:
            await withdraw(wanted)
        else:
            running = asyncio.gather(running, wanted)
    gate.open()
    await done(running)
    await asyncio.to_thread(lane.close)

    assert ran == list(range(0, 20, 2))
    assert lane.waiting == 0
    assert not lane._running


# One at a time


async def test_where_threads_fight_quick_jobs_run_one_at_a_time(make_lane, monkeypatch):
    # However busy the machine is.
    monkeypatch.setattr("mcp_django.transports.threads.LONGEST_TURN", PATIENCE)
    lane = make_lane(size=4, max_waiting=400, takes_turns=True)
    inside, met = [], []

    def meet():
        inside.append("one more")
        # Others get the interpreter's lock here, and would come in.
        time.sleep(0)
        sum(range(1000))
        met.append(len(inside))
        inside.pop()

    jobs = [start(lane, meet, caller=f"user {n % 5}") for n in range(60)]
    await asyncio.gather(*map(done, jobs))

    assert met == [1] * 60
    assert lane.waiting == 0


async def test_a_job_that_takes_long_raises_or_is_lost_gives_up_its_turn(make_lane, gate):
    lane = make_lane(size=4, takes_turns=True)
    slow = await blocked(lane, gate, caller="ada")

    for caller in ("ben", "ada"):
        assert await done(start(lane, int, caller=caller)) == 0
    assert not slow.done()
    with pytest.raises(ZeroDivisionError):
        await done(start(lane, lambda: 1 / 0))
    await lose_a_thread(lane, gate)

    assert await done(start(lane, int)) == 0
    gate.open()
    await done(slow)


# Connections


def backend():
    """What tells one connection from another."""
    connection.ensure_connection()
    return connection.connection


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("age", "options"), [(0, {}), (0, {"pool": {"min_size": 1}}), (30, {})], ids=str
)
async def test_a_thread_keeps_its_connection_without_a_transaction_and_takes_none_out_of_a_pool(
    make_lane, monkeypatch, age, options
):
    # What the site does with connections of views. The test's own connection stays.
    usual = connections.settings["default"]
    of_views = {**usual, "CONN_MAX_AGE": age, "OPTIONS": {**usual["OPTIONS"], **options}}
    monkeypatch.setitem(connections.settings, "default", of_views)
    lane = make_lane()

    first = await done(start(lane, backend))
    left = await done(start(lane, lambda: connection.close_at - time.monotonic()))
    settings = await done(start(lane, lambda: connection.settings_dict))

    assert await done(start(lane, backend)) is first
    assert 0 < left <= (age or KEPT)
    assert "pool" not in settings["OPTIONS"]
    assert settings["NAME"] == usual["NAME"]
    await done(start(lane, lambda: connection.set_autocommit(False)))
    assert await done(start(lane, lambda: connection.get_autocommit()))


# The lanes of this process, and which of them answers what


async def test_lanes_have_two_threads_at_least_which_take_turns_on_sqlite():
    is_sqlite = connection.vendor == "sqlite"
    before = threading.active_count()

    lanes = Lanes()

    assert [lanes[name].size for name in (Lane.QUERY, Lane.STORE)] == (
        [2, 2] if is_sqlite else [4, 2]
    )
    assert {lanes[name].takes_turns for name in Lane} == {is_sqlite}
    assert threading.active_count() == before


AFTER_A_FORK = """
import asyncio, os, threading, django
django.setup()
from mcp_django.transports.threads import Lane
from mcp_django.transports.threads import lanes

async def job():
    return await asyncio.wait_for(
        lanes[Lane.WORK].start(lambda: "ran", seconds=5, cancelled=threading.Event()), 5
    )

print(asyncio.run(job()), flush=True)
# Another thread holds it at the moment of the fork.
lanes._lock.acquire()
lanes[Lane.WORK]._lock.acquire()
child = os.fork()
if not child:
    print(asyncio.run(job()), flush=True)
    os._exit(0)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="The system cannot fork.")
async def test_a_forked_child_has_threads_of_its_own():
    command = ("-W", "ignore", "-c", AFTER_A_FORK)
    ended = await asyncio.to_thread(finished, *command, DJANGO_SETTINGS_MODULE="tests.settings")

    assert (ended.stdout, ended.stderr, ended.returncode) == ("ran\nran\n", "", 0)


def exchange_of(*methods, params=None, **facts):
    envelope = Envelope(revision=LATEST_LEGACY)
    requests = [Request(1, method, params or {}) for method in methods]
    calls = tuple(Call(request=request, envelope=envelope) for request in requests)
    return Exchange(calls=calls, revision=LATEST_LEGACY, **facts)


#: The params of a request about a resource: only code of the site runs apart from queries.
RESOURCES = [
    ({"uri": "django://site"}, Lane.QUERY),
    ({"uri": "shop://greeting"}, Lane.WORK),
    ({"uri": 7}, Lane.QUERY),
    ({"name": "find_records"}, Lane.QUERY),
    ({"name": "export_records"}, Lane.WORK),
    ({"name": "delete_record"}, Lane.WORK),
    ({"name": "read_resource", "arguments": {"uri": "shop://greeting"}}, Lane.WORK),
    ({"name": "read_resource", "arguments": {"uri": "django://site"}}, Lane.QUERY),
    ({"name": "read_resource", "arguments": []}, Lane.QUERY),
    ({"ref": {"type": "ref/resource", "uri": "shop://reports/{year}"}}, Lane.WORK),
    ({"ref": {"type": "ref/resource", "uri": "django://models/{model}"}}, Lane.QUERY),
]


@pytest.mark.parametrize(
    ("exchange", "lane"),
    [
        *((exchange_of("x", params=params), lane) for params, lane in RESOURCES),
        (exchange_of("tools/list"), Lane.QUERY),
        (exchange_of("initialize"), Lane.STORE),
        (exchange_of("resources/subscribe"), Lane.STORE),
        (exchange_of(notices=(Notification("notifications/initialized", {}),)), Lane.STORE),
        (exchange_of(verb="DELETE", session_id="a"), Lane.STORE),
        (exchange_of(verb="GET"), Lane.STORE),
        (exchange_of(verb="GET", session_id="a"), Lane.QUERY),
        (exchange_of("tools/list", "logging/setLevel"), Lane.WORK),
        (exchange_of(read_body=Exchange), Lane.WORK),
    ],
)
async def test_whoever_only_reads_waits_for_nobody_who_writes_to_the_store(exchange, lane):
    assert lane_of(exchange) is lane
