"""What a function returned, made into a result that keeps the promise of its annotation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from enum import Enum
from functools import reduce
from operator import or_
from typing import Any, get_args, get_origin

import msgspec
from django.core.exceptions import ImproperlyConfigured
from django.db.models import Model, QuerySet
from django.utils.functional import Promise

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.schemas import NONE, is_union, output_schema
from mcp_django.exposure.signatures import MISSING, unresolved
from mcp_django.protocol.content import BLOCKS, Content, TextContent
from mcp_django.protocol.results import ToolResult

CONTENT = BLOCKS
DONE = "Done."


class Kind(Enum):
    #: Text, and nothing else.
    TEXT = "text"
    #: Nothing to say.
    NOTHING = "nothing"
    #: Content blocks or a whole ToolResult.
    CONTENT = "content"
    #: No promise: whatever comes is shown as it is.
    ANYTHING = "anything"
    #: A structured result with a schema.
    STRUCTURED = "structured"


class Results:
    """Makes results for one function, whose return annotation it was given.

    NaN and Infinity become null, which JSON can say; where the annotation wants a number, that is
    a mistake of the function like any other value that does not fit.
    """

    def __init__(self, tool: str, annotation: Any) -> None:
        self.tool = tool
        self.annotation = without_result(annotation)
        self.kind = kind_of(self.annotation)
        self.schema: dict[str, Any] | None = None
        self.is_wrapped = False
        if self.kind is Kind.STRUCTURED:
            self._decoder = self._promise()

    def make(self, value: Any) -> ToolResult:
        """The result. Raises ToolError when it is too long, TypeError when it breaks a promise."""
        result = self._whole(value) if isinstance(value, ToolResult) else self._from(value)
        result = replace(result, content=[plain_block(one) for one in result.content])
        size = len(msgspec.json.encode(result.content))
        if result.has_structured:
            size += len(result.structured)
        if size > get_config().max_response:
            raise ToolError("The answer is too long; ask for less.")
        return result

    def make_for(self, context: CallContext, value: Any) -> ToolResult:
        """The same, for a call. Annotations promise the same to every caller."""
        return self.make(value)

    def _from(self, value: Any) -> ToolResult:
        if self.kind is Kind.STRUCTURED:
            raw = self._encode(value)
            self._check(raw)
            return structured(b'{"result":' + raw + b"}" if self.is_wrapped else raw)
        if value is None and self.kind is not Kind.TEXT:
            return ToolResult(content=[TextContent(DONE)])
        if isinstance(value, (str, Promise)) and self.kind in (Kind.TEXT, Kind.ANYTHING):
            return ToolResult(content=[TextContent(str(value))])
        blocks = list(value) if isinstance(value, (list, tuple)) else [value]
        # An empty list without a promise is data: "[]".
        may_be_content = self.kind is Kind.CONTENT or (self.kind is Kind.ANYTHING and blocks)
        if may_be_content and all(isinstance(one, CONTENT) for one in blocks):
            return ToolResult(content=blocks)
        if self.kind is Kind.ANYTHING:
            return ToolResult(content=[TextContent(self._encode(value).decode())])
        raise self._broken(f"returned a value of {type(value)}")

    def _whole(self, result: ToolResult) -> ToolResult:
        """A ToolResult that the function made itself, with its data encoded and checked."""
        promises = self.schema is not None and not result.is_error
        if not result.has_structured and result.structured is None:
            if promises:
                raise self._broken("returned a ToolResult without structured data")
            return result
        raw = self._encode(result.structured)
        if promises:
            self._check(self._unwrap(raw) if self.is_wrapped else raw)
        return structured(raw, content=result.content, is_error=result.is_error)

    def _check(self, raw: bytes) -> None:
        try:
            self._decoder.decode(raw)
        except msgspec.ValidationError as error:
            raise self._broken(f"returned something else ({str(error)[:200]})") from error

    def _unwrap(self, raw: bytes) -> bytes:
        whole = msgspec.json.decode(raw)
        if not isinstance(whole, dict) or "result" not in whole:
            raise self._broken('returned structured data without "result"')
        return msgspec.json.encode(whole["result"])

    def _encode(self, value: Any) -> bytes:
        return msgspec.json.encode(value, enc_hook=self._plain)

    def _plain(self, value: Any) -> str:
        if isinstance(value, (str, Promise)):
            return plain_text(value)
        # Never str(): the text of an instance may show what this caller must not see.
        kind = type(value).__name__
        if isinstance(value, (Model, QuerySet)):
            raise TypeError(
                f"The tool {self.tool!r} returned a {kind}. Return plain data: name the fields "
                "that callers may see, for example with .values(...) and list()."
            )
        raise TypeError(f"The tool {self.tool!r} returned a {kind}, which JSON cannot say.")

    def _promise(self) -> msgspec.json.Decoder[Any]:
        try:
            self.schema, self.is_wrapped = output_schema(self.annotation)
            return msgspec.json.Decoder(self.annotation)
        except NameError as error:
            where = f"the return type of the tool {self.tool!r}"
            raise ImproperlyConfigured(unresolved(error, where=where)) from error
        except TypeError as error:
            raise ImproperlyConfigured(
                f"What the tool {self.tool!r} returns cannot be said in JSON: {error}. "
                "Return a Struct, a dataclass, a TypedDict or other plain data."
            ) from error

    def _broken(self, what: str) -> TypeError:
        return TypeError(f"The tool {self.tool!r} promises {self.annotation} but {what}.")


def structured(
    raw: bytes, *, content: Sequence[Content] = (), is_error: bool = False
) -> ToolResult:
    """A result that carries its data, and the same JSON as text for clients that read text."""
    return ToolResult(
        content=list(content) or [TextContent(raw.decode())],
        structured=msgspec.Raw(raw),
        has_structured=True,
        is_error=is_error,
    )


def plain_text(value: Any) -> str:
    """Exactly a str, of a lazy text and of a SafeString, which str() would return as it is."""
    return str.__str__(str(value))


def plain_block(block: Content) -> Content:
    values = {one.name: getattr(block, one.name) for one in fields(block)}
    plain: dict[str, Any] = {
        name: plain_text(value)
        for name, value in values.items()
        if isinstance(value, (str, Promise))
    }
    return replace(block, **plain)


def without_result(annotation: Any) -> Any:
    """The annotation without ToolResult as an alternative: it may take any promise's place."""
    members = get_args(annotation) if is_union(annotation) else ()
    if ToolResult in members:
        return reduce(or_, [one for one in members if one is not ToolResult])
    return annotation


def kind_of(annotation: Any) -> Kind:
    if annotation in (MISSING, Any, object):
        return Kind.ANYTHING
    if annotation is str:
        return Kind.TEXT
    if annotation is NONE:
        return Kind.NOTHING
    return Kind.CONTENT if is_content_type(annotation) else Kind.STRUCTURED


def is_content_type(annotation: Any) -> bool:
    if is_union(annotation):
        return all(one is NONE or is_content_type(one) for one in get_args(annotation))
    if get_origin(annotation) in (list, tuple, Sequence):
        return all(one is ... or is_content_type(one) for one in get_args(annotation))
    return annotation is ToolResult or annotation in CONTENT
