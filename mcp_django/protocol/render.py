"""Results into the wire shape of one revision. Nobody else leaves anything out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from mcp_django.protocol import results
from mcp_django.protocol.content import (
    Annotations,
    AudioContent,
    Content,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
    as_base64,
)
from mcp_django.protocol.jsonrpc import Notification, encode_notification, encoder
from mcp_django.protocol.negotiation import META, SUPPORTED
from mcp_django.protocol.revisions import Features, Revision


def content(block: Content, features: Features) -> dict[str, Any]:
    """One block, or what comes nearest to it in a revision that has no such block."""
    wire = block_of(block, features)
    if block.annotations is not None:
        wire["annotations"] = annotations_of(block.annotations, features)
    return wire


def block_of(block: Content, features: Features) -> dict[str, Any]:
    match block:
        case TextContent():
            return {"type": "text", "text": block.text}
        case ImageContent():
            return {"type": "image", "data": as_base64(block.data), "mimeType": block.mime_type}
        case AudioContent() if not features.audio:
            contents = ResourceContents(
                uri="audio://content", mime_type=block.mime_type, blob=block.data
            )
            return {"type": "resource", "resource": contents.as_wire()}
        case AudioContent():
            return {"type": "audio", "data": as_base64(block.data), "mimeType": block.mime_type}
        case EmbeddedResource():
            return {"type": "resource", "resource": block.contents.as_wire()}
        case ResourceLink() if not features.resource_links:
            return {"type": "text", "text": f"{block.title or block.name}: {block.uri}"}
        case ResourceLink():  # pragma: no branch
            wire = {"type": "resource_link", "uri": block.uri, "name": block.name}
            wire |= given(
                title=block.title, description=block.description, mimeType=block.mime_type
            )
            return wire if block.size is None else {**wire, "size": block.size}


def annotations_of(one: Annotations, features: Features) -> dict[str, Any]:
    wire: dict[str, Any] = given(audience=list(one.audience))
    if one.priority is not None:
        wire["priority"] = one.priority
    if one.last_modified and features.last_modified:
        wire["lastModified"] = one.last_modified
    return wire


def given(**members: Any) -> dict[str, Any]:
    """The members that are not empty."""
    return {name: value for name, value in members.items() if value}


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
            for capability in found.values():
                capability["listChanged"] = True
            found["resources"]["subscribe"] = True
        if features.completions_capability:
            found["completions"] = {}
        return found | ({"logging": {}} if self.streams else {"experimental": {"jsonOnly": {}}})

    def implementation(self) -> dict[str, str]:
        return {"name": self.name, "version": self.version}


def render(result: results.Result, revision: Revision, server: ServerInfo) -> dict[str, Any]:
    """The member `result` of the answer."""
    features = revision.features
    wire = body_of(result, features, server)
    if features.result_type:
        wire["resultType"] = (
            "input_required" if isinstance(result, results.InputRequired) else "complete"
        )
        wire["_meta"] = {META + "serverInfo": server.implementation()}
        if isinstance(result, results.ListenResult):
            wire["_meta"][SUBSCRIPTION_KEY] = result.subscription
    is_list = isinstance(result, results.ListResult | results.DiscoverResult)
    if features.caching and (is_list or isinstance(result, results.ReadResult)):
        wire["ttlMs"] = LIST_TTL if is_list else 0
        # Every answer depends on the rights of the caller.
        wire["cacheScope"] = "private"
    return wire


def body_of(result: results.Result, features: Features, server: ServerInfo) -> dict[str, Any]:
    match result:
        case results.ToolResult():
            return tool_result(result, features)
        case results.ListResult():
            wire: dict[str, Any] = {result.key: definitions(result, features)}
            if result.next_cursor is not None:
                wire["nextCursor"] = result.next_cursor
            return wire
        case results.ReadResult():
            return {"contents": [contents.as_wire() for contents in result.contents]}
        case results.PromptResult():
            messages = [
                {"role": message.role, "content": content(message.content, features)}
                for message in result.messages
            ]
            return given(description=result.description) | {"messages": messages}
        case results.CompletionResult():
            found = {"values": list(result.values), "hasMore": result.has_more}
            return {
                "completion": found if result.total is None else {**found, "total": result.total}
            }
        case results.InputRequired():
            asked = {key: one.as_wire() for key, one in result.questions.items()}
            return {"inputRequests": asked, "requestState": result.state}
        case results.InitializeResult() | results.DiscoverResult():
            return hello(result, features, server)
        case results.ListenResult() | results.EmptyResult():  # pragma: no branch
            return {}


def hello(
    result: results.InitializeResult | results.DiscoverResult,
    features: Features,
    server: ServerInfo,
) -> dict[str, Any]:
    if isinstance(result, results.InitializeResult):
        # In the words of the revision that was agreed on, not of the one that was assumed.
        features = Revision(result.protocol_version).features
        about: dict[str, Any] = {
            "protocolVersion": result.protocol_version,
            "serverInfo": server.implementation(),
        }
    else:
        about = {"supportedVersions": SUPPORTED}
    about["capabilities"] = server.capabilities(features)
    return about | given(instructions=result.instructions or server.instructions)


def tool_result(result: results.ToolResult, features: Features) -> dict[str, Any]:
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


def definitions(page: results.ListResult, features: Features) -> msgspec.Raw:
    """An array, spliced of what is encoded already: once for a page that is answered again."""
    found = page.encodings.get(features)
    if found is None:
        parts = [encoded(one, features) for one in page.definitions]
        found = page.encodings[features] = b"[" + b",".join(parts) + b"]"
    return msgspec.Raw(found)


def encoded(one: results.Definition, features: Features) -> bytes:
    """Nothing but the definition and the revision decides on these bytes, and no caller does."""
    found = one.encodings.get(features)
    if found is None:
        found = one.encodings[features] = encoder.encode(definition(one, features))
    return found


def definition(one: results.Definition, features: Features) -> dict[str, Any]:
    match one:
        case results.ToolDefinition():
            return tool_definition(one, features)
        case results.PromptDefinition():
            return prompt_definition(one, features)
        case results.Resource():
            wire: dict[str, Any] = {"uri": one.uri}
            if one.size is not None:
                wire["size"] = one.size
        case results.ResourceTemplate():  # pragma: no branch
            wire = {"uriTemplate": one.uri_template}
    wire |= {"name": one.name, "description": one.description}
    wire |= given(mimeType=one.mime_type) | title_member(one, features)
    if one.annotations is not None:
        wire["annotations"] = annotations_of(one.annotations, features)
    return wire


def title_member(
    one: results.Definition | results.PromptArgument, features: Features
) -> dict[str, Any]:
    return given(title=one.title) if features.titles else {}


def prompt_definition(prompt: results.PromptDefinition, features: Features) -> dict[str, Any]:
    wire: dict[str, Any] = {"name": prompt.name, "description": prompt.description}
    if prompt.arguments:
        wire["arguments"] = [
            {"name": argument.name, "required": argument.required}
            | given(description=argument.description)
            | title_member(argument, features)
            for argument in prompt.arguments
        ]
    return wire | title_member(prompt, features)


def tool_definition(tool: results.ToolDefinition, features: Features) -> dict[str, Any]:
    wire: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
    }
    wire |= title_member(tool, features)
    if features.tool_annotations:
        wire["annotations"] = hints_of(tool.annotations)
        # 2025-03-26 has a tool's title among its annotations only.
        if tool.title and not features.titles:
            wire["annotations"]["title"] = tool.title
    schema, any_root = tool.output_schema, features.any_structured_content
    # A revision that takes objects only gets neither the schema nor the content of another root.
    fits = schema is not None and (any_root or schema.get("type") == "object")
    if fits and features.structured_content:
        wire["outputSchema"] = schema
    return wire


def hints_of(one: results.ToolAnnotations) -> dict[str, Any]:
    """Without those that say what clients assume."""
    hints: dict[str, Any] = {"readOnlyHint": True} if one.read_only else {}
    # Of a tool that only reads the next two mean nothing.
    if not (one.read_only or one.destructive):
        hints["destructiveHint"] = False
    if one.idempotent and not one.read_only:
        hints["idempotentHint"] = True
    if not one.open_world:
        hints["openWorldHint"] = False
    return hints


def notification(one: Notification, revision: Revision) -> bytes:
    """A notification as the bytes of one message."""
    params = one.params
    if not revision.features.progress_message:
        params = {name: value for name, value in params.items() if name != "message"}
    return encode_notification(one.method, params)


# Notifications that this server sends.

SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"


def resource_updated(uri: str) -> Notification:
    return Notification("notifications/resources/updated", {"uri": uri})


def list_changed(name: str) -> Notification:
    """`name` is tools, prompts or resources."""
    return Notification(f"notifications/{name}/list_changed", {})


def acknowledged(honoured: Mapping[str, Any]) -> Notification:
    """The first message of a subscription: what of the wishes will be heard."""
    return Notification("notifications/subscriptions/acknowledged", {"notifications": honoured})


def cancelled(request_id: str | int, *, reason: str) -> Notification:
    """Takes a request of ours back."""
    params = {"requestId": request_id, "reason": reason}
    return Notification("notifications/cancelled", params)


def log_message(level: str, data: Any, *, logger: str = "") -> Notification:
    params = {"level": level, "data": data}
    if logger:
        params["logger"] = logger
    return Notification("notifications/message", params)


def with_subscription(one: Notification, subscription: str | int) -> Notification:
    """Of which subscription it is (2026-07-28, basic/patterns/subscriptions)."""
    meta = {**one.params.get("_meta", {}), SUBSCRIPTION_KEY: subscription}
    return Notification(one.method, {**one.params, "_meta": meta})


def progress(
    token: str | int, value: float, *, total: float | None = None, message: str | None = None
) -> Notification:
    params: dict[str, Any] = {"progressToken": token, "progress": value}
    if total is not None:
        params["total"] = total
    if message is not None:
        params["message"] = message
    return Notification("notifications/progress", params)
