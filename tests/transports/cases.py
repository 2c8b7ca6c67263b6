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


POST_ONLY = {"allow": "POST"}
MODERN = {"MCP-Protocol-Version": "2026-07-28"}
UNKNOWN_SESSION = {"Mcp-Session-Id": "x" * 43}
JSON_ONLY = {"Accept": "application/json"}

REFUSED = [
    Case(name="modern get", verb="GET", headers=MODERN, status=405, answered=POST_ONLY),
    Case(name="modern delete", verb="DELETE", headers=MODERN, status=405, answered=POST_ONLY),
    Case(name="modern put", verb="PUT", headers=MODERN, status=405, answered=POST_ONLY),
    Case(name="oversize", body=PING + b" " * 100, settings={"MAX_BODY": 100}, status=413),
    Case(name="no json", headers={"Content-Type": "text/plain"}, status=415),
    Case(name="form", headers={"Content-Type": "application/x-www-form-urlencoded"}, status=415),
    Case(name="packed", headers={"Content-Encoding": "gzip"}, status=415),
    Case(name="accepts html", headers={"Accept": "text/html"}, status=406),
    Case(name="accepts json only", headers=JSON_ONLY, status=406),
    Case(name="garbage", body=b"{", status=400),
    Case(name="nothing", body=b"", status=400),
    Case(name="number", body=b"7", status=400),
    Case(name="unknown revision", headers={"MCP-Protocol-Version": "1999-01-01"}, status=400),
    Case(name="strange host", headers={"Host": "evil.example"}, status=400),
    Case(name="strange origin", headers={"Origin": "https://evil.example"}, status=403),
    Case(name="long header", headers={"X-Long": "x" * 8193}, status=431),
    Case(name="long headers", headers={f"X-{n}": "x" * 8192 for n in range(8)}, status=431),
]
#: Where there are sessions.
IN_SESSIONS = [
    Case(name="put", verb="PUT", status=405, answered={"allow": "GET, POST, DELETE"}),
    Case(name="get that takes no stream", verb="GET", headers=JSON_ONLY, status=406),
    Case(name="get", verb="GET", status=400),
    Case(name="delete", verb="DELETE", status=400),
    Case(name="get in no session", verb="GET", headers=UNKNOWN_SESSION, status=404),
    Case(name="delete of no session", verb="DELETE", headers=UNKNOWN_SESSION, status=404),
    Case(name="post in no session", headers=UNKNOWN_SESSION, status=404),
    Case(name="post in a session without a name", headers={"Mcp-Session-Id": ""}, status=404),
]
#: Where there are none, and no streams.
WITHOUT_SESSIONS = [
    Case(name="put", verb="PUT", status=405, answered=POST_ONLY),
    Case(name="get", verb="GET", status=405, answered=POST_ONLY),
    Case(name="delete", verb="DELETE", status=405, answered=POST_ONLY),
    Case(
        name="get in a session",
        verb="GET",
        headers=UNKNOWN_SESSION,
        status=405,
        answered=POST_ONLY,
    ),
]
#: These are turned away before anybody asks who they are.
STRANGERS = {"strange host", "strange origin", "long header", "long headers"}
