"""What clients send that no specification says, one row for each habit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mcp_django.protocol.revisions import Revision

ORDERS = {"model": "shop.order"}
PHP = {"name": "php", "version": "1"}
FIND, LEGACY = "find_records", Revision.V2025_06_18
JSON, STREAM = "application/json", "text/event-stream"


@dataclass(frozen=True, kw_only=True)
class Habit:
    client: str
    #: In words, for the docs.
    sends: str
    #: The thread that tells of it, or where it was seen.
    source: str
    method: str = "tools/call"
    params: Any = None
    headers: dict[str, str | None] = field(default_factory=dict)
    revision: Revision = Revision.V2026_07_28
    #: The answer: its status, its media type, and a part of its body.
    status: int = 200
    kind: str = JSON
    proof: str = '"isError":false'


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"name": tool, "arguments": arguments}


HABITS = [
    Habit(
        client="n8n",
        sends="`toolCallId`, `sessionId`, `action` and `chatInput` as arguments of each tool",
        source="n8n-io/n8n#21500",
        params=call(FIND, **ORDERS, toolCallId="c", sessionId="s", action="send", chatInput="hi"),
    ),
    Habit(
        client="Claude Code",
        sends='numbers and booleans as texts: `"limit": "2"`',
        source="anthropics/claude-code#24597",
        params=call(FIND, **ORDERS, limit="2"),
    ),
    Habit(
        client="Claude Code",
        sends='`"null"` where nothing is meant',
        source="anthropics/claude-code#95239",
        params=call(FIND, **ORDERS, filters="null", cursor="null"),
    ),
    Habit(
        client="Claude Code",
        sends="booleans as texts inside of an object",
        source="anthropics/claude-code#32524",
        params=call(FIND, **ORDERS, filters={"number__isnull": "false"}),
    ),
    Habit(
        client="LangChain with Gemini",
        sends="objects as JSON in a text, and `5.0` for 5",
        source="seen with langchain-google-genai 4.4.2",
        params=call(FIND, **ORDERS, filters='{"status": "new"}', limit=5.0),
    ),
    Habit(
        client="PHP SDK",
        sends="`[]` for arguments without members",
        source="modelcontextprotocol/php-sdk#284",
        params={"name": "list_models", "arguments": []},
    ),
    Habit(
        client="PHP SDK",
        sends="`[]` for params without members",
        source="modelcontextprotocol/php-sdk#284",
        method="tools/list",
        params=[],
        revision=LEGACY,
        proof='"find_records"',
    ),
    Habit(
        client="PHP SDK",
        sends="`[]` for capabilities without members",
        source="modelcontextprotocol/php-sdk#284",
        method="initialize",
        params={"protocolVersion": LEGACY.value, "capabilities": [], "clientInfo": PHP},
        revision=LEGACY,
        proof='"serverInfo"',
    ),
    Habit(
        client="Claude Code",
        sends="`Accept: application/json` alone",
        source="anthropics/claude-code#45368",
        params=call("list_models"),
        headers={"Accept": JSON},
    ),
    Habit(
        client="Claude Code",
        sends="the same, and asks to hear of progress",
        source="anthropics/claude-code#45368",
        params={**call("count_to", number=3), "_meta": {"progressToken": 1}},
        headers={"Accept": JSON},
    ),
    Habit(
        client="ElevenLabs",
        sends="`Accept: text/event-stream` alone",
        source="ComposioHQ/composio#2152",
        params=call("list_models"),
        headers={"Accept": STREAM},
        kind=STREAM,
    ),
    Habit(
        client="LibreChat",
        sends="`null` for an argument of a prompt that nobody filled in",
        source="danny-avila/LibreChat#11905",
        method="completion/complete",
        params={
            "ref": {"type": "ref/resource", "uri": "django://models/{model}"},
            "argument": {"name": "model", "value": ""},
            "context": {"arguments": {"model": None}},
        },
        proof='"shop.order"',
    ),
    Habit(
        client="programs for REST APIs",
        sends="`Authorization: Token ...`",
        source="TokenAuthentication of Django REST framework",
        params=call("list_models"),
        headers={"Authorization": "Token abc"},
        status=401,
        proof="Bearer <token>",
    ),
    Habit(
        client="programs for REST APIs",
        sends="a bare token as `Authorization`",
        source="TokenAuthentication of Django REST framework",
        params=call("list_models"),
        headers={"Authorization": "mcp_abc"},
        status=401,
        proof="Bearer <token>",
    ),
]
