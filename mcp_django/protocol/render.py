"""Results into the wire shape of one revision. Nobody else leaves anything out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from mcp_django.protocol.envelope import META, SUPPORTED
from mcp_django.protocol.jsonrpc import encode_notification, encoder
from mcp_django.protocol.notifications import SUBSCRIPTION_KEY, Notification
from mcp_django.protocol.render_content import annotations_of, content, given
from mcp_django.protocol.results import (
    CompletionResult,
    Definition,
    DiscoverResult,
    EmptyResult,
    InitializeResult,
    InputRequired,
    ListenResult,
    ListResult,
    PromptArgument,
    PromptDefinition,
    PromptResult,
    ReadResult,
    Resource,
    ResourceTemplate,
    Result,
    ToolDefinition,
    ToolResult,
)
from mcp_django.protocol.revisions import Features, Revision

#: How long a client may keep a list, in milliseconds. What a read answers may change at once.
LIST_TTL = 5_000


@dataclass(frozen=True, kw_only=True)
class ServerInfo:
    """What the server says of itself."""

    name: str
    version: str
    instructions: str = ""
    #: Whether answers may stream. A client that knows not to wait for progress saves itself time.
    streams: bool = True

    def capabilities(self, features: Features) -> dict[str, Any]:
        """What this build serves; the same features in every revision's words."""
        found: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}}
        if self.streams:
            for one in found.values():
                one["listChanged"] = True
            found["resources"]["subscribe"] = True
            found["logging"] = {}
        if features.completions_capability:
            found["completions"] = {}
        if not self.streams:
            found["experimental"] = {"jsonOnly": {}}
        return found

    def implementation(self) -> dict[str, str]:
        return {"name": self.name, "version": self.version}


def render(result: Result, revision: Revision, server: ServerInfo) -> dict[str, Any]:
    """The member `result` of the answer."""
    features = revision.features
    wire = body_of(result, features, server)
    if features.result_type:
        wire["resultType"] = "input_required" if isinstance(result, InputRequired) else "complete"
        wire["_meta"] = {META + "serverInfo": server.implementation()}
        if isinstance(result, ListenResult):
            wire["_meta"][SUBSCRIPTION_KEY] = result.subscription
    if features.caching and (ttl := ttl_of(result)) is not None:
        wire["ttlMs"] = ttl
        # Every answer depends on the rights of the caller.
        wire["cacheScope"] = "private"
    return wire


def ttl_of(result: Result) -> int | None:
    if isinstance(result, ListResult | DiscoverResult):
        return LIST_TTL
    return 0 if isinstance(result, ReadResult) else None


def body_of(result: Result, features: Features, server: ServerInfo) -> dict[str, Any]:
    match result:
        case ToolResult():
            return tool_result(result, features)
        case ListResult():
            wire: dict[str, Any] = {result.key: definitions(result, features)}
            if result.next_cursor is not None:
                wire["nextCursor"] = result.next_cursor
            return wire
        case ReadResult():
            return {"contents": [contents.as_wire() for contents in result.contents]}
        case PromptResult():
            messages = [
                {"role": message.role, "content": content(message.content, features)}
                for message in result.messages
            ]
            return given(description=result.description) | {"messages": messages}
        case CompletionResult():
            return {"completion": completion(result)}
        case InputRequired():
            asked = {key: one.as_wire() for key, one in result.questions.items()}
            return {"inputRequests": asked, "requestState": result.state}
        case InitializeResult() | DiscoverResult():
            return hello(result, features, server)
        case ListenResult() | EmptyResult():  # pragma: no branch
            return {}


def completion(result: CompletionResult) -> dict[str, Any]:
    wire: dict[str, Any] = {"values": list(result.values), "hasMore": result.has_more}
    return wire if result.total is None else {**wire, "total": result.total}


def hello(
    result: InitializeResult | DiscoverResult, features: Features, server: ServerInfo
) -> dict[str, Any]:
    if isinstance(result, DiscoverResult):
        about = greeting(server, features, result.instructions)
        return {**about, "supportedVersions": SUPPORTED}
    # In the words of the revision that was agreed on, not of the one that was assumed.
    agreed = Revision(result.protocol_version).features
    return greeting(server, agreed, result.instructions) | {
        "protocolVersion": result.protocol_version,
        "serverInfo": server.implementation(),
    }


def greeting(server: ServerInfo, features: Features, instructions: str) -> dict[str, Any]:
    wire: dict[str, Any] = {"capabilities": server.capabilities(features)}
    if instructions or server.instructions:
        wire["instructions"] = instructions or server.instructions
    return wire


def tool_result(result: ToolResult, features: Features) -> dict[str, Any]:
    wire: dict[str, Any] = {
        "content": [content(block, features) for block in result.content],
        "isError": result.is_error,
    }
    if result.has_structured and has_structured(result.structured, features):
        wire["structuredContent"] = result.structured
    return wire


def has_structured(value: Any, features: Features) -> bool:
    """Whether the revision can say this: none, objects only, or any JSON value."""
    if not features.structured_content or features.any_structured_content:
        return features.structured_content
    if isinstance(value, msgspec.Raw):
        return bytes(memoryview(value)[:1]) == b"{"
    return isinstance(value, dict)


def definitions(page: ListResult, features: Features) -> msgspec.Raw:
    """An array, spliced of what is encoded already: once for a page that is answered again."""
    found = page.encodings.get(features)
    if found is None:
        parts = [encoded(one, features) for one in page.definitions]
        found = page.encodings[features] = b"[" + b",".join(parts) + b"]"
    return msgspec.Raw(found)


def encoded(one: Definition, features: Features) -> bytes:
    """Nothing but the definition and the revision decides on these bytes, and no caller does."""
    found = one.encodings.get(features)
    if found is None:
        found = one.encodings[features] = encoder.encode(definition(one, features))
    return found


def definition(one: Definition, features: Features) -> dict[str, Any]:
    match one:
        case ToolDefinition():
            return tool_definition(one, features)
        case PromptDefinition():
            return prompt_definition(one, features)
        case Resource():
            wire: dict[str, Any] = {"uri": one.uri}
            if one.size is not None:
                wire["size"] = one.size
        case ResourceTemplate():  # pragma: no branch
            wire = {"uriTemplate": one.uri_template}
    wire |= {"name": one.name, "description": one.description}
    wire |= given(mimeType=one.mime_type)
    if one.title and features.titles:
        wire["title"] = one.title
    if one.annotations is not None:
        wire["annotations"] = annotations_of(one.annotations, features)
    return wire


def prompt_definition(prompt: PromptDefinition, features: Features) -> dict[str, Any]:
    wire: dict[str, Any] = {"name": prompt.name, "description": prompt.description}
    if prompt.arguments:
        wire["arguments"] = [prompt_argument(one, features) for one in prompt.arguments]
    if features.titles and prompt.title:
        wire["title"] = prompt.title
    return wire


def prompt_argument(argument: PromptArgument, features: Features) -> dict[str, Any]:
    wire: dict[str, Any] = {"name": argument.name, "required": argument.required}
    wire |= given(description=argument.description)
    if features.titles and argument.title:
        wire["title"] = argument.title
    return wire


def tool_definition(tool: ToolDefinition, features: Features) -> dict[str, Any]:
    wire: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
    }
    if features.titles and tool.title:
        wire["title"] = tool.title
    if features.tool_annotations:
        wire["annotations"] = {
            "readOnlyHint": tool.annotations.read_only,
            "destructiveHint": tool.annotations.destructive,
            "idempotentHint": tool.annotations.idempotent,
            "openWorldHint": tool.annotations.open_world,
        }
        # 2025-03-26 has a tool's title among its annotations only.
        if tool.title and not features.titles:
            wire["annotations"]["title"] = tool.title
    schema = tool.output_schema
    # A revision that takes objects only gets neither the schema nor the content of another root.
    if (
        schema is not None
        and features.structured_content
        and (features.any_structured_content or schema.get("type") == "object")
    ):
        wire["outputSchema"] = schema
    return wire


def notification(one: Notification, revision: Revision) -> bytes:
    """A notification as the bytes of one message."""
    params = one.params
    if not revision.features.progress_message:
        params = {name: value for name, value in params.items() if name != "message"}
    return encode_notification(one.method, params)
