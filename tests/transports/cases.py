"""HTTP requests that are refused, whatever server hands them over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PING = b'{"jsonrpc":"2.0","id":7,"method":"ping"}'


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    status: int
    verb: str = "POST"
    body: bytes = PING
    headers: dict[str, str | None] = field(default_factory=dict)
    answered: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


REFUSED = [
    Case(name="get", verb="GET", body=b"", status=405, answered={"allow": "POST"}),
    Case(name="delete", verb="DELETE", body=b"", status=405, answered={"allow": "POST"}),
    Case(name="put", verb="PUT", status=405, answered={"allow": "POST"}),
    Case(name="oversize", body=PING + b" " * 100, settings={"MAX_BODY": 100}, status=413),
    Case(name="no json", headers={"Content-Type": "text/plain"}, status=415),
    Case(name="form", headers={"Content-Type": "application/x-www-form-urlencoded"}, status=415),
    Case(name="packed", headers={"Content-Encoding": "gzip"}, status=415),
    Case(name="accepts html", headers={"Accept": "text/html"}, status=406),
    Case(name="accepts json only", headers={"Accept": "application/json"}, status=406),
    Case(name="garbage", body=b"{", status=400),
    Case(name="nothing", body=b"", status=400),
    Case(name="number", body=b"7", status=400),
    Case(name="unknown revision", headers={"MCP-Protocol-Version": "1999-01-01"}, status=400),
    Case(name="strange host", headers={"Host": "evil.example"}, status=400),
    Case(name="strange origin", headers={"Origin": "https://evil.example"}, status=403),
]
#: These are turned away before anybody asks who they are.
STRANGERS = {"strange host", "strange origin"}
