"""What came back, in tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec


class ProtocolFailure(AssertionError):
    """The server answered with a JSON-RPC error."""

    def __init__(self, status: int, error: Mapping[str, Any]) -> None:
        super().__init__(f"HTTP {status}, {error['code']}: {error['message']}")
        self.status = status
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")


def events_of(body: bytes) -> list[Any]:
    """The messages in a stream of events. An event may have none: a place to come back to."""
    lines = body.decode().split("\n")
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [msgspec.json.decode(one) for one in data if one]


@dataclass(frozen=True, kw_only=True)
class HTTPAnswer:
    """One HTTP response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")

    @property
    def messages(self) -> list[Any]:
        """The JSON-RPC messages in the body, from JSON, a batch or a stream of events."""
        if self.is_stream:
            return events_of(self.body)
        if not self.body:
            return []
        decoded = msgspec.json.decode(self.body)
        return decoded if isinstance(decoded, list) else [decoded]


@dataclass(frozen=True, kw_only=True)
class ToolAnswer:
    """What a tool answered."""

    is_error: bool
    text: str
    structured: Any = None
    #: What came before the answer: progress.
    notifications: list[dict[str, Any]] = field(default_factory=list)
