"""What a message may look like, from the models of the package `mcp-types` and the schemas.

The models of the four revisions with a handshake are one set, and ignore members that they do not
know. MEMBERS says which members each revision's schema has, so that one too many is noticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from mcp_types import methods

from mcp_django.protocol.revisions import Era, Revision

V24, V2503, V2506, V2511, V26 = Revision

PREFIX = "io.modelcontextprotocol/"
LIST_MEMBERS = {"tools": "tool", "resources": "resource", "resourceTemplates": "template"}
CACHED = frozenset(
    {
        "server/discover", "tools/list", "resources/list", "resources/templates/list",
        "resources/read", "prompts/list",
    }
)  # fmt: skip
#: The methods that may be answered with questions.
ASKING = {"tools/call", "prompts/get", "resources/read"}
#: The members of each kind of object, by the revision that added them.
MEMBERS: dict[str, dict[Revision, set[str]]] = {
    "tool": {
        V24: {"name", "description", "inputSchema"},
        V2503: {"annotations"},
        V2506: {"title", "outputSchema", "_meta"},
        V2511: {"icons"},
    },
    "tool annotations": {
        V2503: {"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"},
    },
    "resource": {
        V24: {"uri", "name", "description", "mimeType", "size", "annotations"},
        V2506: {"title", "_meta"},
        V2511: {"icons"},
    },
    "template": {
        V24: {"uriTemplate", "name", "description", "mimeType", "annotations"},
        V2506: {"title", "_meta"},
        V2511: {"icons"},
    },
    "annotations": {V24: {"audience", "priority"}, V2506: {"lastModified"}},
    "text": {V24: {"type", "text", "annotations"}, V2506: {"_meta"}},
    "image": {V24: {"type", "data", "mimeType", "annotations"}, V2506: {"_meta"}},
    "audio": {V2503: {"type", "data", "mimeType", "annotations"}, V2506: {"_meta"}},
    "resource content": {V24: {"type", "resource", "annotations"}, V2506: {"_meta"}},
    "resource_link": {
        V2506: {"type", "uri", "name", "title", "description", "mimeType", "size"}
        | {"annotations", "_meta"},
        V2511: {"icons"},
    },
    "contents": {V24: {"uri", "mimeType", "text", "blob"}, V2506: {"_meta"}},
    "implementation": {
        V24: {"name", "version"},
        V2506: {"title"},
        V2511: {"description", "icons", "websiteUrl"},
    },
    "tools/call": {V24: {"content", "isError", "_meta"}, V2506: {"structuredContent"}},
    "resources/read": {V24: {"contents", "_meta"}},
    "tools/list": {V24: {"tools", "nextCursor", "_meta"}},
    "resources/list": {V24: {"resources", "nextCursor", "_meta"}},
    "resources/templates/list": {V24: {"resourceTemplates", "nextCursor", "_meta"}},
    "prompts/list": {V24: {"prompts", "nextCursor", "_meta"}},
    "prompts/get": {V24: {"description", "messages", "_meta"}},
    "prompt": {
        V24: {"name", "description", "arguments"},
        V2506: {"title", "_meta"},
        V2511: {"icons"},
    },
    "prompt argument": {V24: {"name", "description", "required"}, V2506: {"title"}},
    "message": {V24: {"role", "content"}},
    "completion/complete": {V24: {"completion", "_meta"}},
    "ping": {V24: {"_meta"}},
    "resources/subscribe": {V24: {"_meta"}},
    "resources/unsubscribe": {V24: {"_meta"}},
    "logging/setLevel": {V24: {"_meta"}},
    "subscriptions/listen": {V26: {"_meta"}},
    "initialize": {
        V24: {"protocolVersion", "capabilities", "serverInfo", "instructions", "_meta"},
    },
    "server/discover": {V26: {"supportedVersions", "capabilities", "instructions", "_meta"}},
    "input required": {V26: {"inputRequests", "requestState", "_meta"}},
    "elicitation": {
        V2506: {"message", "requestedSchema", "_meta"},
        V2511: {"mode", "url", "elicitationId"},
    },
    "string to fill in": {
        V2506: {"type", "title", "description", "minLength", "maxLength", "format"}
        | {"enum", "enumNames"},
        V2511: {"default", "oneOf"},
    },
    "number to fill in": {
        V2506: {"type", "title", "description", "minimum", "maximum"},
        V2511: {"default"},
    },
    "boolean to fill in": {V2506: {"type", "title", "description", "default"}},
    "array to fill in": {
        V2511: {"type", "title", "description", "items", "minItems", "maxItems", "default"},
    },
    "notifications/progress": {V24: {"progressToken", "progress", "total"}, V2503: {"message"}},
    "notifications/message": {V24: {"level", "logger", "data"}},
    "notifications/cancelled": {V24: {"requestId", "reason"}},
    "notifications/resources/updated": {V24: {"uri"}},
    "notifications/resources/list_changed": {},
    "notifications/tools/list_changed": {},
    "notifications/prompts/list_changed": {},
    "notifications/subscriptions/acknowledged": {V26: {"notifications"}},
    "subscription filter": {
        V26: {"toolsListChanged", "promptsListChanged", "resourcesListChanged"}
        | {"resourceSubscriptions"},
    },
    "roots/list": {V24: set()},
    "sampling/createMessage": {
        V24: {"messages", "modelPreferences", "systemPrompt", "includeContext", "temperature"}
        | {"maxTokens", "stopSequences", "metadata"},
        V2511: {"tools", "toolChoice"},
    },
}
#: In the modern era these travel on the stream of a subscription only, and name it.
SUBSCRIBED = {
    "notifications/subscriptions/acknowledged",
    "notifications/resources/updated",
    "notifications/resources/list_changed",
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
}
#: Codes that one era must not send.
LEGACY_CODES = {-32002, -32042}
MODERN_CODES = range(-32099, -32019)


def assert_valid_message(
    revision: Revision, method: str, message: bytes | Mapping[str, Any]
) -> None:
    """A server's message to a peer of this revision: the answer to a request of `method`, or a
    notification or a request of `method`. Raises AssertionError, or pydantic's ValidationError."""
    wire = msgspec.json.decode(message) if isinstance(message, bytes) else message
    assert wire["jsonrpc"] == "2.0"
    if "method" in wire and "id" in wire:
        assert_valid_request(revision, method, wire)
    elif "method" in wire:
        assert_valid_notification(revision, method, wire)
    elif "error" in wire:
        assert_valid_error(revision, wire)
    else:
        assert wire.keys() == {"jsonrpc", "id", "result"}
        assert type(wire["id"]) in (int, str)
        assert_valid_result(revision, method, wire["result"])


def assert_valid_result(revision: Revision, method: str, result: Mapping[str, Any]) -> None:
    """A result of `method`, without the message round it."""
    methods.validate_server_result(method, revision.value, result)
    is_asking = result.get("resultType") == "input_required"
    if is_asking:
        assert method in ASKING
        assert result["inputRequests"]
    allowed = members("input required" if is_asking else method, revision)
    if revision.era is Era.MODERN:
        is_cached = method in CACHED and not is_asking
        allowed |= {"resultType", "ttlMs", "cacheScope"} if is_cached else {"resultType"}
        assert_members("implementation", revision, result["_meta"][f"{PREFIX}serverInfo"])
    assert result.keys() <= allowed
    assert result.get("nextCursor", "") is not None
    if not revision.features.any_structured_content and "structuredContent" in result:
        assert isinstance(result["structuredContent"], dict)
    if "serverInfo" in result:
        assert_members("implementation", revision, result["serverInfo"])
    for kind, part in parts_of(result):
        assert_members(kind, revision, part)


def parts_of(result: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The objects in a result whose members differ by revision, and their kind."""
    for member, kind in LIST_MEMBERS.items():
        for one in result.get(member, ()):
            yield kind, one
            if "annotations" in one:
                yield ("tool annotations" if kind == "tool" else "annotations"), one["annotations"]
    for prompt in result.get("prompts", ()):
        yield "prompt", prompt
        for argument in prompt.get("arguments", ()):
            yield "prompt argument", argument
    for message in result.get("messages", ()):
        yield "message", message
        assert message["role"] in ("user", "assistant")
    said = [message["content"] for message in result.get("messages", ())]
    for block in [*result.get("content", ()), *said]:
        yield "resource content" if block["type"] == "resource" else block["type"], block
        yield "annotations", block.get("annotations", {})
    for contents in result.get("contents", ()):
        assert ("text" in contents) != ("blob" in contents)
        yield "contents", contents


def assert_valid_elicitation(revision: Revision, params: Mapping[str, Any]) -> None:
    assert_members("elicitation", revision, params)
    if params.get("mode") == "url":
        assert params.keys() >= {"message", "url", "elicitationId"}
        return
    schema = params["requestedSchema"]
    assert schema.keys() <= {"$schema", "type", "properties", "required"}
    for one in schema["properties"].values():
        kind = "number" if one["type"] == "integer" else one["type"]
        assert_members(f"{kind} to fill in", revision, one)


def assert_valid_error(revision: Revision, wire: Mapping[str, Any]) -> None:
    assert wire.keys() - {"id"} == {"jsonrpc", "error"}
    if revision.features.error_id_optional:
        assert type(wire.get("id", "absent")) in (int, str), "null is no id in this revision"
    else:
        assert type(wire["id"]) in (int, str, type(None))
    error = wire["error"]
    assert error.keys() <= {"code", "message", "data"}
    assert type(error["code"]) is int
    assert error["message"]
    assert "\n" not in error["message"]
    if revision.era is Era.MODERN:
        assert error["code"] not in LEGACY_CODES
        assert error["code"] not in MODERN_CODES or -32022 <= error["code"] <= -32020
    else:
        # A version that nobody serves belongs to no era: the newest words tell about it.
        assert error["code"] not in MODERN_CODES or error["code"] == -32022


def assert_valid_notification(revision: Revision, method: str, wire: Mapping[str, Any]) -> None:
    assert wire.keys() == {"jsonrpc", "method", "params"}
    assert wire["method"] == method
    model = methods.SERVER_NOTIFICATIONS.get((method, revision.value))
    assert model, f"{revision.value} knows no {method}"
    model.model_validate(dict(wire))
    params = dict(wire["params"])
    meta = params.pop("_meta", {})
    assert_members(method, revision, params)
    assert_members("subscription filter", V26, params.get("notifications", {}))
    if revision.era is Era.MODERN and method in SUBSCRIBED:
        assert type(meta.get(f"{PREFIX}subscriptionId")) in (int, str)
    else:
        assert f"{PREFIX}subscriptionId" not in meta


def assert_valid_request(revision: Revision, method: str, wire: Mapping[str, Any]) -> None:
    assert wire.keys() == {"jsonrpc", "id", "method", "params"}
    assert wire["method"] == method
    assert type(wire["id"]) in (int, str)
    model = methods.SERVER_REQUESTS.get((method, revision.value))
    assert model, f"{revision.value} knows no {method} of a server"
    model.model_validate(dict(wire))
    if method == "elicitation/create":
        assert_valid_elicitation(revision, wire["params"])
    else:
        assert_members(method, revision, wire["params"].keys() - {"_meta"})


def assert_members(kind: str, revision: Revision, part: Iterable[str]) -> None:
    surplus = set(part) - members(kind, revision)
    assert not surplus, f"{revision.value} knows no {sorted(surplus)} in {kind}"


def members(kind: str, revision: Revision) -> set[str]:
    """What this revision's schema has, with what the ones before had."""
    known = list(Revision)[: list(Revision).index(revision) + 1]
    return set().union(*(MEMBERS[kind].get(one, set()) for one in known))
