"""JSON Schemas that a site wrote itself: compiled once, shown to clients, and enforced."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_origin

import jsonschema_rs
import msgspec
from django.core.exceptions import ImproperlyConfigured

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.fields import quoted
from mcp_django.exposure.functions.arguments import LONGEST_EXAMPLE, as_declared, check_plain
from mcp_django.exposure.functions.json_schemas import (
    TEXTS,
    Examples,
    for_clients,
    inlined,
    subschemas,
    without_none,
)
from mcp_django.exposure.functions.results import Results
from mcp_django.exposure.functions.signatures import Signature
from mcp_django.protocol.headers import Place

DIALECT = "https://json-schema.org/draft/2020-12/schema"
DEEPEST_SCHEMA = 64
#: Values, each counted four times as often as the one around it: a flat object of as many as a
#: body has, or eight levels of one value each.
MOST_EXPLAINED = 85_000
#: Steps back that one regular expression may take. Only look-around and the like ever step back.
MOST_BACKTRACKING = 10_000
#: Stands for the value in sentences of the validator, which quotes it at any length.
VALUE = "The value"
NOTHING_FITS = f"False schema does not allow {VALUE}"
LONGEST_MESSAGE = 300
LONGEST_PLACE = 200
MOST_ALTERNATIVES = 3


class RawSchema:
    """One compiled schema. Raises ImproperlyConfigured for one that cannot be relied on.

    `what` names it in sentences: "The input_schema of the tool 'order'".
    """

    def __init__(self, schema: Mapping[str, Any], *, what: str) -> None:
        self.what = what
        if not isinstance(schema, Mapping):
            raise self._refused("must be a dict")
        try:
            check_plain(schema, deepest=DEEPEST_SCHEMA)
            # A copy of our own, of plain JSON, with its keywords in order.
            self.schema: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(schema))
        except RecursionError:
            raise self._refused(f"is nested deeper than {DEEPEST_SCHEMA} levels") from None
        except (TypeError, ValueError) as error:
            raise self._refused(f"is not JSON: {error}") from error
        self._check_shape()
        self._validator = self._compile()

    def fault(self, value: Any) -> str | None:
        """What is wrong with a value, without a full stop, or None. Takes bounded time."""
        try:
            check_plain(value, deepest=get_config().max_depth)
            if not self._validator.is_valid(value):
                if work_to_explain(value) > MOST_EXPLAINED:
                    return "Something does not fit the schema, and there is too much to say what"
                self._validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            return describe(error)
        except (ValueError, RecursionError):
            return "Too deeply nested, or a number out of range"
        return None

    def _check_shape(self) -> None:
        for pointer, keywords in subschemas(self.schema):
            dialect = keywords.get("$schema", DIALECT)
            if dialect not in (DIALECT, f"{DIALECT}#"):
                raise self._refused(
                    f"is written in {str(dialect)[:200]!r}. Only {DIALECT} is understood here"
                )
            if pointer and "$id" in keywords:
                raise self._refused(
                    f"has a schema with an $id of its own, at #/{'/'.join(pointer)}. "
                    "Use $anchor, or its place under $defs"
                )

    def _compile(self) -> jsonschema_rs.Draft202012Validator:
        try:
            jsonschema_rs.meta.validate(self.schema)
            return jsonschema_rs.Draft202012Validator(
                self.schema,
                # A site that writes "date" relies on it.
                validate_formats=True,
                mask=VALUE,
                pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=MOST_BACKTRACKING),
                retriever=never_fetch,
            )
        except jsonschema_rs.ValidationError as error:
            if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Referencing):
                raise self._refused(
                    f"has a reference that leads to nothing in it ({plain(error.message)}). "
                    "Put what it means under $defs"
                ) from error
            # Of a pattern that does not compile, older validators have the second alone.
            place = "/".join(map(str, error.instance_path or error.schema_path))
            raise self._refused(f"is not valid at #/{place}: {plain(error.message)}") from error

    def _refused(self, why: str) -> ImproperlyConfigured:
        return ImproperlyConfigured(f"{self.what} {why}.")


def work_to_explain(value: Any) -> int:
    """Return how many values may be looked at to say what is wrong with this one.

    A schema that refers to itself from several alternatives explains each level once for each of
    them.
    """
    if not isinstance(value, (Mapping, list, tuple)):
        return 1
    inner = value.values() if isinstance(value, Mapping) else value
    return 1 + 4 * sum(map(work_to_explain, inner))


def never_fetch(uri: str) -> Any:
    raise ValueError("nothing is fetched")


def describe(error: jsonschema_rs.ValidationError) -> str:
    """Where, what, and the value, at a length that is bounded."""
    message = plain(error.message).replace(NOTHING_FITS, "No such member is allowed")
    value = error.instance
    if VALUE in message and (value is None or isinstance(value, (str, int, float))):
        message += f": {quoted(value)}"
    # What each alternative misses.
    missed = [branch[0].message for branch in getattr(error.kind, "context", ()) if branch]
    if missed:
        message += f" ({plain('; or '.join(missed[:MOST_ALTERNATIVES]))})"
    place = place_of(error.instance_path)
    return f"Argument {place}: {message}" if place else f"Arguments: {message}"


def plain(message: str) -> str:
    """The message on one short line of ASCII, whatever it quotes."""
    line = " ".join(message[: 2 * LONGEST_MESSAGE].split())
    return line.encode("ascii", "backslashreplace").decode()[:LONGEST_MESSAGE]


def place_of(path: Sequence[str | int]) -> str:
    """`lines[0].price`, of a path in a value."""
    found = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return ascii(found.removeprefix("."))[1:-1][:LONGEST_PLACE]


# Examples of valid arguments, for errors to show.

#: What a schema of which no example can be made raises.
UNMAKEABLE = (ArithmeticError, LookupError, TypeError, ValueError, RecursionError)


def example_of(raw: RawSchema) -> str:
    """JSON of arguments that are valid and short, or nothing. Examples of the site come first."""
    for value in candidates(raw.schema):
        text = msgspec.json.encode(value).decode()
        is_short = isinstance(value, dict) and len(text) <= LONGEST_EXAMPLE
        if is_short and raw.fault(value) is None:
            return text
    return ""


def candidates(schema: dict[str, Any]) -> Iterator[Any]:
    yield from schema.get("examples", ())
    if "default" in schema:
        yield schema["default"]
    bare = {key: value for key, value in schema.items() if key not in ("examples", "default")}
    whole = inlined(bare)
    for is_full in (False, True):
        for text in TEXTS:
            try:
                yield Examples(text=text, is_full=is_full).make(whole)
            except UNMAKEABLE:
                continue


# Arguments and results of tools whose schemas the site wrote itself.


class RawArguments:
    """Reads all arguments as one dict, which the schema accepts."""

    def __init__(self, tool: str, signature: Signature, schema: Mapping[str, Any]) -> None:
        self.tool = tool
        self.parameter, annotation = only_parameter(tool, signature)
        if not is_dict(annotation):
            raise ImproperlyConfigured(
                f"{self.parameter} of the tool {tool!r} gets all arguments. "
                f"Annotate it so: {self.parameter}: dict[str, Any]."
            )
        what = f"The input_schema of the tool {tool!r}"
        self._raw = RawSchema(schema, what=what)
        # With its references: who wrote them wants them.
        self.schema = for_clients(self._raw.schema)
        self._declared = inlined(self._raw.schema)
        if self._raw.schema.get("type") != "object":
            raise ImproperlyConfigured(f'{what} needs "type": "object" at its root.')
        self._example = example_of(self._raw)

    def read(self, arguments: Mapping[str, Any], context: CallContext) -> dict[str, Any]:
        """Raises ToolError that names the place, says what is wrong and shows a valid call."""
        declared = as_declared(arguments, self._declared)
        if (fault := self._raw.fault(declared)) is None:
            return {self.parameter: declared}
        shown = f" A valid call: {self.tool} {self._example}" if self._example else ""
        raise ToolError(f"{fault}.{shown}")


class RawResults(Results):
    """Makes results. One that the schema does not accept is a mistake of the function."""

    def __init__(self, tool: str, schema: Mapping[str, Any]) -> None:
        self.tool = tool
        self.annotation = "what its output_schema says"
        self._raw = RawSchema(schema, what=f"The output_schema of the tool {tool!r}")
        self.schema = for_clients(self._raw.schema)
        self.is_wrapped = False

    def _check(self, raw: bytes) -> None:
        # What is longer is refused for its length, later.
        is_short = len(raw) <= get_config().max_response
        if is_short and (fault := self._raw.fault(msgspec.json.decode(raw))) is not None:
            raise self._broken(f"returned something else ({fault})")


def only_parameter(tool: str, signature: Signature) -> tuple[str, Any]:
    """The one parameter that takes all arguments, and its annotation."""
    if len(signature.annotations) != 1:
        raise ImproperlyConfigured(
            f"The function of the tool {tool!r} gets its arguments as one, so beside the request "
            "and the context it has exactly one parameter, such as arguments: dict[str, Any]."
        )
    return next(iter(signature.annotations.items()))


def is_dict(annotation: Any) -> bool:
    """Whether the annotation allows a plain dict."""
    plain = without_none(annotation)
    kind = get_origin(plain) or plain
    return isinstance(kind, type) and kind is not object and issubclass(dict, kind)


# `x-mcp-header` in the schema of a tool: arguments that clients repeat in HTTP headers.

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
    headers: dict[Place, str] = {}
    for pointer, keywords in subschemas(schema):
        if KEYWORD not in keywords:
            continue
        name, place = keywords[KEYWORD], pointer[1::2]
        where = f"of {'.'.join(place)}"
        if not place or any(keyword != "properties" for keyword in pointer[::2]):
            fault = (
                f"at #/{'/'.join(pointer)} stands where no client finds it. Only properties, "
                f"and properties of those, may have it. {LEFT_OUT}"
            )
        elif not isinstance(name, str) or TOKEN.fullmatch(name) is None:
            fault = f"{where} must be letters, digits and hyphens, such as Region"
        elif keywords.get("type") not in TYPES:
            types = ", ".join(TYPES)
            fault = f"{where} needs a type of its own that is exactly one of {types}. {LEFT_OUT}"
        elif name.lower() in {header.lower() for header in headers.values()}:
            fault = f"{where} is {name}, which another argument has"
        else:
            headers[place] = name
            continue
        raise ImproperlyConfigured(f"{KEYWORD} {fault} (in the tool {tool!r}).")
    return headers
