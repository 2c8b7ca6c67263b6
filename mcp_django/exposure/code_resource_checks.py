"""Mistakes in a function that is registered as a resource, found when it is."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from mcp_django.exposure.schemas import input_schema
from mcp_django.exposure.signatures import Signature
from mcp_django.exposure.uris import LONGEST
from mcp_django.protocol.content import Annotations
from mcp_django.protocol.uri_templates import EXPRESSION, URITemplate

#: RFC 3986, 3.1. Capitals would be another spelling of the same scheme.
SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):.")
#: What RFC 3986 lets stand in a URI, without "#": a fragment is the client's own.
LITERAL = re.compile(r"(?:[A-Za-z0-9\-._~:/?@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*\Z")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
AUDIENCES = frozenset({"user", "assistant"})
#: JSON types that a part of a URI can be read as.
PLAIN = frozenset({"string", "integer", "number", "boolean"})
TAKEN = {
    "django": "belongs to the models that are exposed",
    "file": "is for files that the client itself can open",
    "http": "is for what the client can fetch from the web itself",
    "https": "is for what the client can fetch from the web itself",
}


def check_function(function: Any) -> None:
    if not inspect.isfunction(function):
        raise ImproperlyConfigured(
            f'@mcp.resource("shop://reports/{{year}}") decorates functions, not {function!r}.'
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ImproperlyConfigured(
            f"{function.__qualname__}() yields. A resource returns its whole content."
        )


def check_uri(uri: Any) -> URITemplate:
    """The template of a URI of the site's own. Raises ImproperlyConfigured."""
    if not isinstance(uri, str) or not (found := SCHEME.match(uri)) or len(uri) > LONGEST:
        raise ImproperlyConfigured(
            f'{uri!r} is no URI. Write a scheme of your own: @mcp.resource("shop://reports").'
        )
    if found[1] in TAKEN:
        raise ImproperlyConfigured(
            f"{uri!r}: the scheme {found[1]!r} {TAKEN[found[1]]}. Choose one of your own, such "
            "as shop://."
        )
    template = URITemplate(uri)
    first, *rest = EXPRESSION.split(uri)
    literals, names = [first, *rest[2::3]], rest[1::3]
    if not all(LITERAL.match(one) for one in literals) or not SCHEME.match(f"{first}x"):
        raise ImproperlyConfigured(
            f"{uri!r} has characters that no URI has, or a form of variable that is not served. "
            "Write variables as {year}, or {+path} for one that may have slashes, and other "
            "characters as percent octets."
        )
    if "?" in rest[::3] or not all(NAME.match(name) for name in names):
        raise ImproperlyConfigured(
            f"{uri!r}: write each variable by itself, as in shop://{{year}}/{{month}}."
        )
    if len(set(names)) < len(names):
        raise ImproperlyConfigured(f"{uri!r} has a variable twice.")
    check_ends(uri, operators=rest[::3], behind=rest[2::3])
    return template


def check_ends(uri: str, *, operators: list[str], behind: list[str]) -> None:
    if not all(behind[:-1]):
        raise ImproperlyConfigured(
            f"{uri!r}: nothing stands between two variables, so nobody could tell where one ends."
        )
    if "+" in operators[:-1]:
        raise ImproperlyConfigured(
            f"{uri!r}: a variable that may have slashes can only be the last."
        )


def check_variables(template: URITemplate, signature: Signature) -> None:
    """Each variable is an argument that can be read from a text, and each argument a variable."""
    names, arguments = set(template.variables), signature.annotations
    for name in template.variables:
        if name not in arguments:
            raise ImproperlyConfigured(
                f"The function of {template.text!r} does not take {name!r}. Add it: {name}: str."
            )
    for name, annotation in arguments.items():
        if name not in names:
            raise ImproperlyConfigured(
                f"The function of {template.text!r} takes {name!r}, which its URI does not have. "
                f"Add {{{name}}} to the URI, or drop the argument."
            )
        if not is_plain(annotation):
            raise ImproperlyConfigured(
                f"The argument {name!r} of {template.text!r} cannot be read from a part of a URI."
                " Take a str, int, float, bool, Decimal, date, datetime, time, UUID or Enum."
            )


def is_plain(annotation: Any) -> bool:
    """Whether texts can be read as this type."""
    try:
        schema = input_schema({"one": annotation}, defaults={}, descriptions={})
    except (TypeError, NameError):
        return False
    return has_plain_type(schema["properties"]["one"], schema.get("$defs", {}))


def has_plain_type(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> bool:
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        return all(has_plain_type(one, definitions) for one in schema["anyOf"])
    if "type" not in schema:
        return "enum" in schema
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return PLAIN.issuperset(types)


def check_attributes(uri: str, annotations: Annotations | None, *, size: int | None) -> None:
    """What the specification allows of the hints for clients."""
    if size is not None and (type(size) is not int or size < 0):
        raise ImproperlyConfigured(f"size of {uri!r} is a number of bytes, not {size!r}.")
    if annotations is None:
        return
    unknown = sorted(set(annotations.audience) - AUDIENCES)
    if unknown or isinstance(annotations.audience, str):
        raise ImproperlyConfigured(
            f'The audience of {uri!r} is a list of "user" and "assistant", not {unknown!r}.'
        )
    priority = annotations.priority
    if priority is not None and not 0 <= priority <= 1:
        raise ImproperlyConfigured(f"The priority of {uri!r} is from 0 to 1, not {priority!r}.")
    if annotations.last_modified is not None:
        try:
            datetime.fromisoformat(annotations.last_modified)
        except ValueError:
            raise ImproperlyConfigured(
                f"last_modified of {uri!r} is not as in 2026-01-31T12:00:00Z."
            ) from None
