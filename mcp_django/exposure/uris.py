"""The URIs of resources. Scheme `django`, the authority is the kind of thing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcp_django.exceptions import NotFound
from mcp_django.protocol.uri_templates import URITemplate, decode, encode, parse_query

SCHEME = "django://"
SITE = "django://site"
OBJECTS, FILES = "django://objects/", "django://files/"
LONGEST = 4096

DEFINITION = URITemplate("django://models/{model}")
COLLECTION = URITemplate("django://objects/{model}{?filters*,search,order_by,fields,cursor}")
OBJECT = URITemplate("django://objects/{model}/{pk}")
FILE = URITemplate("django://files/{model}/{pk}/{field}")

#: Keys of a collection's query that are no filters. A field of that name: `search__exact`.
RESERVED = frozenset({"search", "order_by", "fields", "limit", "cursor"})


@dataclass(frozen=True, kw_only=True)
class Address:
    """A URI taken apart, unescaped, not yet looked up."""

    kind: str
    segments: tuple[str, ...]
    query: tuple[tuple[str, str], ...] = ()


def parse_uri(uri: str) -> Address:
    """Raises NotFound for anything that is no URI of ours, without saying why."""
    if not uri.startswith(SCHEME) or len(uri) > LONGEST or "#" in uri:
        raise NotFound("There is no such resource.")
    path, _, query = uri.removeprefix(SCHEME).partition("?")
    kind, *segments = path.split("/")
    try:
        return Address(
            kind=kind,
            segments=tuple(decode(segment) for segment in segments),
            query=tuple(parse_query(query)),
        )
    except ValueError:
        raise NotFound("There is no such resource.") from None


def object_uri(label: str, key: Any) -> str:
    """The URI of one object: a segment for each part of its key."""
    parts: Sequence[Any] = key if isinstance(key, list | tuple) else (key,)
    return f"{OBJECTS}{encode(label)}/{'/'.join(encode(part) for part in parts)}"


def file_uri(label: str, key: Any, field: str) -> str:
    """The URI of the file that a field of an object names."""
    return object_uri(label, key).replace(OBJECTS, FILES, 1) + f"/{encode(field)}"


def query_arguments(query: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """A collection's query as arguments of `find_records`. A repeated key means `in`."""
    filters: dict[str, list[str]] = {}
    arguments: dict[str, Any] = {}
    for name, value in query:
        if name in ("order_by", "fields"):
            arguments.setdefault(name, []).extend(value.split(","))
        elif name in RESERVED:
            arguments[name] = value
        else:
            filters.setdefault(name, []).append(value)
    if filters:
        arguments["filters"] = dict(one_filter(name, values) for name, values in filters.items())
    return arguments


def one_filter(name: str, values: list[str]) -> tuple[str, Any]:
    path, _, operator = name.rpartition("__")
    # Without a path it is the name of a field.
    if path and operator in ("in", "range"):
        return name, values
    if len(values) == 1:
        return name, values[0]
    return f"{name.removesuffix('__exact')}__in", values
