"""Server CPU of our endpoint beside the floor, in one interleaved run.

`make bench` prints, for each kind of call, the CPU milliseconds of both servers and the ratio:
formed inside each round, median over the rounds. It exits with 1 when a ratio is above the limit.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

LIMIT = 1.3
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "10"))
CALLS = int(os.environ.get("BENCH_CALLS", "600"))
CLIENTS = 8
#: A server has one core to itself. On two, its threads fight for the interpreter's lock, and what
#: that costs differs from one run to the next by more than what is measured here.
SERVER_CORE, CLIENT_CORE = 0, 1
ROWS = 20_000
REVISION = "2026-07-28"

META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientCapabilities": {},
}
COMMANDS = {
    "daphne": "daphne -b 127.0.0.1 -v 0 -p {port} benchmarks.{app}:application",
    "uvicorn": "uvicorn --host 127.0.0.1 --port {port} --log-level error --no-access-log "
    "--lifespan off benchmarks.{app}:application",
}


@dataclass(frozen=True)
class Server:
    name: str
    pid: int
    port: int
    token: str

    def cpu(self) -> float:
        """CPU seconds of all threads so far, to the nanosecond."""
        spent = 0
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            spent += int((task / "schedstat").read_text().split()[0])
        return spent / 1e9

    def request(self, name: str, arguments: dict[str, object]) -> bytes:
        params = {"name": name, "arguments": arguments, "_meta": META}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        body = json.dumps(call).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            f"Authorization: Bearer {self.token}\r\nMCP-Protocol-Version: {REVISION}\r\n"
            f"Mcp-Method: tools/call\r\nMcp-Name: {name}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


def get_one(chance: random.Random) -> tuple[str, dict[str, object]]:
    return "get_record", {"model": "library.book", "pk": chance.randint(1, ROWS)}


def page_of_50(chance: random.Random) -> tuple[str, dict[str, object]]:
    return "find_records", {
        "model": "library.book",
        "filters": {"year__gte": chance.randint(1900, 2020)},
        "order_by": ["-year"],
        "limit": 50,
    }


KINDS = {"get one": get_one, "page of 50": page_of_50}


async def exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> bytes:
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise SystemExit(head.decode())
    length = next(
        int(line.split(b":")[1])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length")
    )
    return await reader.readexactly(length)


async def load(server: Server, kind: str, calls: int) -> None:
    """Make calls over kept connections and look into each answer."""
    counter = iter(range(calls))

    async def client(number: int) -> None:
        chance = random.Random(number)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for _ in counter:
            body = await exchange(reader, writer, server.request(*KINDS[kind](chance)))
            if b'"title":"Book ' not in body:
                raise SystemExit(body[:500].decode())
        writer.close()

    await asyncio.gather(*(client(number) for number in range(CLIENTS)))


def measure(server: Server, kind: str) -> float:
    """CPU milliseconds of one call."""
    before = server.cpu()
    asyncio.run(load(server, kind, CALLS))
    return (server.cpu() - before) * 1000 / CALLS


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(app: str, server: str, environment: dict[str, str], token: str) -> Iterator[Server]:
    port = free_port()
    command = COMMANDS[server].format(port=port, app=app).split()
    process = subprocess.Popen([sys.executable, "-m", *command], env=environment)
    os.sched_setaffinity(process.pid, {SERVER_CORE})
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield Server(app, process.pid, port, token)
    finally:
        process.terminate()
        process.wait()


def compare(server: str, environment: dict[str, str], token: str) -> bool:
    """Measure and print. Whether every ratio is within the limit."""
    with ExitStack() as stack:
        ours = stack.enter_context(running("ours", server, environment, token))
        floor = stack.enter_context(running("floor", server, environment, token))
        is_good = True
        for kind in KINDS:
            for one in (ours, floor):
                asyncio.run(load(one, kind, 200))
            rounds = [(measure(ours, kind), measure(floor, kind)) for _ in range(ROUNDS)]
            ratios = [mine / bare for mine, bare in rounds]
            ratio = statistics.median(ratios)
            mine, bare = (statistics.median(values) for values in zip(*rounds, strict=True))
            is_good = is_good and ratio <= LIMIT
            print(
                f"{server:8} {kind:12} ours {mine:6.3f} ms   floor {bare:6.3f} ms   "
                f"ratio {ratio:5.2f}   ({min(ratios):.2f} to {max(ratios):.2f})",
                flush=True,
            )
    return is_good


def main() -> int:
    os.sched_setaffinity(0, {CLIENT_CORE})
    servers = sys.argv[1:] or list(COMMANDS)
    with tempfile.TemporaryDirectory() as state:
        environment = {
            **os.environ,
            "BENCH_STATE": state,
            "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
        }
        prepared = subprocess.run(
            [sys.executable, "-m", "benchmarks.prepare"],
            env=environment, check=True, capture_output=True, text=True,
        )  # fmt: skip
        results = [compare(server, environment, prepared.stdout.strip()) for server in servers]
    print(f"Limit of the ratios: {LIMIT}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
