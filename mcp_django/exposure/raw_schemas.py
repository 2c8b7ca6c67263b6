"""JSON Schemas that a site wrote itself: read once, told to clients as they are, and enforced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jsonschema_rs
import msgspec
from django.core.exceptions import ImproperlyConfigured

from mcp_django.conf import get_config
from mcp_django.exposure.function_arguments import check_plain, shown
from mcp_django.exposure.schema_work import BadReference, SchemaWork
from mcp_django.exposure.subschemas import subschemas

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MOST_SUBSCHEMAS = 1_000
DEEPEST = 64
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
    """One schema, compiled. Raises ImproperlyConfigured for one that is not to be relied on.

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
        """A copy that nobody changes, of plain JSON, with its keywords in their order."""
        if not isinstance(schema, Mapping):
            raise self._refused("must be a dict")
        try:
            check_plain(schema, deepest=DEEPEST)
            copy: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(schema))
        except RecursionError:
            raise self._refused(f"is nested deeper than {DEEPEST} levels") from None
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
    """Short, on one line and in ASCII, whatever it quotes."""
    line = " ".join(message[: 2 * LONGEST_MESSAGE].split())
    return line.encode("ascii", "backslashreplace").decode()[:LONGEST_MESSAGE]


def place_of(path: Sequence[str | int]) -> str:
    """`lines[0].price`, of a path in a value."""
    found = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return ascii(found.removeprefix("."))[1:-1][:LONGEST_PLACE]
