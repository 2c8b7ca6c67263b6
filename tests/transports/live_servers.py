"""Real servers of the test site, each in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import msgspec
import pytest

from mcp_django.protocol.revisions import Revision
from mcp_django.testing import Client
from tests.children import start
from tests.services import path_of
from tests.transports.event_stream import Event
from tests.waiting import PATIENCE, wait_until


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port: int) -> None:
    """Until somebody listens there."""

    def is_open() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_until(is_open)


def make_database(file: Path) -> None:
    """For servers, with the tables of the tests."""
    migrate = ["migrate", "--verbosity=0", "--run-syncdb", "--skip-checks"]
    settings = {"DJANGO_SETTINGS_MODULE": "tests.transports.live_settings", "LIVE_DB": str(file)}
    environ = {**os.environ, **settings}
    for command in (migrate, ["createcachetable"]):
        subprocess.run([sys.executable, "-m", "django", *command], env=environ, check=True)


@contextmanager
def live_server(
    server: str, *, module: str = "tests.transports.live", **environ: str
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The process and its port. It answers, and is told to stop behind the block."""
    # A pipe that nobody reads would stop the server when its log has filled it.
    with TemporaryFile("w+") as log:
        process = start(
            [sys.executable, "-W", "ignore", "-m", module, server],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, **environ},
        )
        try:
            words = process.stdout.readline().split()
            if words[:1] != ["ready"]:
                log.seek(0)
                pytest.fail(log.read())
            yield process, int(words[1])
        finally:
            process.terminate()
            try:
                process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                raise


#: Directories that nginx makes at its start, also where it is not used.
PATHS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@contextmanager
def nginx(folder: Path, server: str) -> Iterator[int]:
    """Run nginx with this server in its configuration, and yield the port in place of PORT."""
    port, file = free_port(), folder / "nginx.conf"
    paths = "".join(f"{name}_temp_path {name};" for name in PATHS)
    server = server.replace("PORT", f"127.0.0.1:{port}")
    file.write_text(
        f"daemon off; pid nginx.pid; events {{}} http {{ access_log off; {paths} {server} }}"
    )
    command = [path_of("nginx"), "-p", folder, "-e", "stderr", "-c", file]
    process = start(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port)
        yield port
    finally:
        process.terminate()
        process.wait()


class Servers:
    """Each is started for the first test that needs it, and again once it has ended."""

    def __init__(self, **environ: str) -> None:
        self.environ = environ
        self.running: dict[tuple[str, ...], tuple[subprocess.Popen[str], int]] = {}
        self.stack = ExitStack()

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, *exception: object) -> None:
        for process, _ in self.running.values():
            # They end beside each other.
            process.terminate()
        self.stack.close()

    def start(self, server: str, **environ: str) -> tuple[subprocess.Popen[str], int]:
        """The process and its port."""
        key = (server, *environ.values())
        if key not in self.running or self.running[key][0].poll() is not None:
            started = live_server(server, **self.environ, **environ)
            self.running[key] = self.stack.enter_context(started)
        return self.running[key]


class Answer:
    """One HTTP response, read as it comes."""

    def __init__(
        self, port: int, verb: str, message: Any = None, *, path: str = "/mcp", **headers: str
    ) -> None:
        self.connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        sent = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        body = b"" if message is None else msgspec.json.encode(message)
        self.connection.request(verb, path, body, sent)
        self.response = self.connection.getresponse()
        self.status = self.response.status

    def lines(self) -> list[str]:
        """Those of the next frame. None at the end."""
        lines = []
        while line := self.response.readline().decode().rstrip("\n"):
            lines.append(line)
        return lines

    def event(self) -> Event | None:
        """The next event with a message, None at the end."""
        while lines := self.lines():
            event = Event("\n".join(lines))
            if event.data:
                return event
        return None

    def message(self, method: str | None = None) -> Any:
        """The next message, or the next of this method. None at the end.

        A process that waited too long for Redis tells its streams of everything, which is any
        list: a busy machine is enough for that.
        """
        while event := self.event():
            if method in (None, event.message.get("method")):
                return event.message
        return None

    def close(self) -> None:
        self.response.close()
        self.connection.close()


class Reader(Answer):
    """The stream of a subscription."""

    def __init__(self, port: int, *, headers: Mapping[str, str] = {}, **wishes: object) -> None:
        client = Client(revision=Revision.V2026_07_28)
        message = client.message("subscriptions/listen", {"notifications": wishes})
        super().__init__(port, "POST", message, **client.routing_headers(message), **headers)
        assert self.status == 200

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
