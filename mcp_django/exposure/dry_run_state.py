"""What one dry run knows of itself, for all that ask whether they are in one."""

from __future__ import annotations

import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NoReturn

from mcp_django.exceptions import ToolError

#: Seconds. Whatever it has written stays locked for all others until it ends.
LONGEST = 10.0
#: Bytes of files that are held in memory.
MOST_BYTES = 32 * 2**20


class CannotBeTried(ToolError):
    """It would do what cannot be taken back."""


@dataclass(eq=False)
class DryRun:
    """Collects what is held back, and what was refused: the code of a site may swallow that."""

    thread: int = field(default_factory=threading.get_ident)
    ends: float = field(default_factory=lambda: time.monotonic() + LONGEST)
    refusal: CannotBeTried | None = None
    #: Subject and recipients of each message.
    mails: list[tuple[str, list[str]]] = field(default_factory=list)
    #: "save" or "delete", and the name.
    files: list[tuple[str, str]] = field(default_factory=list)
    #: What files hold, by storage and name. None: deleted.
    contents: dict[Any, bytes | None] = field(default_factory=dict)

    def refuse(self, reason: str) -> NoReturn:
        self.refusal = CannotBeTried(f"This cannot be tried: {reason}. Nothing was changed.")
        raise self.refusal

    def check_thread(self) -> None:
        """Another thread has another connection, whose changes nobody takes back."""
        if threading.get_ident() != self.thread:
            self.refuse("it writes to the database from another thread")

    def check_time(self) -> None:
        if time.monotonic() > self.ends:
            self.refuse(f"it takes more than {LONGEST:.0f} seconds")

    def hold(self, key: Any, data: bytes | None) -> None:
        self.contents[key] = data
        if sum(len(one) for one in self.contents.values() if one) > MOST_BYTES:
            self.refuse("it writes files that are too large to be held back")


#: The dry run that the current code is part of. Threads of others have none.
current: ContextVar[DryRun | None] = ContextVar("mcp_django_dry_run", default=None)
