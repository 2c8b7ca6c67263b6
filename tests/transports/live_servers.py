"""Real servers of the test site, each in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile

import pytest

PATIENCE = 10


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def live_server(server: str, **environ: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The process and its port. It answers, and is told to stop behind the block."""
    port = free_port()
    # A pipe that nobody reads would stop the server when its log has filled it.
    with TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.transports.live", server, str(port)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, **environ},
        )
        try:
            if process.stdout.readline() != "ready\n":
                log.seek(0)
                pytest.fail(log.read())
            yield process, port
        finally:
            process.terminate()
            try:
                process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                raise
