"""One requirement: what it asks, since when, and whether this server does it yet."""

from __future__ import annotations

import enum
from dataclasses import KW_ONLY, dataclass

from mcp_django.protocol.revisions import Revision

V2503 = Revision.V2025_03_26
V2506 = Revision.V2025_06_18
V2511 = Revision.V2025_11_25
V26 = Revision.V2026_07_28


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


@dataclass(frozen=True)
class Requirement:
    """`chapter` is a page of the newest revision that has the requirement.

    `looks_at` is the method, notification or other thing that its tests look at. `feature` names
    the member of `Features` that the same revisions have; `lacking` one that none of them has.
    """

    id: str
    _: KW_ONLY
    #: Requirements share a number where they are parts of one, about different things.
    number: int
    level: Level
    sentence: str
    chapter: str
    looks_at: str
    added_in: Revision | None = None
    removed_in: Revision | None = None
    feature: str = ""
    lacking: str = ""
    missing: Missing | None = None

    @property
    def is_implemented(self) -> bool:
        return self.missing is None

    @property
    def revisions(self) -> tuple[Revision, ...]:
        known = tuple(Revision)
        start = known.index(self.added_in) if self.added_in else 0
        return known[start : known.index(self.removed_in) if self.removed_in else None]
