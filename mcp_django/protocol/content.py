"""Content blocks of results and messages, as the newest revision knows them."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, kw_only=True)
class Annotations:
    """Hints for the client: who the content is for, and how much it matters (0 to 1)."""

    audience: Sequence[str] = ()
    priority: float | None = None
    last_modified: str | None = None


@dataclass(frozen=True)
class TextContent:
    text: str
    annotations: Annotations | None = None


@dataclass(frozen=True, kw_only=True)
class ImageContent:
    """A picture. PNG and JPEG are shown by every client."""

    data: bytes
    mime_type: str
    annotations: Annotations | None = None


@dataclass(frozen=True, kw_only=True)
class AudioContent:
    """Sound. A revision that has none gets the bytes as an embedded resource."""

    data: bytes
    mime_type: str
    annotations: Annotations | None = None


@dataclass(frozen=True, kw_only=True)
class ResourceLink:
    """A resource that the client may read. It need not be listed."""

    uri: str
    name: str
    title: str = ""
    description: str = ""
    mime_type: str = ""
    #: Bytes, before any encoding.
    size: int | None = None
    annotations: Annotations | None = None


@dataclass(frozen=True, kw_only=True)
class ResourceContents:
    """One part of what `resources/read` answers: text, or bytes that travel as base64."""

    uri: str
    mime_type: str
    text: str | None = None
    blob: bytes | None = None

    def as_wire(self) -> dict[str, Any]:
        wire: dict[str, Any] = {"uri": self.uri, "mimeType": self.mime_type}
        if self.blob is not None:
            wire["blob"] = as_base64(self.blob)
        else:
            wire["text"] = self.text or ""
        return wire


@dataclass(frozen=True, kw_only=True)
class EmbeddedResource:
    """The contents of a resource, in the middle of other content."""

    contents: ResourceContents
    annotations: Annotations | None = None


Content: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
BLOCKS = (TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource)


def as_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
