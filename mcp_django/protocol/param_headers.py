"""The headers `Mcp-Param-*`, which repeat arguments of a call for whoever routes it.

2026-07-28, basic/transports, custom headers from tool parameters. Both sides must agree: a
gateway has looked at the header, and the tool is about to act on the argument.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from mcp_django.protocol.errors import HEADER_MISMATCH, ProtocolError
from mcp_django.protocol.headers import Headers, decode_value, encode_value

PREFIX = "mcp-param-"
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
    return headers.starting_with(PREFIX)


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
    nobody's business.
    """
    for place, name in expected.items():
        values = sent.get(PREFIX + name.lower(), ())
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
        return is_same_number(text, value)
    return text == value


def is_same_number(text: str, value: float) -> bool:
    """42 and 42.0 are one number. Beyond 2^53 two readers need not see the same one."""
    is_safe = -GREATEST_INTEGER <= value <= GREATEST_INTEGER
    return is_safe and NUMBER.fullmatch(text) is not None and Decimal(text) == Decimal(value)


def mismatch(sentence: str) -> ProtocolError:
    return ProtocolError(HEADER_MISMATCH, sentence, status=400)
