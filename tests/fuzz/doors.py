"""The way to the endpoint: the ASGI application in this process."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from urllib.parse import quote

from mcp_django.testing import Client, HTTPAnswer
from tests.transports.wire import Connection
from tests.waiting import PATIENCE

Pairs = list[tuple[bytes, bytes]]
#: A confirmation, also in JSON within JSON.
TOKEN = re.compile(r'\\*"confirmation\\*":\s*\\*"([^"\\]+)')


def post_call(client: Client, tool: str, arguments: Any) -> HTTPAnswer:
    """Call a tool. Not as the client encodes it, which has no halves of characters."""
    message = client.message("tools/call", {"name": tool, "arguments": arguments})
    body = json.dumps({**message, "id": 1}).encode()
    return client.post(body, headers=client.routing_headers(message))


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
        return 0.005 if is_endless else 0.25

    @property
    def pieces(self) -> list[bytes]:
        ends = [0, *sorted(min(cut, len(self.body)) for cut in self.cuts), len(self.body)]
        return [self.body[a:b] for a, b in pairwise(ends)]


@dataclass(kw_only=True)
class Answer:
    """One HTTP response; status 0: the connection was dropped. `problem`: what never happens."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    problem: str = ""

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")


class Door:
    """Calls the application as a server would."""

    def __init__(self, application: Any) -> None:
        self.client = Client(application=application)
        self.count = 0

    def connect(self, sent: Sent) -> Connection:
        self.count += 1
        connection = Connection(self.client, *sent.pieces)
        connection.scope |= {
            "method": sent.verb,
            "path": sent.path,
            "raw_path": quote(sent.path).encode(),
            "query_string": sent.query,
            "headers": [(name.lower(), value) for name, value in sent.headers],
            # Failed authentications are counted by address.
            "client": (f"10.{self.count >> 16 & 255}.{self.count >> 8 & 255}.1", 50000),
        }
        if sent.is_broken_off:
            while connection.inbox.qsize():
                connection.inbox.get_nowait()
            for piece in sent.pieces[:-1]:
                event = {"type": "http.request", "body": piece, "more_body": True}
                connection.inbox.put_nowait(event)
            connection.hang_up()
        return connection

    async def ask(self, sent: Sent) -> Answer:
        connection, problem = self.connect(sent), ""
        task, heard, has_left = connection.start(), 0, sent.is_broken_off
        try:
            async with asyncio.timeout(PATIENCE):
                while not (await asyncio.wait({task}, timeout=sent.patience))[0]:
                    # A client that has heard what there was on a stream wants no more of it.
                    if heard == len(connection.sent) and answer_of(connection).is_stream:
                        connection.hang_up()
                        has_left = True
                    heard = len(connection.sent)
                await task
                if not has_left and not connection.is_whole():
                    problem = "The response has no end."
        except TimeoutError:
            problem = f"There was no answer within {PATIENCE:.0f} s."
        except Exception as error:
            problem = f"The application raised {error!r}."
        return answer_of(connection, problem)


def answer_of(connection: Connection, problem: str = "") -> Answer:
    if not connection.sent:
        return Answer(problem=problem)
    headers = {
        bytes(name).decode("latin-1").strip().lower(): bytes(value).decode("latin-1").strip()
        for name, value in connection.sent[0]["headers"]
    }
    status = connection.sent[0]["status"]
    return Answer(status=status, headers=headers, body=connection.body, problem=problem)
