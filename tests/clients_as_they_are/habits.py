"""What clients send that no specification says, one row for each habit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mcp_django.protocol.revisions import Revision

JSON, STREAM = "application/json", "text/event-stream"
FOUND, REST = '"isError":false', "TokenAuthentication of Django REST framework"
LEGACY = Revision.V2025_06_18


@dataclass(frozen=True, kw_only=True)
class Habit:
    client: str
    #: In words, for the docs.
    sends: str
    #: The thread that tells of it, or where it was seen.
    source: str
    params: Any
    method: str = "tools/call"
    headers: dict[str, str | None] = field(default_factory=dict)
    revision: Revision = Revision.V2026_07_28
    #: The answer: its status, its media type, and a part of its body.
    status: int = 200
    kind: str = JSON
    proof: str = FOUND


def find(**arguments: Any) -> dict[str, Any]:
    return {"name": "find_records", "arguments": {"model": "shop.order", **arguments}}


MODELS = {"name": "list_models"}
HELLO = {"protocolVersion": LEGACY.value, "clientInfo": {"name": "php", "version": "1"}}
COMPLETED = {
    "ref": {"type": "ref/resource", "uri": "django://models/{model}"},
    "argument": {"name": "model", "value": ""},
    "context": {"arguments": {"model": None}},
}
# One habit in four lines: who, what, whence, and the request.
# fmt: off
HABITS = [
    Habit(
        client="n8n", source="n8n-io/n8n#21500",
        sends="`toolCallId`, `sessionId`, `action` and `chatInput` as arguments of each tool",
        params=find(toolCallId="c", sessionId="s", action="send", chatInput="hi"),
    ),
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
        client="LangChain with Gemini", source="seen with langchain-google-genai 4.4.2",
        sends="objects as JSON in a text, and `5.0` for 5",
        params=find(filters='{"status": "new"}', limit=5.0),
    ),
    Habit(
        client="PHP SDK", source="modelcontextprotocol/php-sdk#284",
        sends="`[]` for arguments without members", params={**MODELS, "arguments": []},
    ),
    Habit(
        client="PHP SDK", source="modelcontextprotocol/php-sdk#284",
        sends="`[]` for params without members",
        method="tools/list", params=[], revision=LEGACY, proof='"find_records"',
    ),
    Habit(
        client="PHP SDK", source="modelcontextprotocol/php-sdk#284",
        sends="`[]` for capabilities without members", method="initialize",
        params={**HELLO, "capabilities": []}, revision=LEGACY, proof='"serverInfo"',
    ),
    Habit(
        client="Claude Code", source="anthropics/claude-code#45368",
        sends="`Accept: application/json` alone", params=MODELS, headers={"Accept": JSON},
    ),
    Habit(
        client="Claude Code", source="anthropics/claude-code#45368",
        sends="the same, and asks for progress", headers={"Accept": JSON},
        params={"name": "count_to", "arguments": {"number": 3}, "_meta": {"progressToken": 1}},
    ),
    Habit(
        client="ElevenLabs", source="ComposioHQ/composio#2152",
        sends="`Accept: text/event-stream` alone", params=MODELS, headers={"Accept": STREAM},
        kind=STREAM,
    ),
    Habit(
        client="LibreChat", source="danny-avila/LibreChat#11905",
        sends="`null` for an argument of a prompt that nobody filled in",
        method="completion/complete", params=COMPLETED, proof='"shop.order"',
    ),
    *(
        Habit(
            client="programs for REST APIs", source=REST, sends=sends, params=MODELS,
            headers={"Authorization": header}, status=401, proof="Bearer <token>",
        )
        for sends, header in (
            ("`Authorization: Token ...`", "Token abc"),
            ("a bare token as `Authorization`", "mcp_abc"),
        )
    ),
]
# fmt: on
