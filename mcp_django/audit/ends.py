"""How a call ended, as its own thread tells it: little work, and nothing that can still change."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from django.conf import settings

from mcp_django.audit.entries import LONGEST_CLIENT, Entry, line, principal_line
from mcp_django.models import CallRecord

#: What clients call themselves by, and how much of it is kept.
LONGEST_NAME = 80
KINDS = {
    "tools/call": CallRecord.Kind.TOOL.value,
    "resources/read": CallRecord.Kind.RESOURCE.value,
    "prompts/get": CallRecord.Kind.PROMPT.value,
}
OTHER = CallRecord.Kind.OTHER.value


class End(NamedTuple):
    """What an `Entry` is made of, which happens in the thread that writes.

    Texts that peers choose are short here, though they may hold what no line may.
    """

    server: str
    #: Seconds since 1970.
    at: float
    #: The principal's.
    key: str
    user_id: Any
    #: The client, as it calls itself or its credential does.
    name: str
    version: str | None
    method: str
    target: str
    outcome: CallRecord.Outcome
    seconds: float
    rows: int | None
    bytes: int
    correlation_id: str
    #: Redacted.
    arguments: Any

    def entry(self) -> Entry:
        return Entry(
            self.server,
            datetime.fromtimestamp(self.at, UTC if settings.USE_TZ else None),
            KINDS.get(self.method, OTHER),
            known_principal(self.key),
            self.user_id,
            client_line(self.name, self.version),
            self.method,
            self.target,
            self.outcome.value,
            round(self.seconds * 1000),
            self.rows,
            self.bytes,
            self.correlation_id,
            self.arguments,
        )


# Many calls of few principals and clients: what peers choose is looked through once.
known_principal = lru_cache(maxsize=256)(principal_line)


@lru_cache(maxsize=256)
def client_line(name: str, version: str | None) -> str:
    if version is None:
        return line(name, LONGEST_CLIENT)
    return line(f"{line(name, LONGEST_NAME)} {version}", LONGEST_CLIENT)
