"""The way to the endpoint: the ASGI application in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from urllib.parse import quote

from tests.waiting import PATIENCE

#: Seconds without news after which a client leaves a stream that could go on.
QUIET = 0.25


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


def text_of(pairs: Any) -> dict[str, str]:
    return {
        bytes(name).decode("latin-1").strip().lower(): bytes(value).decode("latin-1").strip()
        for name, value in pairs
    }
