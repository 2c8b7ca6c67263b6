"""What clients send that no specification says, one row for each habit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_django.protocol.revisions import Revision
from tests.transports.wire import counting, hello

JSON, STREAM = "application/json", "text/event-stream"
FOUND, TOOLS = '"isError":false', '"find_records"'
REST = "TokenAuthentication of Django REST framework"
JUNE, NEWEST = Revision.V2025_06_18, Revision.V2026_07_28


@dataclass(frozen=True, kw_only=True)
class Habit:
    client: str
    #: Where the source names one.
    version: str = ""
    #: In words, for the docs.
    sends: str
    #: The thread or the file that tells of it, or where it was seen.
    source: str
    #: The message of a POST, and what it has in place of its usual members. UNSET: no such member.
    method: str = "tools/call"
    params: dict[str, Any] = field(default_factory=dict)
    members: dict[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str | None] = field(default_factory=dict)
    verb: str = "POST"
    path: str = "/mcp"
    revision: Revision = NEWEST
    #: What is sent before: a handshake, or another habit.
    in_session: bool = False
    after: Habit | None = None
    #: The answer: in words, for the docs; its status, its media type, and a part of it.
    gets: str = "the answer"
    status: int = 200
    kind: str = JSON
    proof: str = FOUND


def find(**arguments: Any) -> dict[str, Any]:
    return {"name": "find_records", "arguments": {"model": "shop.order", **arguments}}


def handshake(revision: Revision, **capabilities: Any) -> dict[str, Any]:
    """Return the fields of a row in which a client asks for a revision, and gets it."""
    return {
        "method": "initialize",
        "params": hello(revision, **capabilities),
        "revision": revision,
        "proof": f'"protocolVersion":"{revision.value}"',
    }


LIST: dict[str, Any] = {"method": "tools/list", "proof": TOOLS}
MODELS = {"name": "list_models"}
COMPLETED = {
    "ref": {"type": "ref/resource", "uri": "django://models/{model}"},
    "argument": {"name": "model", "value": ""},
    "context": {"arguments": {"model": None}},
}
CHALLENGE: dict[str, Any] = {
    "gets": "401 with `WWW-Authenticate`",
    "status": 401,
    "proof": "www-authenticate: Bearer ",
}
# One habit in four lines: who, what, whence, and the request.
# fmt: off
HABITS = [
    Habit(
        client="Claude Code", source="anthropics/claude-code#24597",
        sends='numbers and booleans as texts: `"limit": "2"`', params=find(limit="2"),
    ),
    Habit(
        client="Claude Code", source="anthropics/claude-code#95239",
        sends='`"null"` where nothing is meant', params=find(filters="null", cursor="null"),
    ),
    Habit(
        client="Claude Code", source="anthropics/claude-code#32524",
        sends="booleans as texts inside of an object",
        params=find(filters={"number__isnull": "false"}),
    ),
    Habit(
        client="Claude Code", version="2.1.96", source="anthropics/claude-code#45368",
        sends="`Accept: application/json` alone", params=MODELS, headers={"Accept": JSON},
    ),
    Habit(
        client="Claude Code", version="2.1.96", source="anthropics/claude-code#45368",
        sends="`Accept: application/json` alone, and asks for progress",
        params=counting(1), headers={"Accept": JSON},
    ),
    Habit(
        client="n8n", source="n8n-io/n8n#21500",
        sends="`toolCallId`, `sessionId`, `action` and `chatInput` as arguments of each tool",
        params=find(toolCallId="c", sessionId="s", action="send", chatInput="hi"),
    ),
    Habit(
        client="ElevenLabs", source="ComposioHQ/composio#2152",
        sends="`Accept: text/event-stream` alone", params=MODELS, headers={"Accept": STREAM},
        kind=STREAM, gets="the answer, as a stream of one event",
    ),
    Habit(
        client="LibreChat", source="danny-avila/LibreChat#11905",
        sends="`null` for an argument of a prompt that nobody filled in",
        method="completion/complete", params=COMPLETED, proof='"shop.order"',
    ),
    Habit(
        client="PHP SDK", source="modelcontextprotocol/php-sdk#284",
        sends="`[]` for arguments without members", params={**MODELS, "arguments": []},
    ),
    Habit(
        client="PHP SDK", source="modelcontextprotocol/php-sdk#284",
        sends="`[]` for params without members", **LIST,
        members={"params": []}, revision=JUNE,
    ),
    Habit(
        client="PHP SDK", source="modelcontextprotocol/php-sdk#284",
        sends="`[]` for capabilities without members",
        **handshake(JUNE) | {"params": hello(JUNE) | {"capabilities": []}},
    ),
    Habit(
        client="LangChain with Gemini", source="seen with langchain-google-genai 4.4.2",
        sends="objects as JSON in a text, and `5.0` for 5",
        params=find(filters='{"status": "new"}', limit=5.0),
    ),
    *(
        Habit(
            client="programs for REST APIs", source=REST, sends=sends, params=MODELS,
            headers={"Authorization": header}, **CHALLENGE | {"proof": "Bearer <token>"},
        )
        for sends, header in (
            ("`Authorization: Token ...`", "Token abc"),
            ("a bare token as `Authorization`", "mcp_abc"),
        )
    ),
]
# fmt: on
