"""HTTP headers as the transports of MCP read them, and the codec of `Mcp-*` values."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from mcp_django.protocol.errors import HEADER_MISMATCH, ProtocolError

REVISION = "mcp-protocol-version"
METHOD = "mcp-method"
NAME = "mcp-name"
SESSION = "mcp-session-id"
LAST_EVENT = "last-event-id"
ROUTING = (REVISION, METHOD, NAME)

PREFIX, SUFFIX = "=?base64?", "?="

#: Bytes of one value, as most servers and proxies have it, and of all names and values together.
LONGEST_VALUE = 8 * 1024
LONGEST_HEADERS = 64 * 1024


class Headers:
    """The headers of one request. Names are matched without case, values are trimmed."""

    def __init__(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        self._values: dict[str, list[str]] = {}
        size = 0
        #: The rest of them is not read then.
        self.are_too_long = False
        #: Whether some header stands more than once.
        self.has_repeated = False
        for name, value in pairs:
            size += len(name) + len(value)
            if len(value) > LONGEST_VALUE or size > LONGEST_HEADERS:
                self.are_too_long = True
                return
            text = value.decode("latin-1").strip(" \t")
            key = name.decode("latin-1").lower()
            if key in self._values:
                self.has_repeated = True
                self._values[key].append(text)
            else:
                self._values[key] = [text]

    def get(self, name: str) -> str | None:
        """The first value, or None."""
        values = self._values.get(name)
        return values[0] if values else None

    def joined(self, name: str) -> str | None:
        """The values of a header that is a list, which may stand in several lines, or None."""
        values = self._values.get(name)
        return ", ".join(values) if values else None

    def count(self, name: str) -> int:
        return len(self._values.get(name, ()))

    def starting_with(self, prefix: str) -> dict[str, list[str]]:
        """The headers whose lower-case names begin so, each with all of its values."""
        return {
            name: list(values) for name, values in self._values.items() if name.startswith(prefix)
        }


def encode_value(text: str) -> str:
    """A value that survives HTTP: itself, or base64 of its UTF-8 between two markers."""
    is_plain = text.isascii() and text.isprintable() and text == text.strip()
    if is_plain and not (text.startswith(PREFIX) and text.endswith(SUFFIX)):
        return text
    return PREFIX + base64.b64encode(text.encode()).decode() + SUFFIX


def decode_value(value: str) -> str:
    """The text of a header value. Raises ProtocolError when what the markers hold is malformed.

    Without both markers the value is literal (2026-07-28, basic/transports, header encoding).
    Literal text beyond ASCII means different things to different readers, so it means nothing.
    """
    if not value.isascii():
        raise malformed()
    if len(value) < len(PREFIX + SUFFIX) or not (
        value.startswith(PREFIX) and value.endswith(SUFFIX)
    ):
        return value
    encoded = value[len(PREFIX) : -len(SUFFIX)]
    try:
        decoded = base64.b64decode(encoded, validate=True)
        text = decoded.decode()
    except ValueError:
        raise malformed() from None
    # Leftover bits would let two headers mean the same name.
    if base64.b64encode(decoded).decode() != encoded:
        raise malformed()
    return text


def malformed() -> ProtocolError:
    return mismatch("A header value is neither plain nor valid base64.")


def media_type(value: str) -> str:
    """The type of a Content-Type, without its parameters."""
    return value.partition(";")[0].strip().lower()


# The headers `Mcp-Param-*`, which repeat arguments of a call for gateways.
#
# 2026-07-28, basic/transports, custom headers from tool parameters. Both sides must agree: a
# gateway has looked at the header, and the tool is about to act on the argument.

PARAM_PREFIX = "mcp-param-"
#: Where an argument stands, by the names of the members that lead to it.
Place: TypeAlias = tuple[str, ...]
#: Which arguments are repeated, and in which header: `Region` for `Mcp-Param-Region`.
ParamHeaders: TypeAlias = Mapping[Place, str]
#: What a request carries: the values of each header by its name in lower case.
SentParams: TypeAlias = Mapping[str, Sequence[str]]

#: The integers that every reader of JSON reads as the same number.
GREATEST_INTEGER = 2**53 - 1
NUMBER = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?", re.ASCII)
PRINTABLE = re.compile(r"[\t\x20-\x7e]*")


def sent_params(headers: Headers) -> dict[str, list[str]]:
    """The headers of this kind, and no others: what a tool may come to see holds no credential."""
    return headers.starting_with(PARAM_PREFIX)


def value_at(arguments: Mapping[str, Any], place: Place) -> str | float | None:
    """The argument there. None where there is none, or what no header can say.

    Annotated arguments are plain texts, integers and booleans, so that anything else is refused
    in words when arguments are read.
    """
    value: Any = arguments
    for name in place:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value if isinstance(value, (str, int, float)) else None


def encode_params(arguments: Mapping[str, Any], expected: ParamHeaders) -> dict[str, str]:
    """The headers that a client sends with these arguments."""
    found = {}
    for place, name in expected.items():
        value = value_at(arguments, place)
        if value is not None:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            found[f"Mcp-Param-{name}"] = encode_value(text)
    return found


def check_params(sent: SentParams, arguments: Mapping[str, Any], expected: ParamHeaders) -> None:
    """Raise ProtocolError -32020 where a header and its argument are not the same.

    An argument that is absent or null has no header. Headers that the tool does not know are
    ignored.
    """
    for place, name in expected.items():
        values = sent.get(PARAM_PREFIX + name.lower(), ())
        value = value_at(arguments, place)
        if len(values) > 1:
            raise mismatch(f"The header Mcp-Param-{name} stands more than once.")
        if value is None and values:
            raise mismatch(f"Mcp-Param-{name} repeats {'.'.join(place)}, which is not given.")
        if value is not None and not (values and is_same(values[0], value)):
            raise mismatch(f"Mcp-Param-{name} must repeat the argument {'.'.join(place)}.")


def is_same(header: str, value: str | float) -> bool:
    """Whether a header says a value. Raises ProtocolError for one that is malformed."""
    if PRINTABLE.fullmatch(header) is None:
        raise mismatch("A header value has characters that must be encoded.")
    text = decode_value(header)
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, (int, float)):
        # 42 and 42.0 are one number. Beyond 2^53 two readers need not see the same one.
        is_safe = -GREATEST_INTEGER <= value <= GREATEST_INTEGER
        return is_safe and NUMBER.fullmatch(text) is not None and Decimal(text) == Decimal(value)
    return text == value


def mismatch(sentence: str) -> ProtocolError:
    return ProtocolError(HEADER_MISMATCH, sentence, status=400)
