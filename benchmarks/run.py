"""Server CPU of our endpoint beside the floor, in one interleaved run.

`make bench` prints, for each kind of call, the CPU of both servers and the ratio: formed inside
each round, median over the rounds. In the row "access token" the floor is our endpoint as well,
called with a personal token. It exits with 1 when a ratio is above what is allowed, or when
the floor itself is slow: then its ratios would mean nothing.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace

from benchmarks.calls import ACCESS_TOKEN, KINDS, Kind
from benchmarks.servers import (
    CLIENT_CORE,
    COMMANDS,
    Server,
    load,
    measure,
    prepared,
    run_module,
    running,
)

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "10"))
CALLS = int(os.environ.get("BENCH_CALLS", "600"))
#: What the floor may spend on getting one record, without what any answer costs its server, as a
#: multiple of one ORM call: the hop to a thread and back, the JSON, the call itself.
SLOWEST_FLOOR = 2.5


@dataclass(frozen=True)
class Measured:
    """One kind of call: CPU milliseconds in each round."""

    kind: Kind
    ours: list[float]
    floor: list[float]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def ratios(self) -> list[float]:
        return [mine / bare for mine, bare in zip(self.ours, self.floor, strict=True)]

    @property
    def is_allowed(self) -> bool:
        return self.kind.allowed is None or self.ratio <= self.kind.allowed

    @property
    def mark(self) -> str:
        if not self.is_allowed:
            return f"above the limit of {self.kind.allowed}"
        if self.kind.wanted is not None and self.ratio > self.kind.wanted:
            return f"missed: {self.kind.wanted} is wanted"
        return ""


def rounds(ours: Server, floor: Server) -> dict[str, Measured]:
    """All kinds in each round, the two servers in turn, and two credentials at ours."""
    access = replace(ours, token=ACCESS_TOKEN)
    found = {name: Measured(kind, [], []) for name, kind in KINDS.items()}
    pairs = dict.fromkeys(KINDS, (ours, floor))
    found["access token"] = Measured(replace(KINDS["get one"], wanted=None, allowed=1.05), [], [])
    pairs["access token"] = (access, ours)
    for name, one in found.items():
        for server in pairs[name]:
            asyncio.run(load(server, one.kind, max(CALLS // one.kind.per, 20)))
    for number in range(ROUNDS):
        for name, one in found.items():
            pair = list(zip(pairs[name], (one.ours, one.floor), strict=True))
            # The difference between credentials is smaller than that between two rounds.
            for turn in range(5 if name == "access token" else 1):
                for server, values in pair if (number + turn) % 2 else reversed(pair):
                    values.append(measure(server, one.kind, CALLS))
    return found


def show(server: str, name: str, one: Measured) -> None:
    # Milliseconds of one call are seconds of a thousand.
    mine, bare = statistics.median(one.ours), statistics.median(one.floor)
    print(
        f"{server:8} {name:13} ours {mine:7.3f} s   floor {bare:7.3f} s   ratio {one.ratio:5.2f} "
        f"({min(one.ratios):.2f} to {max(one.ratios):.2f})   {one.mark}".rstrip(),
        flush=True,
    )


def compare(server: str, environment: dict[str, str], token: str) -> bool:
    """Measure and print. Whether every ratio is allowed, and the floor a floor."""
    with ExitStack() as stack:
        ours = stack.enter_context(running("ours", server, environment, token))
        floor = stack.enter_context(running("floor", server, environment, token))
        found = rounds(ours, floor)
    for name, one in found.items():
        show(server, name, one)
    orm_call = float(run_module("benchmarks.orm_call", environment))
    added = statistics.median(found["get one"].floor) - statistics.median(found["discover"].floor)
    is_floor = added <= SLOWEST_FLOOR * orm_call
    print(
        f"{server:8} select_related().get() alone {orm_call:.3f} s, and the floor spends "
        f"{added:.3f} s on getting one: {'good' if is_floor else 'too slow for a floor'}"
    )
    return is_floor and all(one.is_allowed for one in found.values())


def main() -> int:
    os.sched_setaffinity(0, {CLIENT_CORE})
    servers = sys.argv[1:] or list(COMMANDS)
    print(f"CPU seconds of the server for 1,000 calls. Load: {os.getloadavg()[0]:.2f}")
    with prepared() as (environment, token):
        results = [compare(server, environment, token) for server in servers]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
