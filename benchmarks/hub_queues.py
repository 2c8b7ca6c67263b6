"""CPU of one change for ten thousand streams without sockets, in one process on one core.

A part of `make bench-streams`, which prepares the site.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from typing import Any

from benchmarks.servers import SERVER_CORE

STREAMS, UPDATES = 10_000, 9


class Nobody:
    """Takes what is written, and counts it."""

    has_started = True
    has_ended = False

    def __init__(self, board: Board) -> None:
        self.board = board

    async def open(self) -> None:
        """Nothing to open."""

    async def frames(self, frames: bytes) -> None:
        self.board.count += 1
        if self.board.count == STREAMS:
            self.board.is_full.set()

    async def keep_alive(self) -> None:
        """Nobody sleeps."""


class Board:
    def __init__(self) -> None:
        self.count = 0
        self.is_full = asyncio.Event()


async def update(topic: str, board: Board) -> float:
    """CPU seconds of one change, until the last stream has written it."""
    from mcp_django.subscriptions.topics import Change
    from mcp_django.transports.hub import get_hub

    board.count = 0
    board.is_full.clear()
    before = time.process_time()
    get_hub().take(frozenset({Change(topic=topic)}))
    await board.is_full.wait()
    return time.process_time() - before


class Named:
    """Whoever opened a stream, without a credential."""

    def __init__(self, user: Any) -> None:
        self.user = user

    def request(self) -> Any:
        from django.test import RequestFactory

        return RequestFactory().get("/mcp")

    def recognize(self, request: Any) -> Any:
        from mcp_django.principal import READ, Principal

        scopes = frozenset({READ})
        return Principal(user=self.user, scopes=scopes, method="bench", credential_id="1")


async def measure(user: Any, uri: str) -> list[float]:
    from mcp_django.protocol.revisions import MODERN
    from mcp_django.transports.event_stream import EventStream
    from mcp_django.transports.exchanges import StreamSpec
    from mcp_django.transports.hub import get_hub
    from mcp_django.transports.serving import LISTEN

    board, principal = Board(), Named(user).recognize(None)
    for number in range(STREAMS):
        opening = StreamSpec(
            kind=LISTEN,
            principal=principal,
            revision=MODERN[-1],
            uris={uri: (uri,)},
            request_id=number,
        )
        stream = EventStream(opening, Nobody(board), source=Named(user))
        get_hub().add(stream)
        stream._is_waiting = False
    return [await update(uri, board) for _ in range(UPDATES)]


def main() -> None:
    os.sched_setaffinity(0, {SERVER_CORE})
    import django

    django.setup()
    from django.contrib.auth import get_user_model

    from benchmarks.streaming import first_book
    from mcp_django.exposure.uris import object_uri

    user = get_user_model()._default_manager.get(username="reader")
    uri = object_uri("library.book", str(first_book().pk))
    found = asyncio.run(measure(user, uri))
    print(f"{STREAMS} streams without sockets: {statistics.median(found) * 1000:.1f} ms CPU")


if __name__ == "__main__":
    main()
