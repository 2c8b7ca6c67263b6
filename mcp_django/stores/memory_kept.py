"""What the store "memory" keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from mcp_django.stores.bounds import too_many
from mcp_django.stores.interface import Event, Log, Question, Session


@dataclass
class KeptSession:
    """A session with all that goes when it goes."""

    session: Session
    subscriptions: set[str] = field(default_factory=set)
    #: In the order in which they were opened.
    logs: dict[str, KeptLog] = field(default_factory=dict)
    questions: dict[str, KeptQuestion] = field(default_factory=dict)
    #: Who has the standalone stream.
    standalone: str = ""


@dataclass
class KeptLog:
    log: Log
    last: int = 0
    events: list[Event] = field(default_factory=list)
    final_since: datetime | None = None

    def add(self, events: Sequence[bytes], *, final_since: datetime | None) -> None:
        for data in events:
            self.last += 1
            self.events.append(Event(number=self.last, data=data))
        del self.events[: too_many([len(event.data) for event in self.events])]
        self.final_since = final_since


@dataclass
class KeptQuestion:
    question: Question
    asked: datetime
    answer: bytes | None = None
