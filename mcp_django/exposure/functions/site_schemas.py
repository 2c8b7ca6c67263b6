"""JSON Schemas that a site wrote itself: compiled once, shown to clients, and enforced."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, get_origin
from urllib.parse import unquote

import jsonschema_rs
import msgspec
from django.core.exceptions import ImproperlyConfigured

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.functions.arguments import (
    LONGEST_EXAMPLE,
    as_declared,
    check_plain,
    shown,
)
from mcp_django.exposure.functions.json_schemas import (
    TEXTS,
    Examples,
    Pointer,
    Schema,
    Subschema,
    for_clients,
    inside,
    subschemas,
    without_none,
)
from mcp_django.exposure.functions.results import Kind, Results
from mcp_django.exposure.functions.signatures import Signature
from mcp_django.protocol.headers import Place

# How much work it is to validate a value, counted before anybody tries.
#
# A schema that refers to itself from two alternatives is evaluated twice as often with each level
# of a value: forty levels would take years, in native code that nothing can stop. A bound on depth
# and size alone is not enough: to explain what is wrong with twelve levels takes jsonschema-rs a
# second, and with sixteen over a minute.

REFERENCES = ("$ref", "$dynamicRef")
ANCHORS = ("$anchor", "$dynamicAnchor")
#: Keywords that hold schemas for the same value.
SAME_VALUE = frozenset(
    {"not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas"}
)
MEMBERS = ("patternProperties", "additionalProperties", "propertyNames", "unevaluatedProperties")
ITEMS = ("items", "contains", "unevaluatedItems")
#: Any of these asks everything that applies to the same value a second time.
TWICE = ("unevaluatedProperties", "unevaluatedItems")
#: Where counting stops.
ENDLESS = 10**12
#: Characters that take as long as one more value.
CHARACTERS = 256


class BadReference(Exception):
    """A reference that leads out of the schema, to nothing, or in a circle."""


class SchemaWork:
    """Raises BadReference when made for a schema whose references cannot be followed."""

    def __init__(self, root: dict[str, Any], *, deepest: int) -> None:
        self.root = root
        self.nodes = {one.pointer: one for one in subschemas(root)}
        self.anchors: dict[str, Pointer] = {}
        for one in self.nodes.values():
            for name in [one.keywords[keyword] for keyword in ANCHORS if keyword in one.keywords]:
                if self.anchors.setdefault(name, one.pointer) != one.pointer:
                    raise BadReference(f"it has two anchors called {name!r}")
        self._applied: dict[Pointer, Counter[Pointer]] = {}
        #: How many schemas are asked about one value, at most, by the level on which it stands.
        self.per_value = [*islice(self._levels(), deepest + 1)]

    def of(self, value: Any) -> int:
        """No fewer than the schemas that are asked about a value and all that it holds."""
        total, level, depth = 0, [value], 0
        while level and depth < len(self.per_value):
            weight = 0
            deeper: list[Any] = []
            for one in level:
                weight += 1
                if isinstance(one, str):
                    weight += len(one) // CHARACTERS
                elif isinstance(one, Mapping):
                    deeper.extend(one.values())
                elif isinstance(one, (list, tuple)):
                    deeper.extend(one)
            total += weight * self.per_value[depth]
            level, depth = deeper, depth + 1
        return total

    def _levels(self) -> Iterator[int]:
        """What is asked about a value, then about one inside of it, then inside of that."""
        applied = {pointer: self.applied_with(pointer) for pointer in self.nodes}
        held = {pointer: self._held_by(together) for pointer, together in applied.items()}
        asked = {pointer: min(together.total(), ENDLESS) for pointer, together in applied.items()}
        while True:
            yield asked[()]
            asked = {
                pointer: max(
                    min(sum(times * asked[one] for one, times in kind.items()), ENDLESS)
                    for kind in kinds
                )
                for pointer, kinds in held.items()
            }

    # The graph: which schemas are asked about the same value, and which about what it holds.

    def applied_with(
        self, pointer: Pointer, *, within: tuple[Pointer, ...] = ()
    ) -> Counter[Pointer]:
        """Every schema that is asked about a value together with this one, and how often."""
        if pointer in self._applied:
            return self._applied[pointer]
        if pointer in within:
            raise BadReference(f"#/{'/'.join(pointer)} refers to itself, and to nothing else")
        one = self.nodes[pointer]
        times = 2 if any(keyword in one.keywords for keyword in TWICE) else 1
        found = Counter({pointer: 1})
        for other in self.same_value(one):
            for inner, count in self.applied_with(other, within=(*within, pointer)).items():
                found[inner] = min(found[inner] + times * count, ENDLESS)
        self._applied[pointer] = found
        return found

    def same_value(self, one: Subschema) -> Iterator[Pointer]:
        for keyword in REFERENCES:
            if keyword in one.keywords:
                yield self.target(one.keywords[keyword])
        for inner in inside(one):
            if inner.pointer[len(one.pointer)] in SAME_VALUE:
                yield inner.pointer

    @property
    def targets(self) -> dict[str, Schema]:
        """The schemas that references lead to."""
        references = [
            one.keywords["$ref"] for one in self.nodes.values() if "$ref" in one.keywords
        ]
        return {name: self.nodes[self.target(name)].schema for name in references}

    def target(self, reference: str) -> Pointer:
        """Where a reference leads. Nothing is ever fetched for it."""
        address, _, fragment = reference.partition("#")
        if address and address != self.root.get("$id", "").partition("#")[0]:
            raise BadReference(
                f"{reference[:200]!r} leads out of the schema, and nothing is fetched. "
                "Put what it means under $defs"
            )
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            found = self.anchors.get(fragment)
        else:
            parts = (part.replace("~1", "/").replace("~0", "~") for part in fragment.split("/"))
            found = tuple(parts)[1:]
        if found is None or found not in self.nodes:
            raise BadReference(f"{reference[:200]!r} leads to no schema in it")
        return found

    def _held_by(self, together: Counter[Pointer]) -> list[Counter[Pointer]]:
        """For each kind of thing that a value can hold: what is asked about it, and how often."""
        named: defaultdict[Pointer, Counter[Pointer]] = defaultdict(Counter)
        others: dict[str, Counter[Pointer]] = {"properties": Counter(), "prefixItems": Counter()}
        for pointer, times in together.items():
            for inner in inside(self.nodes[pointer]):
                place = inner.pointer[len(pointer) :]
                if place[0] in others:
                    named[place][inner.pointer] += times
                elif place[0] in MEMBERS:
                    others["properties"][inner.pointer] += times
                elif place[0] in ITEMS:
                    others["prefixItems"][inner.pointer] += times
        return [*others.values(), *(asked + others[place[0]] for place, asked in named.items())]


DIALECT = "https://json-schema.org/draft/2020-12/schema"
MOST_SUBSCHEMAS = 1_000
DEEPEST_SCHEMA = 64
#: Schemas asked about one value, if it holds nothing: more come from references that multiply.
MOST_AT_ONCE = 10_000
#: Schemas asked about all arguments of a call. It takes a fraction of a second.
MOST_WORK = 500_000
#: The same, where somebody wants to know what is wrong: each error takes a hundred times as long.
MOST_EXPLAINED = 50_000
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
        self.schema = self._own_copy(schema)
        self._check_shape()
        self._check_validity()
        self.work = self._estimate()
        self._validator = self._compile()

    def accepts(self, value: Any) -> bool:
        return self.fault(value) is None

    def fault(self, value: Any) -> str | None:
        """What is wrong with a value, without a full stop, or None. Takes bounded time."""
        try:
            check_plain(value, deepest=get_config().max_depth)
            work = self.work.of(value)
            if work > MOST_WORK:
                return "Too large, or too deeply nested"
            if not self._validator.is_valid(value):
                if work > MOST_EXPLAINED:
                    return "Something does not fit the schema, and there is too much to say what"
                self._validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            return describe(error)
        except (ValueError, RecursionError):
            return "Too deeply nested, or a number out of range"
        return None

    def _own_copy(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of our own, of plain JSON, with its keywords in order."""
        if not isinstance(schema, Mapping):
            raise self._refused("must be a dict")
        try:
            check_plain(schema, deepest=DEEPEST_SCHEMA)
            copy: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(schema))
        except RecursionError:
            raise self._refused(f"is nested deeper than {DEEPEST_SCHEMA} levels") from None
        except (TypeError, ValueError) as error:
            raise self._refused(f"is not JSON: {error}") from error
        return copy

    def _check_shape(self) -> None:
        found = [*subschemas(self.schema)]
        if len(found) > MOST_SUBSCHEMAS:
            raise self._refused(f"has more than {MOST_SUBSCHEMAS} schemas inside")
        for one in found:
            dialect = one.keywords.get("$schema", DIALECT)
            if dialect not in (DIALECT, f"{DIALECT}#"):
                raise self._refused(
                    f"is written in {str(dialect)[:200]!r}. Only {DIALECT} is understood here"
                )
            if one.pointer and "$id" in one.keywords:
                raise self._refused(
                    f"has a schema with an $id of its own, at #/{'/'.join(one.pointer)}. "
                    "Use $anchor, or its place under $defs"
                )

    def _check_validity(self) -> None:
        try:
            jsonschema_rs.meta.validate(self.schema)
        except jsonschema_rs.ValidationError as error:
            raise self._invalid(error) from error

    def _estimate(self) -> SchemaWork:
        try:
            work = SchemaWork(self.schema, deepest=get_config().max_depth)
        except BadReference as error:
            raise self._refused(f"cannot be used: {error}") from error
        except RecursionError:
            raise self._refused("has references that lead on and on") from None
        if max(work.per_value[:2]) > MOST_AT_ONCE:
            raise self._refused(
                f"asks more than {MOST_AT_ONCE} schemas about one value. Its references multiply"
            )
        return work

    def _compile(self) -> jsonschema_rs.Draft202012Validator:
        try:
            return jsonschema_rs.Draft202012Validator(
                self.schema,
                # A site that writes "date" relies on it.
                validate_formats=True,
                mask=VALUE,
                pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=MOST_BACKTRACKING),
                retriever=never_fetch,
            )
        except jsonschema_rs.ValidationError as error:
            raise self._invalid(error) from error

    def _invalid(self, error: jsonschema_rs.ValidationError) -> ImproperlyConfigured:
        place = "/".join(map(str, error.instance_path))
        return self._refused(f"is not valid at #/{place}: {error.message[:LONGEST_MESSAGE]}")

    def _refused(self, why: str) -> ImproperlyConfigured:
        return ImproperlyConfigured(f"{self.what} {why}.")


def never_fetch(uri: str) -> Any:
    raise ValueError(f"{uri[:200]} leads out of the schema, and nothing is fetched")


def describe(error: jsonschema_rs.ValidationError) -> str:
    """Where, what, and the value, at a length that is bounded."""
    message = plain(error.message).replace(NOTHING_FITS, "No such member is allowed")
    value = error.instance
    if VALUE in message and (value is None or isinstance(value, (str, int, float))):
        message += f": {shown(value)}"
    # What each alternative misses. Old validators do not say it.
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
UNMAKEABLE = (ArithmeticError, TypeError, ValueError, RecursionError)


def example_of(raw: RawSchema) -> str:
    """JSON of arguments that are valid and short, or nothing. Examples of the site come first."""
    for value in candidates(raw.schema, raw.work):
        text = msgspec.json.encode(value).decode()
        if isinstance(value, dict) and len(text) <= LONGEST_EXAMPLE and raw.accepts(value):
            return text
    return ""


def candidates(schema: dict[str, Any], work: SchemaWork) -> Iterator[Any]:
    yield from schema.get("examples", ())
    if "default" in schema:
        yield schema["default"]
    bare = {key: value for key, value in schema.items() if key not in ("examples", "default")}
    for is_full in (False, True):
        for text in TEXTS:
            try:
                yield Examples(work.targets, text=text, is_full=is_full).make(bare)
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
        self.schema = for_clients(self._raw.schema)
        if self._raw.schema.get("type") != "object":
            raise ImproperlyConfigured(f'{what} needs "type": "object" at its root.')
        self._example = example_of(self._raw)

    def read(self, arguments: Mapping[str, Any], context: CallContext) -> dict[str, Any]:
        """Raises ToolError that names the place, says what is wrong and shows a valid call."""
        declared = as_declared(arguments, self._raw.schema)
        fault = self._raw.fault(declared)
        if fault is None:
            return {self.parameter: declared}
        shown = f" A valid call: {self.tool} {self._example}" if self._example else ""
        raise ToolError(f"{fault}.{shown}")


class RawResults(Results):
    """Makes results. One that the schema does not accept is a mistake of the function."""

    def __init__(self, tool: str, schema: Mapping[str, Any]) -> None:
        self.tool = tool
        self.annotation = "what its output_schema says"
        self.kind = Kind.STRUCTURED
        self._raw = RawSchema(schema, what=f"The output_schema of the tool {tool!r}")
        self.schema = for_clients(self._raw.schema)
        self.is_wrapped = False

    def _check(self, raw: bytes) -> None:
        # What is longer is refused for its length, later.
        if len(raw) <= get_config().max_response:
            fault = self._raw.fault(msgspec.json.decode(raw))
            if fault is not None:
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
    found: dict[Place, str] = {}
    for one in subschemas(schema):
        if KEYWORD not in one.keywords:
            continue
        place = one.pointer[1::2]
        if not place or any(keyword != "properties" for keyword in one.pointer[::2]):
            raise refused(
                f"at #/{'/'.join(one.pointer)} stands where no client finds it. Only properties, "
                f"and properties of those, may have it. {LEFT_OUT}",
                tool=tool,
            )
        check(one.keywords, place, taken=found, tool=tool)
        found[place] = one.keywords[KEYWORD]
    return found


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
