"""Every requirement of a server, from the specification and from this project.

The rows are in requirements.csv, which any program for tables opens.
"""

from __future__ import annotations

import csv
import enum
from dataclasses import dataclass
from pathlib import Path

from mcp_django.protocol.revisions import Revision


class Level(enum.Enum):
    """How much it counts, in the revisions that have it."""

    MUST = "must"
    SHOULD = "should"
    #: The official conformance suite looks at it, or the reference implementation does it.
    CONFORMANCE = "conformance"
    #: This project promises it where the specification is silent.
    PROJECT = "project"


class Missing(enum.Enum):
    """What this server does not have yet."""

    AUTHORIZATION_SERVER = "the authorization server"
    CLIENT_REQUESTS = "legacy questions to the client: elicitation, sampling, roots"
    OAUTH = "access tokens of an authorization server"
    TASKS = "tasks"
    TRACING = "traces in the log"


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """What a requirement asks, since when, and whether this server does it yet.

    `chapter` is a page of the newest revision that has the requirement. `looks_at` is the method,
    notification or other thing that its tests look at. `feature` names the member of `Features`
    that the same revisions have; `lacking` one that none of them has.
    """

    #: Requirements share a number where they are parts of one, about different things.
    number: int
    id: str
    level: Level
    chapter: str
    looks_at: str
    added_in: Revision | None
    removed_in: Revision | None
    feature: str
    lacking: str
    missing: Missing | None
    sentence: str

    @property
    def is_implemented(self) -> bool:
        return self.missing is None

    @property
    def revisions(self) -> tuple[Revision, ...]:
        known = tuple(Revision)
        start = known.index(self.added_in) if self.added_in else 0
        return known[start : known.index(self.removed_in) if self.removed_in else None]


def requirement_of(row: dict[str, str]) -> Requirement:
    texts = {name: row[name] for name in ("id", "chapter", "looks_at", "feature", "lacking")}
    return Requirement(
        **texts,
        number=int(row["number"]),
        level=Level(row["level"]),
        added_in=Revision(row["added_in"]) if row["added_in"] else None,
        removed_in=Revision(row["removed_in"]) if row["removed_in"] else None,
        missing=Missing[row["missing"]] if row["missing"] else None,
        sentence=row["sentence"],
    )


with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as _file:
    REQUIREMENTS = tuple(requirement_of(row) for row in csv.DictReader(_file, strict=True))
BY_ID = {requirement.id: requirement for requirement in REQUIREMENTS}
