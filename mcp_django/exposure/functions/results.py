"""Results: what a function returned, as its annotation promises, and what it refused, in words."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import reduce
from operator import or_
from typing import Any, get_args, get_origin

import msgspec
from django.core.exceptions import (
    ImproperlyConfigured,
    ObjectDoesNotExist,
    PermissionDenied,
    SuspiciousFileOperation,
    ValidationError,
)
from django.db.models import Model, QuerySet
from django.http import Http404
from django.utils.functional import Promise

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import NotFound, QueryError, ToolError
from mcp_django.exposure.functions.json_schemas import NONE, is_union, last_line, output_schema
from mcp_django.exposure.functions.signatures import MISSING, unresolved
from mcp_django.protocol.content import BLOCKS, Content, ResourceContents, TextContent
from mcp_django.protocol.results import PromptMessage, ToolResult

DONE = "Done."
NO_NUMBER = "The tool has run. Where null stands it has no number: NaN or infinity."
#: Annotations that promise nothing: any value is shown as it is.
ANYTHING = (MISSING, Any, object)


class Results:
    """Makes the results of one function, which promises what its return annotation says.

    NaN and Infinity become null. Where the annotation wants a number, no structured result can
    have that, and the answer is an error with what the function returned.
    """

    def __init__(self, tool: str, annotation: Any) -> None:
        self.tool = tool
        members = get_args(annotation) if is_union(annotation) else ()
        if ToolResult in members:
            # It may replace any other result.
            annotation = reduce(or_, [kind for kind in members if kind is not ToolResult])
        self.annotation = annotation
        #: That of structured results. None where text or content is promised, or nothing.
        self.schema: dict[str, Any] | None = None
        self.is_wrapped = False
        if self.annotation in (*ANYTHING, str, NONE) or is_content_type(self.annotation):
            return
        try:
            self.schema, self.is_wrapped = output_schema(self.annotation)
            self._decoder = msgspec.json.Decoder(self.annotation)
        except NameError as error:
            where = f"the return type of the tool {tool!r}"
            raise ImproperlyConfigured(unresolved(error, where=where)) from error
        except TypeError as error:
            raise ImproperlyConfigured(
                f"What the tool {tool!r} returns cannot be said in JSON: {last_line(error)}. "
                "Return a Struct, a dataclass, a TypedDict or other plain data."
            ) from error

    def make(self, value: Any, context: CallContext) -> ToolResult:
        """The result. Raises ToolError when it is too long, TypeError when it breaks a promise."""
        if isinstance(value, ToolResult):
            result = self._whole(value)
        elif self.schema is not None:
            raw = self._encode(value)
            try:
                self._check(raw)
            except TypeError:
                if not has_infinity(value):
                    raise
                blocks: list[Content] = [TextContent(raw.decode()), TextContent(NO_NUMBER)]
                return ToolResult(content=blocks, is_error=True)
            result = structured(b'{"result":' + raw + b"}" if self.is_wrapped else raw)
        else:
            result = self._from(value)
        result = replace(result, content=[plain_block(one) for one in result.content])
        size = len(msgspec.json.encode(result.content))
        if result.has_structured:
            size += len(result.structured)
        if size > get_config().max_response:
            raise ToolError("The answer is too long; ask for less.")
        return result

    def _from(self, value: Any) -> ToolResult:
        """Text, or content blocks, where no structured result is promised."""
        is_free, is_text = self.annotation in ANYTHING, self.annotation is str
        if value is None and not is_text:
            return ToolResult(content=[TextContent(DONE)])
        if isinstance(value, (str, Promise)) and (is_free or is_text):
            return ToolResult(content=[TextContent(str(value))])
        blocks = list(value) if isinstance(value, (list, tuple)) else [value]
        # An empty list without a promise is data: "[]".
        may_be_content = blocks if is_free else is_content_type(self.annotation)
        if may_be_content and all(isinstance(one, BLOCKS) for one in blocks):
            return ToolResult(content=blocks)
        if is_free:
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
        if promises and self.is_wrapped:
            whole = msgspec.json.decode(raw)
            if not isinstance(whole, dict) or "result" not in whole:
                raise self._broken('returned structured data without "result"')
            self._check(msgspec.json.encode(whole["result"]))
        elif promises:
            self._check(raw)
        return structured(raw, content=result.content, is_error=result.is_error)

    def _check(self, raw: bytes) -> None:
        try:
            self._decoder.decode(raw)
        except msgspec.ValidationError as error:
            raise self._broken(f"returned something else ({str(error)[:200]})") from error

    def _encode(self, value: Any) -> bytes:
        return encode(value, of=f"tool {self.tool!r}")

    def _broken(self, what: str) -> TypeError:
        return TypeError(f"The tool {self.tool!r} promises {self.annotation} but {what}.")


def has_infinity(value: Any) -> bool:
    """Return whether there is a number in it that JSON cannot say."""
    try:
        json.dumps(msgspec.to_builtins(value, enc_hook=lambda inner: ""), allow_nan=False)
    except ValueError:
        return True
    return False


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


def encode(value: Any, *, of: str) -> bytes:
    """JSON of what a function of the site returned. Raises TypeError for other data."""

    def plain(inner: Any) -> str:
        if isinstance(inner, (str, Promise)):
            return plain_text(inner)
        # Never str(): the text of an instance may show what this caller must not see.
        hint = (
            " Return plain data: name the fields that callers may see, for example with "
            ".values(...) and list()."
            if isinstance(inner, (Model, QuerySet))
            else ""
        )
        raise TypeError(
            f"The {of} returned a {type(inner).__name__}, which JSON cannot say.{hint}"
        )

    return msgspec.json.encode(value, enc_hook=plain)


def plain_text(value: Any) -> str:
    """Exactly a str of a lazy text or a SafeString, which str() would return as it is."""
    return str.__str__(str(value))


def plain_block(block: Content) -> Content:
    values = {one.name: getattr(block, one.name) for one in fields(block)}
    plain: dict[str, Any] = {
        name: plain_text(value)
        for name, value in values.items()
        if isinstance(value, (str, Promise))
    }
    return replace(block, **plain)


def is_content_type(annotation: Any) -> bool:
    if is_union(annotation):
        return all(one is NONE or is_content_type(one) for one in get_args(annotation))
    if get_origin(annotation) in (list, tuple, Sequence):
        return all(one is ... or is_content_type(one) for one in get_args(annotation))
    return annotation is ToolResult or annotation in BLOCKS


# What the function of a resource returned, made into contents.

TEXT, BYTES, JSON = "text/plain", "application/octet-stream", "application/json"


def mime_type_of(annotation: Any) -> str:
    """The type that a return annotation promises, or an empty text."""
    if annotation is str:
        return TEXT
    if annotation is bytes:
        return BYTES
    if annotation in (*ANYTHING, ResourceContents):
        return ""
    return "" if ResourceContents in getattr(annotation, "__args__", ()) else JSON


def contents_of(value: Any, *, uri: str, mime_type: str) -> list[ResourceContents]:
    """Texts and bytes as they are, contents as they are, other plain data as JSON.

    Raises NotFound for None, QueryError for what is too long, TypeError for what JSON cannot say.
    """
    if value is None:
        raise NotFound("There is no such resource.")
    parts = value if isinstance(value, list | tuple) else [value]
    if parts and all(isinstance(one, ResourceContents) for one in parts):
        contents = list(parts)
    elif isinstance(value, str | Promise):
        text = plain_text(value)
        contents = [ResourceContents(uri=uri, mime_type=mime_type or TEXT, text=text)]
    elif isinstance(value, bytes | bytearray | memoryview):
        contents = [ResourceContents(uri=uri, mime_type=mime_type or BYTES, blob=bytes(value))]
    else:
        text = encode(value, of="resource").decode()
        contents = [ResourceContents(uri=uri, mime_type=mime_type or JSON, text=text)]
    longest = get_config().max_response
    # base64 is a third longer than what it carries.
    size = sum(
        len((one.text or "").encode()) if one.blob is None else len(one.blob) * 4 // 3
        for one in contents
    )
    if size > longest:
        raise QueryError(f"This resource is longer than {longest} bytes and cannot be sent.")
    return contents


# What a prompt returned, as the messages that clients get.

ROLES = ("user", "assistant")


def messages_of(value: Any, *, prompt: str) -> list[PromptMessage]:
    """Raises TypeError for what is no message, ToolError for messages that are too long."""
    values = value if isinstance(value, (list, tuple)) else [value]
    if not values:
        raise TypeError(f"The prompt {prompt!r} returned no messages.")
    messages = [message_of(one, prompt=prompt) for one in values]
    size = len(msgspec.json.encode([one.content for one in messages]))
    if size > get_config().max_response:
        raise ToolError("The prompt is too long; ask for less.")
    return messages


def message_of(value: Any, *, prompt: str) -> PromptMessage:
    if isinstance(value, (str, Promise)):
        return PromptMessage(content=TextContent(plain_text(value)))
    if isinstance(value, BLOCKS):
        return PromptMessage(content=plain_block(value))
    if not isinstance(value, PromptMessage):
        # Never its text: that of an instance may show what this caller must not see.
        raise TypeError(
            f"The prompt {prompt!r} returned a {type(value).__name__}. Return text, content "
            "blocks such as mcp.EmbeddedResource, mcp.PromptMessage, or a list of these."
        )
    if value.role not in ROLES or not isinstance(value.content, BLOCKS):
        raise TypeError(
            f"The prompt {prompt!r} returned a message that is not one: its role is user or "
            "assistant, and its content is a block such as mcp.Text."
        )
    return PromptMessage(content=plain_block(value.content), role=value.role)


# How code of the site refuses, as sentences for a model.

LONGEST_VALIDATION = 2000


@contextmanager
def refusals_in_words() -> Iterator[None]:
    """Turn exceptions by which Django and its REST framework refuse into ToolErrors, which reveal
    nothing else.
    """
    try:
        yield
    except PermissionDenied as error:
        raise ToolError("You may not do this.") from error
    except (Http404, ObjectDoesNotExist) as error:
        raise ToolError("There is no such object.") from error
    except ValidationError as error:
        raise ToolError(validation_text(error)[:LONGEST_VALIDATION]) from error
    except SuspiciousFileOperation as error:
        # A storage has its own rules for names. Django answers 400.
        raise ToolError(
            "The site cannot store a file of this name. Use a short name of letters and digits."
        ) from error
    except Exception as error:
        # What is not imported was not raised.
        if "rest_framework.exceptions" in sys.modules:
            from mcp_django.exposure.functions.drf import refusal_of

            if sentence := refusal_of(error):
                raise ToolError(sentence) from error
        raise


def validation_text(error: ValidationError) -> str:
    if not hasattr(error, "error_dict"):
        return " ".join(error.messages)
    return " ".join(
        " ".join(messages) if field == "__all__" else f"{field}: {' '.join(messages)}"
        for field, messages in error.message_dict.items()
    )
