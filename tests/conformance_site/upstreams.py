"""What the bridge talks to: an HTTP+SSE server, or a process with two pipes."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from threading import Lock, Timer
from typing import Any, Protocol
from urllib.parse import urljoin, urlsplit

from tests.conformance_site.suite import HOME

Message = dict[str, Any]
#: Seconds for an answer to a POST, and for a process to end.
PATIENCE = 30


class RefusedError(Exception):
    """The server answers this request of HTTP with an error."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


class Upstream(Protocol):
    def send(self, message: Message) -> None:
        """Raises RefusedError."""

    def messages(self) -> Iterator[Message]: ...

    def close(self) -> None: ...


class EventSource:
    """A session over HTTP+SSE: a stream, and a POST for each message."""

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        """Raises RefusedError."""
        self.headers = headers
        self.socket, response = self._request("GET", f"{url}/sse", timeout=None)
        self.events = read_events(response)
        event, data = next(self.events)
        assert event == "endpoint", event
        self.endpoint = urljoin(url, data)

    def send(self, message: Message) -> None:
        body = json.dumps(message).encode()
        self._request("POST", self.endpoint, body=body, timeout=PATIENCE)[1].read()

    def messages(self) -> Iterator[Message]:
        with suppress(OSError, HTTPException):
            for event, data in self.events:
                assert event == "message", event
                yield json.loads(data)

    def close(self) -> None:
        shut(self.socket)

    def _request(
        self, verb: str, url: str, *, timeout: float | None, body: bytes | None = None
    ) -> tuple[socket.socket, HTTPResponse]:
        parts = urlsplit(url)
        connection = HTTPConnection(parts.netloc, timeout=timeout)
        headers = {**self.headers, "content-type": "application/json", "connection": "close"}
        connection.request(verb, url.removeprefix(f"http://{parts.netloc}"), body, headers)
        raw = connection.sock
        response = connection.getresponse()
        if response.status >= 400:
            response.close()
            raise RefusedError(response.status)
        return raw, response


def shut(raw: socket.socket) -> None:
    """Wakes whoever reads, too."""
    with suppress(OSError):
        raw.shutdown(socket.SHUT_RDWR)


def read_events(response: HTTPResponse) -> Iterator[tuple[str, str]]:
    event, data = "message", []
    for line in response:
        name, _, value = line.decode().rstrip("\r\n").partition(": ")
        if name == "event":
            event = value
        elif name == "data":
            data.append(value)
        elif not name and data:
            yield event, "\n".join(data)
            event, data = "message", []


class Child:
    """A process of `manage.py mcp_stdio`."""

    def __init__(self, environment: dict[str, str], *, user: str) -> None:
        # Each says that it has no channel layer, and there is one for each scenario.
        with (HOME / "stdio.log").open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "django", "mcp_stdio", "--user", user],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment,
            )  # fmt: skip
        self.lock = Lock()

    def send(self, message: Message) -> None:
        assert self.process.stdin is not None
        with self.lock, suppress(OSError):
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def messages(self) -> Iterator[Message]:
        """Raises ValueError for a line that is no message."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            yield json.loads(line)

    def close(self) -> None:
        assert self.process.stdin is not None
        with self.lock, suppress(OSError):
            self.process.stdin.close()
        end = Timer(PATIENCE, self.process.kill)
        end.start()
        self.process.wait()
        end.cancel()


class Children:
    """Starts processes before they are wanted: most of their time is imports."""

    def __init__(self, environment: dict[str, str], *, user: str) -> None:
        self.environment, self.user = environment, user
        # One scenario opens two sessions, and does not wait long for the second.
        self.spare = deque([self._start(), self._start()])

    def take(self, headers: object) -> Child:
        self.spare.append(self._start())
        return self.spare.popleft()

    def close(self) -> None:
        for child in self.spare:
            child.close()

    def _start(self) -> Child:
        return Child(self.environment, user=self.user)
