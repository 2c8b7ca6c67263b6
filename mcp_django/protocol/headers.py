"""HTTP headers as the transports of MCP read them, and the codec of `Mcp-*` values."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from functools import lru_cache

from mcp_django.protocol.errors import HEADER_MISMATCH, ProtocolError

REVISION = "mcp-protocol-version"
METHOD = "mcp-method"
NAME = "mcp-name"
SESSION = "mcp-session-id"
LAST_EVENT = "last-event-id"
ROUTING = (REVISION, METHOD, NAME)

PREFIX, SUFFIX = "=?base64?", "?="


class Headers:
    """The headers of one request. Names are matched without case, values are trimmed."""

    def __init__(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            text = value.decode("latin-1").strip(" \t")
            self._values.setdefault(name.decode("latin-1").lower(), []).append(text)

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
    except (binascii.Error, ValueError):
        raise malformed() from None
    # Leftover bits would let two headers mean the same name.
    if base64.b64encode(decoded).decode() != encoded:
        raise malformed()
    return text


def malformed() -> ProtocolError:
    return ProtocolError(
        HEADER_MISMATCH, "A header value is neither plain nor valid base64.", status=400
    )


@lru_cache(maxsize=256)
def media_type(value: str) -> str:
    """The type of a Content-Type, without its parameters."""
    return value.partition(";")[0].strip().lower()


@lru_cache(maxsize=256)
def accepts(header: str | None, *wanted: str) -> bool:
    """Whether Accept allows every wanted media type. An absent one allows all.

    The most specific range decides about a type, and q=0 forbids (RFC 9110, 12.5.1).
    """
    if header is None:
        return True
    allowed = {}
    for item in header.split(","):
        kind, *parameters = (part.strip().lower() for part in item.split(";"))
        allowed[kind] = not any(is_zero(parameter) for parameter in parameters)
    return all(is_allowed(kind, allowed) for kind in wanted)


def is_allowed(kind: str, allowed: Mapping[str, bool]) -> bool:
    ranges = (kind, f"{kind.partition('/')[0]}/*", "*/*")
    return next((allowed[one] for one in ranges if one in allowed), False)


def is_zero(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip() == "q" and value.strip().rstrip("0") in ("", ".", "0", "0.")
