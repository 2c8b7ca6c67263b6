"""The lanes of this process, and which of them answers what."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
from django.db import connection

from mcp_django.exposure.primitives import Lane
from mcp_django.protocol.jsonrpc import Notification, Request
from mcp_django.protocol.negotiation import Envelope
from mcp_django.protocol.revisions import LATEST_LEGACY
from mcp_django.transports.calls.lanes import Lanes, lane_of
from mcp_django.transports.exchanges import Call, Exchange
from tests.waiting import LONG_PATIENCE

IS_SQLITE = connection.vendor == "sqlite"


def test_lanes_are_wide_and_on_sqlite_narrow_with_functions_one_at_a_time():
    before = threading.active_count()

    lanes = Lanes()

    assert [lanes[name].size for name in (Lane.QUERY, Lane.STORE)] == (
        [1, 1] if IS_SQLITE else [4, 2]
    )
    assert [lanes[name].takes_turns for name in Lane] == [
        IS_SQLITE and name is Lane.WORK for name in Lane
    ]
    assert threading.active_count() == before


AFTER_A_FORK = """
import asyncio, os, threading, django
django.setup()
from mcp_django.exposure.primitives import Lane
from mcp_django.transports.calls.lanes import lanes

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
def test_a_forked_child_has_threads_of_its_own():
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", AFTER_A_FORK],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        capture_output=True,
        text=True,
        timeout=LONG_PATIENCE,
        check=False,
    )

    assert (ended.stdout, ended.stderr, ended.returncode) == ("ran\nran\n", "", 0)


def exchange_of(*methods, **facts):
    envelope = Envelope(revision=LATEST_LEGACY)
    calls = tuple(Call(request=Request(1, method, {}), envelope=envelope) for method in methods)
    return Exchange(calls=calls, revision=LATEST_LEGACY, **facts)


@pytest.mark.parametrize(
    ("exchange", "lane"),
    [
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
def test_whoever_only_reads_waits_for_nobody_who_writes_to_the_store(exchange, lane):
    assert lane_of(exchange) is lane
