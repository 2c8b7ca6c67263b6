"""How much the store keeps, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

from mcp_django.conf import get_config

Clock: TypeAlias = Callable[[], datetime]

#: A process that has not renewed its lease for so long is gone.
LEASE = timedelta(seconds=15)
#: How far behind `Session.seen` may be.
SEEN_EVERY = timedelta(minutes=1)

#: What one log keeps, in events and in bytes.
MOST_EVENTS = 256
MOST_BYTES = 1024 * 1024
#: A client that lost its stream comes back within this time of the stream's end.
KEPT = timedelta(seconds=300)

#: Sessions of one principal, or of a sixteenth of all anonymous callers. With one more, the one
#: that was unused for longest ends.
MOST_SESSIONS = 256

#: Logs of one session. As many as a principal may have streams.
MOST_LOGS = 64
#: Questions that one session may have open.
MOST_QUESTIONS = 100
#: Nobody waits for an answer for longer, whatever the caller's own limit.
QUESTION_LIFE = timedelta(hours=1)


def idle_limit() -> timedelta:
    return timedelta(seconds=get_config().session_idle)


def too_many(sizes: Sequence[int]) -> int:
    """How many of the oldest events have to go, by the sizes of all. The last one never does."""
    kept, room = 0, MOST_BYTES
    for size in reversed(sizes[-MOST_EVENTS:]):
        room -= size
        if kept and room < 0:
            break
        kept += 1
    return len(sizes) - kept
