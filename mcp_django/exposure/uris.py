"""The URIs of resources. Scheme `django`, the authority is the kind of thing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from mcp_django.exceptions import NotFound
from mcp_django.protocol.uri_templates import URITemplate, decode, encode, parse_query

SCHEME = "django://"
SITE = "django://site"
#: What views of Django REST framework answer.
REST_OBJECTS = "django://rest/"
OBJECTS, FILES = "django://objects/", "django://files/"
LONGEST = 4096

DEFINITION = URITemplate("django://models/{model}")
COLLECTION = URITemplate("django://objects/{model}{?filters*,search,order_by,fields,cursor}")
OBJECT = URITemplate("django://objects/{model}/{pk}")
FILE = URITemplate("django://files/{model}/{pk}/{field}")

#: The variable of COLLECTION that stands for them all. A field of that name: `filters__exact`.
FILTERS = "filters"
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
    """A collection's query as arguments of `find_records`. A repeated key means `in`, and a key
    of ours without a value means nothing.

    A client that has no explosion of variables (RFC 6570, 2.4.2) writes all filters as the value
    of one: as a JSON object, or as `status=new&total__gte=5`.
    """
    filters: dict[str, list[str]] = {}
    arguments: dict[str, Any] = {}
    decoded: dict[str, Any] = {}
    for name, value in query:
        if not value and name in (FILTERS, *RESERVED):
            continue
        if name in ("order_by", "fields"):
            arguments.setdefault(name, []).extend(filter(None, value.split(",")))
        elif name in RESERVED:
            arguments[name] = value
        elif name == FILTERS and (found := json_object(value)) is not None:
            decoded |= found
        elif name == FILTERS and "=" in value:
            for key, _, inner in (pair.partition("=") for pair in value.split("&")):
                filters.setdefault(key, []).append(inner)
        else:
            filters.setdefault(name, []).append(value)
    if filters or decoded:
        read = dict(one_filter(name, values) for name, values in filters.items())
        arguments["filters"] = {**decoded, **read}
    return arguments


def json_object(text: str) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (ValueError, RecursionError):
        return None


def one_filter(name: str, values: list[str]) -> tuple[str, Any]:
    path, _, operator = name.rpartition("__")
    # Without a path it is the name of a field.
    if path and operator in ("in", "range"):
        return name, values
    if len(values) == 1:
        return name, values[0]
    return f"{name.removesuffix('__exact')}__in", values
