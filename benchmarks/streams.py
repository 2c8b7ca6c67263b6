"""What a thousand open streams cost, and what it costs to tell them of a change.

make bench-streams       # Daphne and uvicorn; exits with 1 when one of LIMITS is passed

The server has a process and a core of its own. CPU is that of its whole process.
"""

from __future__ import annotations

import asyncio
import os
import resource
import statistics
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.crowd import Crowd
from benchmarks.servers import CLIENT_CORE, COMMANDS, Server, prepared, run_module, running

STREAMS = int(os.environ.get("BENCH_STREAMS", "1000"))
WARM_UP = 50
UPDATES = 7
#: Seconds between two updates: those of one resource within a quarter of a second become one.
PAUSE = 0.4
#: Seconds after which nobody is known any more by what they did before.
QUIET = 17
#: What is wanted under uvicorn: KiB, seconds, CPU seconds.
LIMITS = {"memory": 20, "last": 0.1, "one": 0.03, "many": 0.5}


@dataclass(frozen=True)
class Held:
    """What the server holds."""

    kib: int
    threads: int
    connections: int


def held(server: Server) -> Held:
    process = Path(f"/proc/{server.pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    connections = 0
    for one in (process / "fd").iterdir():
        with suppress(FileNotFoundError):
            connections += one.readlink().name == "bench.sqlite3"
    return Held(int(status["VmRSS"].split()[0]), int(status["Threads"]), connections)


async def tell(crowd: Crowd) -> tuple[float, float]:
    """The medians of some updates."""
    found = []
    for _ in range(UPDATES):
        await asyncio.sleep(PAUSE)
        found.append(await crowd.update())
    return (
        statistics.median(seconds for seconds, _ in found),
        statistics.median(cpu for _, cpu in found),
    )


async def quiet(server: Server, seconds: float) -> float:
    """CPU of each second in which nothing happens."""
    before = server.cpu()
    await asyncio.sleep(seconds)
    return (server.cpu() - before) / seconds


async def measure(server: Server, uri: str, tokens: list[str]) -> dict[str, float]:
    crowd = Crowd(server, uri)
    await crowd.open([server.token] * WARM_UP)
    await tell(crowd)
    await crowd.close()
    before, cpu = held(server), server.cpu()
    await crowd.open([server.token] * STREAMS)
    opening = (server.cpu() - cpu) / STREAMS
    await quiet(server, 3)
    after = held(server)
    memory = (after.kib - before.kib) / STREAMS
    print(
        f"  idle            {memory:6.1f} KiB a stream; "
        f"threads {before.threads} -> {after.threads}, "
        f"connections {before.connections} -> {after.connections}; "
        f"opening {opening * 1000:.2f} ms CPU each",
        flush=True,
    )
    last, one = await tell(crowd)
    resting = await quiet(server, 5)
    show("one principal", last, one, resting)
    await crowd.close()
    await crowd.open(tokens)
    many_last, many = await tell(crowd)
    resting = await quiet(server, QUIET)
    show(f"{len(tokens)} principals", many_last, many, resting)
    first = await crowd.update()
    print(f"  after {QUIET} s quiet: last after {first[0] * 1000:.0f} ms, CPU {first[1]:.3f} s")
    if crowd.lost:
        raise SystemExit(f"{crowd.lost} streams were lost.")
    return {"memory": memory, "last": last, "one": one, "many": many}


def show(name: str, last: float, cpu: float, resting: float) -> None:
    print(
        f"  {name:15} last after {last * 1000:4.0f} ms, CPU {cpu:.3f} s; "
        f"CPU of a quiet second {resting:.4f} s",
        flush=True,
    )


def main() -> int:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    os.sched_setaffinity(0, {CLIENT_CORE})
    is_good = True
    print(f"{STREAMS} streams. Load: {os.getloadavg()[0]:.2f}")
    with prepared() as (environment, token):
        readers = run_module("benchmarks.stream_readers", environment, str(STREAMS))
        uri, *tokens = readers.splitlines()
        for name in sys.argv[1:] or COMMANDS:
            print(name)
            with running("streaming", name, environment, token) as server:
                found = asyncio.run(measure(server, uri, tokens))
            missed = [one for one, most in LIMITS.items() if found[one] > most]
            print(f"  missed: {', '.join(missed)}" if missed else "  all within the limits")
            is_good = is_good and not (missed and name == "uvicorn")
        print(run_module("benchmarks.hub_queues", environment), flush=True)
    print("A save, without and with receivers")
    saves = subprocess.run([sys.executable, "-m", "benchmarks.saves"], check=False)
    is_good = is_good and saves.returncode == 0
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
