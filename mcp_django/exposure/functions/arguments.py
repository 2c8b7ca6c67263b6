"""The arguments of a call, read from JSON into what the function expects, or refused in words."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from decimal import Decimal
from difflib import get_close_matches
from functools import partial
from typing import Any

import jsonschema_rs
import msgspec
from django.core.exceptions import ImproperlyConfigured

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import InvalidArguments
from mcp_django.exposure.fields import LONGEST_QUOTED, quoted
from mcp_django.exposure.functions.json_schemas import (
    OTHERS,
    TEXTS,
    Examples,
    input_schema,
    last_line,
)
from mcp_django.exposure.functions.signatures import Signature, unresolved
from mcp_django.protocol.jsonrpc import has_too_many_values

LONGEST_EXAMPLE = 400
#: The range of a float, whose least is 5e-324. To write out a number beyond it costs memory and
#: time, or fails.
MOST_DIGITS = 324
MOST_BITS = 1024
PLACE = re.compile(r" - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`$")
# Apart from ValidationError, which is a ValueError: unhashable members of sets, and numbers and
# nesting out of range.
UNREADABLE = (ValueError, TypeError, OverflowError, RecursionError)
#: What a model sends for a parameter that it has no value for.
EMPTY: tuple[Any, ...] = (None, "", [], {})
#: What JSON calls the types of values that were decoded from it.
TYPES = {
    str: "string", float: "number", int: "integer", bool: "boolean", type(None): "null",
    list: "array",
}  # fmt: skip
ALL_TYPES = frozenset({*TYPES.values(), "object"})
#: Names that clients add to the arguments of any tool: see docs/reference/clients.md.
STRAY_NAMES = frozenset(
    {
        "_sessionID", "action", "chatInput", "random_string", "sessionId", "task_progress",
        "toolCallId", "wait_for_previous",
    }
)  # fmt: skip
#: What msgspec calls the types of JSON, in words.
TYPE_WORDS = {
    "int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text",
    "array": "a list", "object": "an object",
}  # fmt: skip
TYPE_NAMES = re.compile(r"`([a-z]+(?: \| [a-z]+)*)`")
#: The keywords that decide whether a value may be empty.
ABOUT_EMPTY = frozenset(
    {
        "type", "enum", "const", "format", "pattern", "minLength", "minItems", "prefixItems",
        "minProperties", "required",
    }
)  # fmt: skip


class Refused(InvalidArguments):
    """The sentence, and the optional arguments that a valid call should show."""

    def __init__(self, sentence: str, names: Sequence[str]) -> None:
        super().__init__(sentence)
        self.names = names


class Arguments:
    """Reads the arguments of one function. JSON types are strict: "1" is not a number and 1 is
    not a boolean. Strings hold what JSON cannot say: dates, times, UUIDs, Decimals.

    With `struct`, the type of all arguments of a tool of ours, no empty value has a meaning.
    """

    def __init__(
        self,
        tool: str,
        signature: Signature,
        *,
        descriptions: Mapping[str, str],
        struct: type[msgspec.Struct] | None = None,
    ) -> None:
        self.tool = tool
        self.takes_empty = struct is None
        self.annotations = signature.annotations
        self.required = [name for name in self.annotations if name not in signature.defaults]
        fields: list[Any] = []
        for name, annotation in self.annotations.items():
            try:
                input_schema({name: annotation}, defaults={}, descriptions={})
                msgspec.json.Decoder(annotation)
            except NameError as error:
                where = f"the type of {name}, an argument of the tool {tool!r},"
                raise ImproperlyConfigured(unresolved(error, where=where)) from error
            except TypeError as error:
                raise ImproperlyConfigured(
                    f"The argument {name} of the tool {tool!r} cannot be read from JSON: "
                    f"{last_line(error)}. Take plain data, such as the key of a record, and look "
                    "the record up yourself."
                ) from error
            # A default is copied for each call, so that one caller never sees another's list.
            default: dict[str, Any] = {}
            if name in signature.defaults:
                default["default_factory"] = partial(deepcopy, signature.defaults[name])
            fields.append((name, annotation, msgspec.field(**default)))
        self.type = struct or msgspec.defstruct(
            "Arguments", fields, kw_only=True, forbid_unknown_fields=True
        )
        self.schema = input_schema(
            self.annotations, defaults=signature.defaults, descriptions=descriptions
        )
        # What clients get says nothing of other names.
        self._declared = {**self.schema, OTHERS: False}
        self._has_decimals = '"decimal"' in msgspec.json.encode(self.schema).decode()
        self._examples = self._make_examples()

    @classmethod
    def of_struct(cls, tool: str, struct: type[msgspec.Struct]) -> Arguments:
        fields = msgspec.structs.fields(struct)
        ordered = sorted(fields, key=lambda one: not one.required)
        signature = Signature(
            annotations={one.name: one.type for one in ordered},
            defaults={one.name: one.default for one in fields if not one.required},
        )
        return cls(tool, signature, descriptions={}, struct=struct)

    def read(self, arguments: Mapping[str, Any], context: CallContext) -> dict[str, Any]:
        """Return the function's arguments by name, defaults included.

        Raises InvalidArguments, which names the argument, says what is wrong and shows a valid
        call with values made of the schema.
        """
        try:
            decoded = self.decode(arguments)
        except Refused as error:
            names = {*self.required, *error.names}
            example = {name: self._examples[name] for name in self._examples if name in names}
            raise InvalidArguments(f"{error}{self.shown_call(example)}") from None
        return {name: getattr(decoded, name) for name in self.annotations}

    def decode(self, arguments: Mapping[str, Any]) -> Any:
        """Return the arguments as the struct of this function, defaults included.

        Raises Refused, which names the argument and says what is wrong.
        """
        declared = as_declared(arguments, self._declared, takes_empty=self.takes_empty)
        check_names(declared, self.annotations, required=self.required, of="tool")
        try:
            check_plain(declared, deepest=get_config().max_depth)
            read = msgspec.convert(declared, self.type)
            if self._has_decimals:
                check_decimals(read)
            return read
        except UNREADABLE:
            pass
        for name, value in declared.items():
            try:
                check_plain(value, deepest=get_config().max_depth)
                check_decimals(msgspec.convert(value, self.annotations[name]))
            except UNREADABLE as error:
                raise Refused(describe(error, name, value, schema=self.schema), [name]) from None
        raise Refused("These arguments cannot be read together.", [])

    def shown_call(self, example: Mapping[str, Any]) -> str:
        """Return a sentence with a call that has these arguments. Empty if it would be long, or if
        there is no example of what is required.
        """
        text = msgspec.json.encode(example).decode()
        if len(text) > LONGEST_EXAMPLE or not example.keys() >= set(self.required):
            return ""
        return f" A valid call: {self.tool} {text}"

    def _make_examples(self) -> dict[str, Any]:
        made = {}
        for name, annotation in self.annotations.items():
            for text in TEXTS:
                examples = Examples(text=text)
                value = examples.make(self.schema["properties"][name])
                try:
                    msgspec.convert(deepcopy(value), annotation)
                except UNREADABLE:
                    continue
                made[name] = value
                break
        return made


def check_names(
    arguments: Collection[str], known: Collection[str], *, required: Iterable[str], of: str
) -> None:
    """Raise Refused for a name that is unknown, and for one that is missing."""
    if unknown := sorted(name for name in arguments if name not in known):
        close = get_close_matches(unknown[0][:LONGEST_QUOTED], known, n=1)
        taken = f": {', '.join(known)}" if known else " no arguments"
        hint = f"Did you mean {close[0]}?" if close else f"This {of} takes{taken}."
        more = f" and {len(unknown) - 1} more" if unknown[1:] else ""
        raise Refused(f"Unknown argument {quoted(unknown[0])}{more}. {hint}", close)
    if missing := [name for name in required if name not in arguments]:
        raise Refused(f"Missing argument: {', '.join(missing)}.", [])


def as_declared(
    arguments: Mapping[str, Any], schema: Mapping[str, Any], *, takes_empty: bool = True
) -> dict[str, Any]:
    """The arguments of a call in the form that the schema of the tool declares.

    Clients and models deviate from a schema in small ways:

    1. An optional argument that is empty (`null`, `""`, `[]` or `{}`) is left out, unless the
       schema takes this empty value. With `takes_empty=False`, for the generic tools and those of
       the admin, no empty value means anything, and `null` is left out even where it is required.
       What is inside an argument stays.
    2. A text where no text is declared is read as JSON, if it is JSON: `"2"`, `"true"`, `"null"`.
    3. Another text where a list of texts is declared becomes the only member of that list.
    4. A number without a fraction is an integer: `1.0` is `1`.
    5. Names that clients are known to add are left out where the schema closes its object.

    Anything else stays as it is, for the reader of the tool to refuse.
    """
    properties, required = schema.get("properties", {}), schema.get("required", ())
    is_closed = schema.get(OTHERS) is False
    strays = STRAY_NAMES - properties.keys() if is_closed else frozenset()
    declared = {}
    for name, value in arguments.items():
        if (value is None and not takes_empty) or name in strays:
            continue
        options = [*alternatives(properties.get(name, True))]
        with suppress(RecursionError):  # the reader refuses it
            value = fitted(value, options)
        is_optional = name in properties and name not in required
        if is_optional and value in EMPTY and not (takes_empty and takes(value, options)):
            continue
        declared[name] = value
    return declared


def alternatives(schema: Any) -> Iterator[Mapping[str, Any]]:
    """The schemas of which a value must fit one, each with its own type."""
    if not isinstance(schema, dict):
        return
    if "type" not in schema and (choices := schema.get("anyOf", schema.get("oneOf"))):
        for choice in choices:
            yield from alternatives(choice)
    else:
        yield schema


def types_of(schema: Mapping[str, Any]) -> frozenset[str]:
    """The types that a schema allows: all, where it says nothing of them."""
    types = schema.get("type")
    if types is not None:
        return frozenset([types] if isinstance(types, str) else types)
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    return ALL_TYPES if values is None else frozenset(map(type_of, values))


def type_of(value: Any) -> str:
    return TYPES.get(type(value), "object")


def takes(value: Any, options: Sequence[Mapping[str, Any]]) -> bool:
    """Whether an empty value fits one of the schemas."""
    for option in options:
        rules = {keyword: option[keyword] for keyword in ABOUT_EMPTY & option.keys()}
        try:
            fits = jsonschema_rs.is_valid(rules, value, validate_formats=True)
        except ValueError:  # a regular expression that only Python has
            fits = True
        if fits and not (value == "" and rules.get("format") == "decimal"):
            return True
    return not options


def fitted(value: Any, options: Sequence[Mapping[str, Any]]) -> Any:
    """A value, and all that is inside it, in the form that one of the schemas declares."""
    allowed: frozenset[str] = frozenset().union(*map(types_of, options)) if options else ALL_TYPES
    if isinstance(value, str) and "string" not in allowed:
        value = unpacked(value, allowed, options)
    if isinstance(value, float) and value.is_integer() and "number" not in allowed:
        return int(value) if "integer" in allowed else value
    if isinstance(value, list):
        arrays = [option for option in options if "array" in types_of(option)]
        inner = arrays[0].get("items", True) if len(arrays) == 1 else True
        members = [*alternatives(inner)]
        return [fitted(member, members) for member in value] if members else value
    if isinstance(value, dict):
        objects = [option for option in options if "object" in types_of(option)]
        schema: Mapping[str, Any] = objects[0] if len(objects) == 1 else {}
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties", True)
        inside = {name: [*alternatives(properties.get(name, others))] for name in value}
        return {
            name: fitted(member, inside[name]) if inside[name] else member
            for name, member in value.items()
        }
    return value


def unpacked(text: str, allowed: frozenset[str], options: Sequence[Mapping[str, Any]]) -> Any:
    """What a text stands for where no text is allowed, or the text itself."""
    with suppress(ValueError, RecursionError):
        body = text.encode()
        # As many as a body may have: nobody has counted those in a text.
        value = text if has_too_many_values(body) else msgspec.json.decode(body)
        kind = type_of(value)
        is_number = kind in ("integer", "number") and allowed & {"integer", "number"}
        if value is None or is_number or kind in allowed:
            return value
    if text.lstrip()[:1] in ("", "[", "{"):
        return text
    for option in options:
        for member in alternatives(option.get("items")):
            if types_of(member) == {"string"}:
                return [text]
    return text


def check_plain(value: Any, *, deepest: int) -> None:
    """Raise ValueError for numbers that JSON cannot represent, with the place as msgspec says it,
    and RecursionError for deep nesting.
    """
    if deepest < 0:
        raise RecursionError
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("Expected a finite number")
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise ValueError("Number out of range")
    is_object = isinstance(value, Mapping)
    if not is_object and not isinstance(value, (list, tuple)):
        return
    for name, item in value.items() if is_object else enumerate(value):
        try:
            check_plain(item, deepest=deepest - 1)
        except ValueError as error:
            message, _, place = str(error).partition(" - at `$")
            step = f".{str(name)[:LONGEST_QUOTED]}" if is_object else f"[{name}]"
            raise ValueError(f"{message} - at `${step}{place or '`'}") from None


def check_decimals(value: Any) -> None:
    """Raise ValueError for a Decimal that is not finite or out of range."""

    def check(one: Any) -> None:
        if isinstance(one, Decimal):
            if not one.is_finite():
                raise ValueError("Expected a finite number")
            if abs(one.adjusted()) > MOST_DIGITS:
                raise ValueError("Number out of range")
        elif isinstance(one, (list, tuple, dict)):
            for inner in one.values() if isinstance(one, dict) else one:
                check(inner)

    check(msgspec.to_builtins(value, builtin_types=(Decimal,), enc_hook=lambda other: None))


def describe(error: Exception, name: str, value: Any, *, schema: Mapping[str, Any]) -> str:
    """What is wrong with one argument, in a sentence."""
    if isinstance(error, (RecursionError, OverflowError)):
        return f"Argument {name}: too deeply nested, or too large."
    if not isinstance(error, ValueError):
        return f"Argument {name}: a member of it cannot stand there."
    message, path = str(error), ""
    if found := PLACE.search(message):
        message, path = message[: found.start()], found["path"]
    place = ("a key of " if found and found["key"] else "") + name + path[:200]
    hint = ""
    if message.startswith("Invalid enum value"):
        # msgspec quotes the value, at any length.
        message, hint = "Invalid value", allowed(schema, name)
    got = f": {quoted(value)}" if not found and isinstance(value, (str, int, float)) else ""

    def in_words(types: re.Match[str]) -> str:
        """Type names of msgspec: `int | null` is "a whole number or null"."""
        return " or ".join(TYPE_WORDS.get(name, name) for name in types[1].split(" | "))

    message = TYPE_NAMES.sub(in_words, message).replace("`", "")
    return f"Argument {place}: {message[:200]}{got}.{hint}"


def allowed(schema: Mapping[str, Any], name: str) -> str:
    """The values of an enumeration that is the argument's type, or that of its members."""
    for option in alternatives(schema["properties"][name]):
        for inner in (option, *alternatives(option.get("items"))):
            if "enum" in inner:
                return f" Use one of: {', '.join(quoted(value) for value in inner['enum'][:30])}."
    return ""
