"""What one caller was told: kept, compared with what a second database says, and searched."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.leaks.canaries import CORE, Canaries
from tests.leaks.places import Answer, Asker

#: Of what was answered without a look at the database, this part is asked again in the second.
AGAIN = 50


@dataclass
class Report:
    """What one caller was asked and what came out that should not have."""

    calls: int = 0
    read: int = 0
    places: Counter[str] = field(default_factory=Counter)
    models: set[Any] = field(default_factory=set)
    #: Classes of fields with lookups, and the places where they were tried.
    lookups: set[tuple[type, str, str]] = field(default_factory=set)
    #: Arguments and tools that calls were made of.
    used: set[str] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)
    told: set[tuple[Any, str]] = field(default_factory=set)
    #: By the promise that was broken: canary, difference, twin, undescribed.
    leaks: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def leak(self, promise: str, sentence: str) -> None:
        self.leaks[promise].append(sentence[:1000])


class Hearing:
    """Asks, and remembers what could depend on what is hidden."""

    def __init__(self, canaries: Canaries) -> None:
        self.canaries = canaries
        self.report = Report()
        self.cursors: set[str] = set()
        self.said: set[bytes] = set()
        #: Whether refusals offer the nearest names. To look for them takes nine tenths of the
        #: time of a refusal, so beyond the shortest paths they are left out.
        self.is_near = True
        #: Calls and answers; those with the nearest names are asked again with them.
        self.asked: dict[bool, list[tuple[tuple[Any, ...], Answer]]] = {True: [], False: []}
        self.statements = 0
        self.who: Asker

    def ask(self, place: str, label: str, *given: Any) -> Answer:
        before = self.statements
        found = self.answer(place, label, *given)
        self.report.calls += 1
        self.report.places[place] += 1
        self.report.read += self.statements != before
        # An answer that no statement was run for says nothing about rows; some are tried anyway.
        if self.statements != before or self.report.calls % AGAIN == 0:
            self.asked[self.is_near].append(((place, label, *given), found))
        return found

    def answer(self, place: str, label: str, *given: Any) -> Answer:
        found = self.who.ask(place, label, *given)
        self.said.add(unspoken(found, given))
        return found

    def ask_again(self) -> None:
        """The second database must give the same answers, byte for byte."""
        for is_near, calls in self.asked.items():
            self.is_near = is_near
            for call, before in calls:
                after = self.answer(*call)
                if before != after:
                    self.report.leak("difference", f"{call}: {before.said!r}, {after.said!r}")

    def count(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        """For `connection.execute_wrapper`."""
        self.statements += 1
        return execute(sql, params, many, context)

    def look_for_canaries(self, logged: Sequence[str]) -> None:
        said = {*self.said, *(one.encode() for one in (*self.cursors, *logged))}
        for column in self.canaries.found_in(b"\n".join(said)):
            needle = {one for one, of in self.canaries.needles.items() if of == column}
            shown = [text for text in said if any(one in text.lower() for one in needle)][:2]
            self.report.leak("canary", f"{column}: {shown}")


def unspoken(found: Answer, given: Sequence[Any]) -> bytes:
    """What was said, without the caller's own words: refusals repeat them."""
    said = found.said
    if not found.is_refusal:
        return said
    for value in given:
        for one in value if isinstance(value, list) else [value]:
            text = str(one)
            if len(text) >= CORE:
                for shown in (text, ascii(text)[1:-1], ascii(text)[:60]):
                    said = said.replace(shown.encode(), b"")
    return said


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(logging.Formatter("%(name)s %(message)s"))
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@contextmanager
def listening() -> Iterator[list[str]]:
    """Every record of the log at INFO and above, with tracebacks."""
    handler, root = Lines(), logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield handler.lines
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
