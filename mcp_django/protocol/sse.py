"""Server-sent events: frames of a `text/event-stream`."""

from __future__ import annotations

import re

from mcp_django.protocol.errors import INVALID_REQUEST, ProtocolError

KEEP_ALIVE = b": keep-alive\n\n"
#: Said at once on a stream that may stay silent, so that proxies and clients take it as open.
OPEN = b": open\n\n"

#: A stream's name and the number of an event on it.
EVENT_ID = re.compile(r"([A-Za-z0-9_-]{16,64})\.(0|[1-9][0-9]{0,17})")


def encode_event(data: bytes, *, event_id: str = "", event: str = "message") -> bytes:
    """One message as a frame. JSON of ours has no line breaks, so one data line carries it."""
    if b"\n" in data or b"\r" in data:
        raise ValueError("A frame carries one line of data.")
    identified = b"id: " + event_id.encode() + b"\n" if event_id else b""
    return identified + b"event: " + event.encode() + b"\ndata: " + data + b"\n\n"


def encode_priming(event_id: str) -> bytes:
    """An event without a message: from here on the client can come back (2025-11-25)."""
    return b"id: " + event_id.encode() + b"\ndata: \n\n"


def encode_retry(milliseconds: int) -> bytes:
    """How long a client should wait before it comes back. The stream is about to close."""
    return b"retry: " + str(milliseconds).encode() + b"\n\n"


def event_id(stream: str, number: int) -> str:
    """Unique in the session, since it names its stream (2025-11-25 transports, resumability)."""
    return f"{stream}.{number}"


def parse_event_id(text: str) -> tuple[str, int]:
    """The stream, and the number of the last event that arrived. Raises ProtocolError."""
    found = EVENT_ID.fullmatch(text)
    if found is None:
        raise ProtocolError(INVALID_REQUEST, "Last-Event-ID is not one of ours.", status=400)
    return found[1], int(found[2])
