"""What clients send that no specification says, one row for each habit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import UNSET

from mcp_django.protocol.revisions import Revision
from tests.transports.wire import counting, hello

JSON, STREAM, HTML = "application/json", "text/event-stream", "text/html; charset=utf-8"
FOUND, TOOLS, DISCOVERED = '"isError":false', '"find_records"', '"supportedVersions"'
REST = "TokenAuthentication of Django REST framework"
OLDEST, MARCH, JUNE, NOVEMBER, NEWEST = Revision


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
OPENAI = {"openai/locale": "de-DE", "openai/userLocation": {"city": "Bonn"}}
EXTENSIONS = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}
COMPLETED = {
    "ref": {"type": "ref/resource", "uri": "django://models/{model}"},
    "argument": {"name": "model", "value": ""},
    "context": {"arguments": {"model": None}},
}
NO_REVISION = {"MCP-Protocol-Version": None}
NOBODY = {"Authorization": None}
CHALLENGE: dict[str, Any] = {
    "gets": "401 with `WWW-Authenticate`",
    "status": 401,
    "proof": "www-authenticate: Bearer ",
}
NO_STREAM: dict[str, Any] = {
    "verb": "GET",
    "headers": {"Accept": STREAM},
    "revision": NOVEMBER,
    "gets": "405: no stream without a session",
    "status": 405,
    "proof": "allow: POST",
}
ACCEPTED: dict[str, Any] = {"gets": "202", "status": 202, "kind": "", "proof": ""}
# One habit in four lines: who, what, whence, and the request.
# fmt: off
COPILOT = Habit(
    client="Copilot CLI", version="1.0.85", source="github/copilot-cli#4888",
    sends="`server/discover` with the id 0 before anything else",
    method="server/discover", members={"id": 0}, proof=DISCOVERED,
)
HABITS = [
    Habit(
        client="Claude.ai", source="anthropics/claude-ai-mcp#975",
        sends="no `Mcp-Session-Id`, although the answer to `initialize` had one", **LIST,
        in_session=True, headers={"Mcp-Session-Id": None}, revision=NOVEMBER,
    ),
    Habit(
        client="Claude.ai", source="anthropics/claude-ai-mcp#70",
        sends="no `MCP-Protocol-Version` after the handshake", **LIST,
        in_session=True, headers=NO_REVISION, revision=NOVEMBER,
    ),
    Habit(
        client="Claude.ai", source="anthropics/claude-ai-mcp#76",
        sends="`Accept: */*`", headers={"Accept": "*/*"}, **handshake(NOVEMBER),
    ),
    Habit(
        client="Claude.ai", source="anthropics/claude-code#27425",
        sends="the id of a session that the site no longer knows",
        verb="GET", headers={"Accept": STREAM, "Mcp-Session-Id": "old"}, revision=NOVEMBER,
        gets="404: begin a new session", status=404, proof="Session not found",
    ),
    Habit(
        client="Claude Desktop", version="1.7196.0.0",
        source="modelcontextprotocol/servers#4153", sends="0 as the id of `initialize`",
        **handshake(NOVEMBER) | {"members": {"id": 0}, "proof": '"id":0,'},
    ),
    Habit(
        client="Claude Desktop", version="1.7196.0.0",
        source="modelcontextprotocol/servers#4153",
        sends="`notifications/cancelled` for an `initialize` that had no answer in time",
        method="notifications/cancelled", params={"requestId": 0, "reason": "timed out"},
        members={"id": UNSET}, headers=NO_REVISION, revision=NOVEMBER, **ACCEPTED,
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
        client="Claude Code", version="2.1.96", source="anthropics/claude-code#45368",
        sends="`Accept: application/json` alone", params=MODELS, headers={"Accept": JSON},
    ),
    Habit(
        client="Claude Code", version="2.1.96", source="anthropics/claude-code#45368",
        sends="`Accept: application/json` alone, and asks for progress",
        params=counting(1), headers={"Accept": JSON},
    ),
    Habit(
        client="Claude Code", version="2.1.267", source="oraios/serena#1776",
        sends="`server/discover` with a text as its id before anything else",
        method="server/discover", members={"id": "server-discover-probe-1"}, proof=DISCOVERED,
    ),
    Habit(
        client="Claude Code", version="2.1.267", source="anthropics/claude-code#93290",
        sends="2025-11-25 in `MCP-Protocol-Version` and 2026-07-28 in `_meta`, by a connector",
        params=MODELS, headers={"MCP-Protocol-Version": NOVEMBER.value},
        gets="400, as the specification demands", status=400, proof="-32020",
    ),
    Habit(
        client="ChatGPT", source="openai/sample-deep-research-mcp#2",
        sends="`POST` to the address of HTTP+SSE, before it asks for the stream",
        **handshake(JUNE) | {"path": "/mcp/sse", "status": 405, "proof": "allow: GET"},
        gets="405 with `Allow: GET`",
    ),
    Habit(
        client="ChatGPT", source="developers.openai.com/apps-sdk/reference",
        sends="language and place of the person in `_meta`",
        params={**MODELS, "_meta": OPENAI},
    ),
    Habit(
        client="Codex", source="MaterializeInc/materialize#38558",
        sends="0 as a progress token, also with `tools/list`", **LIST,
        params={"_meta": {"progressToken": 0}}, in_session=True, revision=JUNE,
    ),
    Habit(
        client="Codex", source="openai/codex#20562",
        sends="`elicitation` in the form of 2025-11-25 when it asks for 2025-06-18",
        **handshake(JUNE, elicitation={"form": {}}),
    ),
    Habit(
        client="Codex", source="openai/codex, codex-rs/rmcp-client/src/auth_status.rs",
        sends="`GET` for metadata below the endpoint, without a credential",
        verb="GET", headers=NOBODY | {"MCP-Protocol-Version": OLDEST.value},
        path="/mcp/.well-known/oauth-authorization-server",
        gets="404", status=404, kind=HTML, proof="Not Found",
    ),
    Habit(
        client="Cursor", source="punkpeye/mcp-proxy#62",
        sends="`GET` for a stream where it has no session", **NO_STREAM,
    ),
    Habit(
        client="Cursor", source="gitcnd/easy_mcp, README.md",
        sends='booleans as capabilities: `"tools": true`',
        **handshake(OLDEST, tools=True, prompts=False, resources=True, logging=False),
    ),
    Habit(
        client="VS Code", version="1.124.0-insider", source="microsoft/vscode#319528",
        sends="the capability `extensions`, which 2025-11-25 does not have",
        **handshake(NOVEMBER, tasks={"list": {}}, extensions=EXTENSIONS),
    ),
    Habit(
        client="VS Code", source="openai/codex#7951",
        sends="a text as a progress token, and names of its own in `_meta`",
        params={**counting(None), "_meta": {"progressToken": "1106", "vscode.requestId": "b"}},
        in_session=True, headers=NO_REVISION, revision=NOVEMBER, kind=STREAM,
        gets="its progress and the answer, as a stream",
    ),
    Habit(
        client="VS Code", sends="`DELETE` without `MCP-Protocol-Version`", verb="DELETE",
        source="microsoft/vscode, src/vs/workbench/api/common/extHostMcp.ts",
        in_session=True, revision=NOVEMBER, **ACCEPTED | {"gets": "204", "status": 204},
    ),
    COPILOT,
    Habit(
        client="Copilot CLI", version="1.0.85", source="github/copilot-cli#4888",
        sends="`initialize`, although `server/discover` had an answer",
        after=COPILOT, **handshake(NOVEMBER),
    ),
    Habit(
        client="Gemini CLI", version="0.56.0-nightly", sends="`HEAD`, without a credential",
        source="google-gemini/gemini-cli, packages/core/src/mcp/oauth-provider.ts",
        verb="HEAD", headers=NOBODY | {"Accept": JSON}, **CHALLENGE,
    ),
    Habit(
        client="Gemini CLI", version="0.56.0-nightly", source="google-gemini/gemini-cli#27403",
        sends="`wait_for_previous` as an argument of each tool",
        params=find(wait_for_previous=True),
    ),
    Habit(
        client="Kiro", version="2.3.0", source="kirodotdev/Kiro#8425",
        sends="no `Accept`", headers={"Accept": None}, **handshake(JUNE),
    ),
    Habit(
        client="Windsurf", source="gensecaihq/Wazuh-MCP-Server#66",
        sends="`initialize` for 2025-06-18, and needs this revision", **handshake(JUNE),
    ),
    Habit(
        client="Windsurf", source="tidewave-ai/tidewave_phoenix#39",
        sends="no `arguments` where a tool needs none",
        params=MODELS, in_session=True, headers=NO_REVISION, revision=JUNE,
    ),
    Habit(
        client="Zed", source="loocor/mcpmate#21",
        sends="no `MCP-Protocol-Version` after the handshake", **LIST,
        in_session=True, headers=NO_REVISION, revision=MARCH,
    ),
    Habit(
        client="Zed", source="zed-industries/zed, crates/context_server/src/client.rs",
        sends="no `params` with requests for lists", **LIST,
        members={"params": UNSET}, in_session=True, headers=NO_REVISION, revision=MARCH,
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
        client="Open WebUI", source="open-webui/open-webui#25977",
        sends="`initialize` without a credential", headers=NOBODY,
        **handshake(NOVEMBER) | CHALLENGE,
    ),
    Habit(
        client="opencode", version="1.18.8", source="anomalyco/opencode#39354",
        sends="`server/discover` with a text as its id before anything else",
        method="server/discover", members={"id": "server-discover-probe-1"}, proof=DISCOVERED,
    ),
    Habit(
        client="opencode", source="diegosouzapw/OmniRoute#5957",
        sends="`initialize` with the id of a session that is over",
        headers={"Mcp-Session-Id": "old"}, **handshake(NOVEMBER),
        gets="the answer, in a new session",
    ),
    Habit(
        client="mcp-remote", source="geelen/mcp-remote, src/lib/utils.ts",
        sends="`GET` without a credential before anything else", verb="GET",
        headers=NOBODY | {"Accept": f"{JSON}, {STREAM}"}, **CHALLENGE,
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
        client="Spring AI", version="Java SDK 2.1.0",
        source="modelcontextprotocol/java-sdk, HttpClientStreamableHttpTransport.java",
        sends="`MCP-Protocol-Version` with `initialize`, and `charset=utf-8`",
        headers={"MCP-Protocol-Version": "2025-11-25", "Content-Type": f"{JSON}; charset=utf-8"},
        **handshake(NOVEMBER),
    ),
    Habit(
        client="Spring AI", source="spring-projects/spring-ai#5239",
        sends="`GET` for a stream during the handshake", **NO_STREAM,
    ),
    Habit(
        client="Cline", version="3.79.0", source="cline/cline#10426",
        sends="`task_progress` as an argument of each tool",
        params=find(task_progress="- [x] Look"),
    ),
    Habit(
        client="SiYuan", version="3.7.0-beta.1", source="siyuan-note/siyuan#17927",
        sends="`_sessionID` as an argument of each tool", params=find(_sessionID="2026-abc"),
    ),
    Habit(
        client="Cline", version="3.82.0", source="cline/cline#10553",
        sends="no `arguments` where a tool needs none",
        params=MODELS, in_session=True, revision=NOVEMBER,
    ),
    Habit(
        client="Copilot Studio", source="chrisns/govreposcrape#356",
        sends="`notifications/initialized`, and gives up if a JSON-RPC error answers it",
        method="notifications/initialized", members={"id": UNSET},
        in_session=True, revision=NOVEMBER, **ACCEPTED,
    ),
    Habit(
        client="LangChain with Gemini", source="seen with langchain-google-genai 4.4.2",
        sends="objects as JSON in a text, and `5.0` for 5",
        params=find(filters='{"status": "new"}', limit=5.0),
    ),
    Habit(
        client="mcp-golang", source="metoro-io/mcp-golang#134",
        sends="`initialize` for a revision named 1.0", gets="the answer, for 2025-11-25",
        **handshake(NOVEMBER) | {"params": hello(NOVEMBER) | {"protocolVersion": "1.0"}},
    ),
    Habit(
        client="mcp.el (Emacs)", source="lizqwerscott/mcp.el#85",
        sends="`null` for params without members", **LIST,
        members={"params": None}, in_session=True, revision=NOVEMBER,
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
