"""Ways to the endpoint: the ASGI application in this process, or a server at an address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from tests.waiting import PATIENCE

#: Seconds without news after which a client leaves a stream that could go on.
QUIET = 0.25

#: These are about the connection: a server looks at them before the application does.
FRAMING = {b"content-length", b"transfer-encoding", b"expect", b"connection"}

Pairs = list[tuple[bytes, bytes]]


@dataclass(kw_only=True)
class Sent:
    """One HTTP request."""

    verb: str = "POST"
    path: str = "/mcp"
    query: bytes = b""
    headers: Pairs = field(default_factory=list)
    body: bytes = b""
    #: Where the body is cut into pieces.
    cuts: tuple[int, ...] = ()
    #: The client is gone before the last piece.
    is_broken_off: bool = False

    @property
    def patience(self) -> float:
        """Seconds without news after which the client leaves a stream."""
        # Such a stream never ends, and most have nothing to tell.
        is_endless = self.verb == "GET" or b"subscriptions/listen" in self.body
        return 0.005 if is_endless else QUIET

    def pieces(self) -> list[bytes]:
        ends = [0, *sorted(min(cut, len(self.body)) for cut in self.cuts), len(self.body)]
        return [self.body[a:b] for a, b in pairwise(ends)]


@dataclass(kw_only=True)
class Answer:
    """One HTTP response; status 0: the connection was dropped. `problem`: what never happened."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    problem: str = ""

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")


class Door(Protocol):
    async def ask(self, sent: Sent) -> Answer:
        """The whole answer, or what came until a stream was quiet."""

    def stream(self, sent: Sent) -> Any:
        """A context manager: a stream that stays open, as an iterator of pieces."""


class InProcess:
    """Calls the application as a server would."""

    def __init__(self, application: Any) -> None:
        self.application = application
        self.count = 0

    def scope(self, sent: Sent) -> dict[str, Any]:
        self.count += 1
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": sent.verb,
            "scheme": "http",
            "path": sent.path,
            "raw_path": quote(sent.path).encode(),
            "query_string": sent.query,
            "root_path": "",
            "headers": [(name.lower(), value) for name, value in sent.headers],
            # Failed authentications are counted by address.
            "client": (f"10.{self.count >> 16 & 255}.{self.count >> 8 & 255}.1", 50000),
            "server": ("testserver", 80),
        }

    async def ask(self, sent: Sent) -> Answer:
        pieces = sent.pieces()
        answer, is_over, news = Answer(), asyncio.Event(), asyncio.Event()
        gone = asyncio.Event()

        async def receive() -> dict[str, Any]:
            if pieces and not (sent.is_broken_off and len(pieces) == 1):
                body = pieces.pop(0)
                return {"type": "http.request", "body": body, "more_body": bool(pieces)}
            if not sent.is_broken_off:
                await gone.wait()
            return {"type": "http.disconnect"}

        async def send(event: dict[str, Any]) -> None:
            if event["type"] == "http.response.start":
                answer.status, answer.headers = event["status"], text_of(event["headers"])
                return
            answer.body += event.get("body", b"")
            news.set()
            if not event.get("more_body", False):
                is_over.set()

        task = asyncio.ensure_future(self.application(self.scope(sent), receive, send))
        leaving = asyncio.ensure_future(leave_when_quiet(answer, sent, news, gone))
        try:
            await asyncio.wait_for(task, PATIENCE)
            if not is_over.is_set() and not (sent.is_broken_off or gone.is_set()):
                answer.problem = "The response has no end."
        except TimeoutError:
            answer.problem = f"There was no answer within {PATIENCE:.0f} s."
        except Exception as error:
            answer.problem = f"The application raised {error!r}."
        finally:
            leaving.cancel()
        return answer

    @asynccontextmanager
    async def stream(self, sent: Sent) -> AsyncIterator[Any]:
        pieces: asyncio.Queue[bytes] = asyncio.Queue()
        gone = asyncio.Event()
        requests = [{"type": "http.request", "body": sent.body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if requests:
                return requests.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(event: dict[str, Any]) -> None:
            await pieces.put(event.get("body", b""))
            if event["type"] == "http.response.body" and not event.get("more_body", False):
                await pieces.put(b"")

        task = asyncio.ensure_future(self.application(self.scope(sent), receive, send))
        # The start of the response has no body.
        await asyncio.wait_for(pieces.get(), PATIENCE)
        try:
            yield pieces
        finally:
            gone.set()
            await asyncio.wait_for(task, PATIENCE)


async def leave_when_quiet(
    answer: Answer, sent: Sent, news: asyncio.Event, gone: asyncio.Event
) -> None:
    """A client that has heard what there was on a stream, and is not interested in more."""
    while not gone.is_set():
        await news.wait()
        news.clear()
        if answer.is_stream:
            with suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), sent.patience)
            if not news.is_set():
                gone.set()


class Live:
    """A server at an address. Each request has a connection of its own."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self.host, self.port = parts.hostname or "127.0.0.1", parts.port or 80
        self.path = parts.path.rstrip("/") or "/mcp"

    def head(self, sent: Sent) -> bytes:
        target = self.path + sent.path.removeprefix("/mcp")
        query = b"?" + sent.query if sent.query else b""
        lines = [sent.verb.encode() + b" " + quote(target).encode() + query + b" HTTP/1.1"]
        own = b"%s:%d" % (self.host.encode(), self.port)
        for name, value in sent.headers:
            if name.lower() in FRAMING:
                continue
            text = own if (name.lower(), value) == (b"host", b"testserver") else value
            lines.append(name + b": " + text.replace(b"\r", b"").replace(b"\n", b""))
        lines += [b"Content-Length: %d" % len(sent.body), b"Connection: close", b"", b""]
        return b"\r\n".join(lines)

    async def ask(self, sent: Sent) -> Answer:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            *pieces, last = [self.head(sent) + sent.body[:0], *sent.pieces()]
            with suppress(ConnectionError):
                for piece in [*pieces, *([] if sent.is_broken_off else [last])]:
                    writer.write(piece)
                    await writer.drain()
            return Answer() if sent.is_broken_off else await read_answer(reader)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    @asynccontextmanager
    async def stream(self, sent: Sent) -> AsyncIterator[Any]:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        writer.write(self.head(sent) + sent.body)
        await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
        pieces: asyncio.Queue[bytes] = asyncio.Queue()
        task = asyncio.ensure_future(pump(reader, pieces))
        try:
            yield pieces
        finally:
            task.cancel()
            writer.close()


async def pump(reader: asyncio.StreamReader, pieces: asyncio.Queue[bytes]) -> None:
    while True:
        piece = await reader.read(65536)
        # The lengths of chunks stand between events, and readers of events pass over them.
        await pieces.put(piece)
        if not piece:
            return


async def read_answer(reader: asyncio.StreamReader) -> Answer:
    answer = Answer()
    try:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
    except (asyncio.IncompleteReadError, ConnectionError):
        answer.problem = "The connection was dropped."
        return answer
    except TimeoutError:
        answer.problem = f"There was no answer within {PATIENCE:.0f} s."
        return answer
    first, *lines = head.split(b"\r\n")
    answer.status = int(first.split()[1])
    answer.headers = text_of(line.split(b":", 1) for line in lines if line)
    while True:
        try:
            seconds = QUIET if answer.is_stream else PATIENCE
            piece = await asyncio.wait_for(reader.read(65536), seconds)
        except TimeoutError:
            if not answer.is_stream:
                answer.problem = "The response has no end."
            break
        except ConnectionError:
            break
        if not piece:
            break
        answer.body += piece
    if answer.headers.get("transfer-encoding") == "chunked" and not answer.is_stream:
        answer.body = joined(answer.body)
    return answer


def joined(body: bytes) -> bytes:
    """A body without the lengths of its chunks."""
    found = b""
    while body:
        length, _, rest = body.partition(b"\r\n")
        size = int(length or b"0", 16)
        found, body = found + rest[:size], rest[size + 2 :]
        if not size:
            break
    return found


def text_of(pairs: Any) -> dict[str, str]:
    return {
        bytes(name).decode("latin-1").strip().lower(): bytes(value).decode("latin-1").strip()
        for name, value in pairs
    }
