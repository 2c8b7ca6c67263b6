from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A line of the package that becomes another one: a test must notice."""

    #: Below mcp_django.
    file: str
    #: Stands exactly once in the file.
    old: str
    new: str
    #: Where there is one, a test of this requirement must notice.
    requirement: str | None = None


@dataclass(frozen=True, kw_only=True)
class Room:
    """Faults of a part of the package, and the tests that must notice them."""

    #: Files and folders. The quickest come first.
    tests: tuple[str, ...]
    #: By file: what `Fault` takes besides it.
    lines: Mapping[str, list[tuple[str, ...]]]

    @property
    def faults(self) -> list[Fault]:
        return [Fault(file, *line) for file, lines in self.lines.items() for line in lines]
