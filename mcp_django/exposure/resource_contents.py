"""What the function of a resource returned, made into contents."""

from __future__ import annotations

from typing import Any

import msgspec
from django.db.models import Model, QuerySet
from django.utils.functional import Promise

from mcp_django.conf import get_config
from mcp_django.exceptions import NotFound, QueryError
from mcp_django.exposure.function_results import plain_text
from mcp_django.exposure.signatures import MISSING
from mcp_django.protocol.content import ResourceContents

TEXT, BYTES, JSON = "text/plain", "application/octet-stream", "application/json"


def mime_type_of(annotation: Any) -> str:
    """What a return annotation promises; nothing for one that says nothing."""
    if annotation is str:
        return TEXT
    if annotation is bytes:
        return BYTES
    return "" if is_open(annotation) else JSON


def is_open(annotation: Any) -> bool:
    if annotation in (MISSING, Any, object, ResourceContents):
        return True
    return bool(ResourceContents in getattr(annotation, "__args__", ()))


def contents_of(value: Any, *, uri: str, mime_type: str) -> list[ResourceContents]:
    """Texts and bytes as they are, contents as they are, other plain data as JSON.

    Raises NotFound for None, QueryError for what is too long, TypeError for what JSON cannot say.
    """
    if value is None:
        raise NotFound("There is no such resource.")
    parts = value if isinstance(value, list | tuple) else [value]
    if parts and all(isinstance(one, ResourceContents) for one in parts):
        found = list(parts)
    else:
        found = [one_of(value, uri=uri, mime_type=mime_type)]
    longest = get_config().max_response
    # base64 is a third longer than what it carries.
    size = sum(
        len((one.text or "").encode()) if one.blob is None else len(one.blob) * 4 // 3
        for one in found
    )
    if size > longest:
        raise QueryError(f"This resource is longer than {longest} bytes and cannot be sent.")
    return found


def one_of(value: Any, *, uri: str, mime_type: str) -> ResourceContents:
    if isinstance(value, str | Promise):
        return ResourceContents(uri=uri, mime_type=mime_type or TEXT, text=plain_text(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return ResourceContents(uri=uri, mime_type=mime_type or BYTES, blob=bytes(value))
    text = msgspec.json.encode(value, enc_hook=plain).decode()
    return ResourceContents(uri=uri, mime_type=mime_type or JSON, text=text)


def plain(value: Any) -> str:
    if isinstance(value, str | Promise):
        return plain_text(value)
    # Never str(): the text of an instance may show what this caller must not see.
    hint = (
        " Return plain data: name the fields that callers may see, for example with .values(...) "
        "and list()."
        if isinstance(value, Model | QuerySet)
        else ""
    )
    raise TypeError(
        f"The resource returned a {type(value).__name__}, which JSON cannot say.{hint}"
    )
