"""Content blocks into the wire shape of one revision."""

from __future__ import annotations

from typing import Any

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
from mcp_django.protocol.revisions import Features


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
