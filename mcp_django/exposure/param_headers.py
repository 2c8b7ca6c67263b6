"""`x-mcp-header` in the schema of a tool: arguments that clients repeat in HTTP headers."""

from __future__ import annotations

import re
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from mcp_django.exposure.subschemas import Pointer, subschemas
from mcp_django.protocol.param_headers import Place

KEYWORD = "x-mcp-header"
#: Fewer than HTTP allows. Front ends drop names with an underscore, and WSGI cannot tell it from
#: a hyphen.
TOKEN = re.compile(r"[A-Za-z0-9-]{1,64}")
# Two programs write the same number in two ways, unless it is an integer.
TYPES = ("string", "integer", "boolean")
LEFT_OUT = "Give an argument that may be left out a default of its type, not None"


def param_headers(schema: dict[str, Any], *, tool: str) -> dict[Place, str]:
    """The arguments that are repeated, and the name of each header without `Mcp-Param-`.

    Raises ImproperlyConfigured for an annotation that clients would drop the whole tool for.
    """
    found: dict[Place, str] = {}
    for one in subschemas(schema):
        if KEYWORD not in one.keywords:
            continue
        place = place_of(one.pointer)
        if not place:
            raise refused(
                f"at #/{'/'.join(one.pointer)} stands where no client finds it. Only properties, "
                f"and properties of those, may have it. {LEFT_OUT}",
                tool=tool,
            )
        check(one.keywords, place, taken=found, tool=tool)
        found[place] = one.keywords[KEYWORD]
    return found


def place_of(pointer: Pointer) -> Place:
    """The names of properties that lead there, or nothing where something else does."""
    is_plain = all(keyword == "properties" for keyword in pointer[::2])
    return pointer[1::2] if is_plain else ()


def check(keywords: dict[str, Any], place: Place, *, taken: dict[Place, str], tool: str) -> None:
    name, where = keywords[KEYWORD], f"of {'.'.join(place)}"
    if not isinstance(name, str) or TOKEN.fullmatch(name) is None:
        raise refused(f"{where} must be letters, digits and hyphens, such as Region", tool=tool)
    if keywords.get("type") not in TYPES:
        raise refused(
            f"{where} needs a type of its own that is exactly one of {', '.join(TYPES)}. "
            f"{LEFT_OUT}",
            tool=tool,
        )
    if name.lower() in {one.lower() for one in taken.values()}:
        raise refused(f"{where} is {name}, which another argument has", tool=tool)


def refused(what: str, *, tool: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"{KEYWORD} {what} (in the tool {tool!r}).")
