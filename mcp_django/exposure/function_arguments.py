"""The arguments of a call, read from JSON into what the function expects, or refused in words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from decimal import Decimal
from difflib import get_close_matches
from functools import partial
from typing import Any

import msgspec
from django.core.exceptions import ImproperlyConfigured

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.examples import TEXTS, Examples
from mcp_django.exposure.schemas import PREFIX, input_schema
from mcp_django.exposure.signatures import Signature, unresolved

LONGEST_SHOWN = 60
LONGEST_EXAMPLE = 400
#: The range of a float. A number beyond it is no amount of anything, and costs memory and time, or
#: an error, when something writes it out.
MOST_DIGITS = 308
MOST_BITS = 1024
PLACE = re.compile(r" - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`$")
# Beside ValidationError, a ValueError: unhashable members of sets, numbers and nesting out of
# range.
UNREADABLE = (ValueError, TypeError, OverflowError, RecursionError)


class Refused(Exception):
    """What is wrong, and the arguments that a valid call should show."""

    def __init__(self, sentence: str, names: Sequence[str]) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.names = names


class Arguments:
    """Reads the arguments of one function. JSON types are taken strictly: "1" is no number and
    1 is no boolean. What JSON cannot say is read from strings: dates, times, UUIDs, Decimals.
    """

    def __init__(
        self, tool: str, signature: Signature, *, descriptions: Mapping[str, str]
    ) -> None:
        self.tool = tool
        self.annotations = signature.annotations
        self.required = [name for name in self.annotations if name not in signature.defaults]
        fields: list[Any] = []
        for name, annotation in self.annotations.items():
            # A default is copied for each call, so that one caller never sees another's list.
            default: Callable[[], Any] | None = None
            if name in signature.defaults:
                default = partial(deepcopy, signature.defaults[name])
            fields.append((name, annotation, field_of(default)))
        for name, annotation in self.annotations.items():
            check_annotation(name, annotation, tool=tool)
        self.type = msgspec.defstruct(
            "Arguments", fields, kw_only=True, forbid_unknown_fields=True
        )
        self.schema = input_schema(
            self.annotations, defaults=signature.defaults, descriptions=descriptions
        )
        self._has_decimals = '"decimal"' in msgspec.json.encode(self.schema).decode()
        self._examples = self._make_examples()

    def read(
        self,
        arguments: Mapping[str, Any],
        *,
        examples: Callable[[], Mapping[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """The function's arguments by name, defaults included.

        Raises ToolError that names the argument, says what is wrong and shows a valid call.
        `examples` gives the values for that call; without it they are made of the schema.
        """
        try:
            return self._read(arguments)
        except Refused as error:
            shown_values = self._examples if examples is None else examples()
            raise self._refusal(error, shown_values) from None

    def read_for(self, context: CallContext, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The same, for a call. Annotations mean the same to every caller."""
        return self.read(arguments)

    def _read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        self._check_names(arguments)
        try:
            check_plain(arguments, deepest=get_config().max_depth)
            read = msgspec.convert(dict(arguments), self.type)
            if self._has_decimals:
                check_decimals(read)
        except UNREADABLE:
            raise self._explain(arguments) from None
        return {name: getattr(read, name) for name in self.annotations}

    def _check_names(self, arguments: Mapping[str, Any]) -> None:
        unknown = sorted(name for name in arguments if name not in self.annotations)
        if unknown:
            if close := get_close_matches(unknown[0][:LONGEST_SHOWN], self.annotations, n=1):
                hint = f"Did you mean {close[0]}?"
            elif self.annotations:
                hint = f"This tool takes: {', '.join(self.annotations)}."
            else:
                hint = "This tool takes no arguments."
            more = f" and {len(unknown) - 1} more" if unknown[1:] else ""
            raise Refused(f"Unknown argument {shown(unknown[0])}{more}. {hint}", close)
        if missing := [name for name in self.required if name not in arguments]:
            raise Refused(f"Missing argument: {', '.join(missing)}.", [])

    def _explain(self, arguments: Mapping[str, Any]) -> Refused:
        sentence, name = "These arguments cannot be read together.", ""
        for name, value in arguments.items():
            try:
                check_plain(value, deepest=get_config().max_depth)
                check_decimals(msgspec.convert(value, self.annotations[name]))
            except UNREADABLE as error:
                sentence = describe(error, name, value, schema=self.schema)
                break
        return Refused(sentence, [name])

    def _refusal(self, refused: Refused, examples: Mapping[str, Any]) -> ToolError:
        return ToolError(refused.sentence + self.shown_call(examples, refused.names))

    def shown_call(self, examples: Mapping[str, Any], names: Collection[str]) -> str:
        """A sentence with a call that is valid: what is required, and these arguments.

        Empty where there are no examples of what is required.
        """
        example = {
            name: examples[name]
            for name in self.annotations
            if name in examples and (name in self.required or name in names)
        }
        text = msgspec.json.encode(example).decode()
        if len(text) > LONGEST_EXAMPLE or not example.keys() >= set(self.required):
            return ""
        return f" A valid call: {self.tool} {text}"

    def _make_examples(self) -> dict[str, Any]:
        made = {}
        for name, annotation in self.annotations.items():
            for text in TEXTS:
                examples = Examples(self.schema.get("$defs", {}), text=text)
                value = examples.make(self.schema["properties"][name])
                try:
                    msgspec.convert(deepcopy(value), annotation)
                except UNREADABLE:
                    continue
                made[name] = value
                break
        return made


def field_of(default: Callable[[], Any] | None) -> Any:
    return msgspec.field() if default is None else msgspec.field(default_factory=default)


def check_annotation(name: str, annotation: Any, *, tool: str) -> None:
    """Raise ImproperlyConfigured for a type that JSON cannot be read into."""
    try:
        input_schema({name: annotation}, defaults={}, descriptions={})
        msgspec.json.Decoder(annotation)
    except NameError as error:
        where = f"the type of {name}, an argument of the tool {tool!r},"
        raise ImproperlyConfigured(unresolved(error, where=where)) from error
    except TypeError as error:
        raise ImproperlyConfigured(
            f"The argument {name} of the tool {tool!r} cannot be read from JSON: {error}. "
            "Take plain data, such as the key of a record, and look the record up yourself."
        ) from error


def check_plain(value: Any, *, deepest: int) -> None:
    """Raise ValueError for numbers that JSON cannot say, RecursionError for deep nesting."""
    if deepest < 0:
        raise RecursionError
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("Expected a finite number")
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise ValueError("Number out of range")
    inner = value.values() if isinstance(value, Mapping) else value
    if isinstance(value, (Mapping, list, tuple)):
        for one in inner:
            check_plain(one, deepest=deepest - 1)


def check_decimals(value: Any) -> None:
    """Raise ValueError for a Decimal that is no number, or is out of any use."""

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
    got = f": {shown(value)}" if not found and isinstance(value, (str, int, float)) else ""
    return f"Argument {place}: {message.replace('`', '')[:200]}{got}.{hint}"


def allowed(schema: Mapping[str, Any], name: str) -> str:
    """The values of an enumeration that is the argument's type, or that of its members."""
    waiting = [schema["properties"][name]]
    while waiting:
        one = waiting.pop()
        if "enum" in one:
            return f" Use one of: {', '.join(shown(value) for value in one['enum'][:30])}."
        if "$ref" in one:
            waiting.append(schema["$defs"][one["$ref"].removeprefix(PREFIX)])
        waiting += one.get("anyOf", ())
        if isinstance(one.get("items"), dict):
            waiting.append(one["items"])
    return ""


def shown(value: str | int | float | None) -> str:
    """A value for a sentence: ASCII, and short whatever it is."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return ascii(value[:LONGEST_SHOWN])[:LONGEST_SHOWN]
    # Python refuses to write out thousands of digits.
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        return "a huge number"
    return ascii(value)[:LONGEST_SHOWN]
