"""Server-sent events: frames of a `text/event-stream`."""

from __future__ import annotations

KEEP_ALIVE = b": keep-alive\n\n"


def encode_event(data: bytes) -> bytes:
    """One message as a frame. JSON of ours has no line breaks, so one data line carries it."""
    if b"\n" in data or b"\r" in data:
        raise ValueError("A frame carries one line of data.")
    return b"event: message\ndata: " + data + b"\n\n"
