"""The parameters of a function: those that callers fill in, and those that we fill in."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, get_type_hints

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest

from mcp_django.context import CallContext
from mcp_django.exposure.functions.json_schemas import without_none

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise

# Docstrings: what the tool does, and what each argument means.

SECTION = re.compile(r"(Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments):\s*$")
ENTRY = re.compile(r"(?P<indent>\s+)\*{0,2}(?P<name>\w+)\s*(\([^)]*\))?\s*:(?P<text>.*)$")
FIELD = re.compile(
    r":(?P<kind>[a-z]+)(\s+[^:]*?)??(\s+\*{0,2}(?P<name>\w+))?\s*:(\s+(?P<text>.*))?$"
)
PARAMETER_FIELDS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword"})


def parse_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """Return the text and, by name, what is said about each parameter.

    Reads Google's "Args:" and reST's ":param x:". Never raises: other styles stay text.
    """
    text: list[str] = []
    parameters: dict[str, list[str]] = {}
    #: The part that further lines belong to; None in the text.
    part: list[str] | None = None
    in_section = False
    #: The indentation of the entries of a section, as of its first entry.
    indent: str | None = None
    for line in cleandoc(docstring).splitlines():
        if field := FIELD.match(line):
            in_section, part = False, [field["text"] or ""]
            if field["kind"] in PARAMETER_FIELDS and field["name"]:
                parameters[field["name"]] = part
        elif SECTION.match(line):
            in_section, part, indent = True, [], None
        elif part is None or not (line[:1].isspace() or not line):
            text += [line] if part is None else ["", line]
            part = None
        elif in_section and (entry := ENTRY.match(line)) and indent in (None, entry["indent"]):
            indent = entry["indent"]
            part = parameters[entry["name"]] = [entry["text"]]
        else:
            part.append(line)
    return fold(text), {name: fold(lines) for name, lines in parameters.items()}


def fold(lines: Iterable[str]) -> str:
    """One line per paragraph."""
    paragraphs = re.split(r"\n\s*\n", "\n".join(lines))
    return "\n\n".join(folded for one in paragraphs if (folded := " ".join(one.split())))


Permission: TypeAlias = str | Callable[[HttpRequest], Any]


class SiteOptions(TypedDict, total=False):
    """The options of every decorator."""

    title: _StrOrPromise | None
    description: _StrOrPromise | None
    permission: Permission | None
    asks: bool


def check_permission(permission: Permission | None, *, of: str) -> Permission | None:
    """Raise ImproperlyConfigured for a text that is no "app.codename"."""
    if permission is None or callable(permission):
        return permission
    given: Any = permission
    app, _, codename = str(given).partition(".")
    if isinstance(given, str) and app and codename:
        return permission
    raise ImproperlyConfigured(
        f"{permission!r} is not a permission for the {of}. Write the label of the app, a dot and "
        'the codename: permission="shop.view_order".'
    )


# Signatures.

#: The return annotation of a function that has none.
MISSING = inspect.Signature.empty
#: Names that, without an annotation, are not arguments.
NO_ARGUMENTS = frozenset({"self", "cls", "ctx", "context"})
UNRESOLVED = (NameError, AttributeError, TypeError, SyntaxError, ImportError)


@dataclass(frozen=True, kw_only=True)
class Signature:
    #: The parameters that we pass ourselves: the request, or else the context.
    given: Mapping[str, type] = field(default_factory=dict)
    #: The types of the arguments, in the order of the function.
    annotations: Mapping[str, Any]
    defaults: Mapping[str, Any]
    returns: Any = MISSING

    def fill(self, context: CallContext) -> dict[str, Any]:
        """The parameters that we pass for this call."""
        return {
            name: context if kind is CallContext else context.request
            for name, kind in self.given.items()
        }


def read_signature(
    function: Callable[..., Any], *, type_of_untyped: type | None = None
) -> Signature:
    """Raises ImproperlyConfigured for a function that a JSON object cannot call.

    A parameter without an annotation is refused, unless `type_of_untyped` gives its type.
    """
    where = f"{function.__module__}.{function.__qualname__}()"
    try:
        hints = get_type_hints(function, include_extras=True)
    except UNRESOLVED as error:
        raise ImproperlyConfigured(unresolved(error, where=where)) from error
    given: dict[str, type] = {}
    annotations: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ImproperlyConfigured(
                f"{where} takes {parameter}, which is {parameter.kind.description}. Arguments "
                "arrive by name, so write out each parameter, without * and /."
            )
        annotation = without_none(hints.get(name, HttpRequest if name == "request" else None))
        if annotation is CallContext:
            given[name] = CallContext
            continue
        if isinstance(annotation, type) and issubclass(annotation, HttpRequest):
            given[name] = HttpRequest
            continue
        if name not in hints and (type_of_untyped is None or name in NO_ARGUMENTS):
            raise ImproperlyConfigured(unannotated(name, where=where))
        annotations[name] = hints.get(name, type_of_untyped)
        if parameter.default is not parameter.empty:
            defaults[name] = parameter.default
    return Signature(
        given=given,
        annotations=annotations,
        defaults=defaults,
        returns=hints.get("return", MISSING),
    )


def unresolved(error: Exception, *, where: str) -> str:
    return (
        f"The annotations of {where} cannot be read: {error}. Import or define what they name at "
        "the top of the module, not inside a function and not under `if TYPE_CHECKING:`."
    )


def unannotated(name: str, *, where: str) -> str:
    if name in ("self", "cls"):
        return f"{where} is a method. A tool is a plain function: move it out of its class."
    if name in ("ctx", "context"):
        return f"{name} of {where} has no type. Annotate it: {name}: mcp.Context."
    return (
        f"{name} of {where} has no type, so callers could not know what to send. "
        f"Annotate it, for example {name}: str."
    )
