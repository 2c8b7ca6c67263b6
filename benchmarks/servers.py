"""Servers under measurement: started, held to one core, loaded, and asked what they used."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.calls import Kind, check, message

CLIENTS = 8
#: A server has one core to itself. On two, its threads fight for the interpreter's lock, and what
#: that costs differs from one run to the next by more than what is measured here.
SERVER_CORE, CLIENT_CORE = 0, 1
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

    def request(self, kind: Kind, chance: random.Random) -> bytes:
        headers, body = message(kind, chance, self.token)
        lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
        return f"POST /mcp HTTP/1.1\r\n{''.join(lines)}\r\n".encode() + body


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


async def load(server: Server, kind: Kind, calls: int) -> None:
    """Make calls over kept connections, or a new one for each, and look into each answer."""
    counter = iter(range(calls))

    async def client(number: int) -> None:
        chance = random.Random(number)
        writer: asyncio.StreamWriter | None = None
        for _ in counter:
            if writer is None or kind.is_cold:
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            check(kind, await exchange(reader, writer, server.request(kind, chance)))
            if kind.is_cold:
                writer.close()
        if writer is not None:
            writer.close()

    await asyncio.gather(*(client(number) for number in range(CLIENTS)))


def measure(server: Server, kind: Kind, calls: int) -> float:
    """CPU milliseconds of one call."""
    calls = max(calls // kind.per, CLIENTS)
    before = server.cpu()
    asyncio.run(load(server, kind, calls))
    return (server.cpu() - before) * 1000 / calls


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


@contextmanager
def prepared() -> Iterator[tuple[dict[str, str], str]]:
    """A site with its rows, in a folder of its own: the environment to run in, and a token."""
    with tempfile.TemporaryDirectory() as state:
        environment = {
            **os.environ,
            "BENCH_STATE": state,
            "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
        }
        yield environment, run_module("benchmarks.prepare", environment)


def run_module(name: str, environment: dict[str, str], *arguments: str) -> str:
    """What a module prints."""
    return subprocess.run(
        [sys.executable, "-m", name, *arguments],
        env=environment, check=True, stdout=subprocess.PIPE, text=True,
    ).stdout.strip()  # fmt: skip
