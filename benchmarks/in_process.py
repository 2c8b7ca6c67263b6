"""Our endpoint and the floor in one process on one core, without a server between.

python -m benchmarks.in_process                     # CPU microseconds of each kind, and ratios
python -m benchmarks.in_process profile "50 tools"  # where ours spends them

Steadier than `make bench`, and stricter: what every answer costs a server is not on either side.
"""

from __future__ import annotations

import asyncio
import cProfile
import os
import pstats
import random
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from benchmarks.calls import KINDS, Kind, check, message
from benchmarks.servers import SERVER_CORE, prepared

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "15"))
CALLS = int(os.environ.get("BENCH_CALLS", "300"))
SHOWN = 45


def scope_of(headers: dict[str, str]) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 40000),
        "server": ("127.0.0.1", 8000),
    }


async def call(application: Any, kind: Kind, chance: random.Random, token: str) -> None:
    headers, body = message(kind, chance, token)
    scope, sent = scope_of(headers), bytearray()
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if not messages:  # a client that waits for its answer says nothing
            await asyncio.Event().wait()
        return messages.pop()

    async def send(event: dict[str, Any]) -> None:
        if event.get("status", 200) != 200:
            raise SystemExit(str(event))
        sent.extend(event.get("body", b""))

    await application(scope, receive, send)
    check(kind, bytes(sent))


async def many(application: Any, kind: Kind, calls: int, token: str) -> float:
    """CPU microseconds of one call, of all threads."""
    chance = random.Random(calls)
    before = time.process_time()
    for _ in range(calls):
        await call(application, kind, chance, token)
    return (time.process_time() - before) * 1e6 / calls


async def compare(ours: Any, floor: Any, token: str) -> None:
    for name, kind in KINDS.items():
        if kind.is_cold:
            continue
        calls = max(CALLS // kind.per, 5)
        pairs = []
        for number in range(ROUNDS + 1):
            mine = await many(ours, kind, calls, token)
            bare = await many(floor, kind, calls, token)
            if number:  # the first warms up
                pairs.append((mine, bare))
        ratio = statistics.median(mine / bare for mine, bare in pairs)
        mine, bare = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"{name:13} ours {mine:8.0f} us   floor {bare:8.0f} us   ratio {ratio:5.2f}")


class Here(Executor):
    """Runs each job at once, so that a profiler sees all of it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done

    def start(self, job: Callable[[], Any], **kwargs: Any) -> asyncio.Future[Any]:
        return asyncio.wrap_future(self.submit(job))

    def close(self) -> None:
        """Nothing of its own runs."""


async def profile(application: Any, kind: Kind, token: str) -> None:
    from mcp_django.transports.threads import lanes

    calls = max(2000 // kind.per, 5)
    with lanes.using(Here()):
        await many(application, kind, 50, token)
        profiler = cProfile.Profile()
        profiler.enable()
        await many(application, kind, calls, token)
        profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(SHOWN)


def main() -> None:
    os.sched_setaffinity(0, {SERVER_CORE})
    with prepared() as (environment, token):
        os.environ.update(environment)
        # Only for the profile, whose calls run where the loop runs.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
        from benchmarks import floor, ours

        if sys.argv[1:2] == ["profile"]:
            asyncio.run(profile(ours.application, KINDS[sys.argv[2]], token))
        else:
            asyncio.run(compare(ours.application, floor.application, token))


if __name__ == "__main__":
    main()
