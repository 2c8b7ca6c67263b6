"""Where a page ended, signed and bound to who asked what."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.core import signing
from django.utils.crypto import salted_hmac

from mcp_django.exceptions import QueryError
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.reach import Reach

SALT = "mcp_django.cursor"
LIFETIME = timedelta(hours=1)
LONGEST = 8192
#: Bytes that make two cursors of one position different.
NONCE = 16
STALE = "This cursor is not valid for this query. Call again without a cursor."
#: Arguments that a position depends on. `fields` and `limit` may change from page to page.
BINDING = ("filters", "exclude", "any_of", "search", "order_by")


def binding(rights: Rights, reach: Reach, arguments: Mapping[str, Any]) -> str:
    """Everything that a position means anything for."""
    asked = [arguments.get(name) for name in BINDING]
    who = [rights.identity, rights.principal.server, reach.exposure.label, reach.digest]
    text = json.dumps([who, asked], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def encode(bound: str, position: Sequence[Any]) -> str:
    body = json.dumps([bound, [pack(value) for value in position]], separators=(",", ":"))
    nonce = secrets.token_bytes(NONCE)
    sealed = nonce + mixed(body.encode(), nonce)
    raw = base64.urlsafe_b64encode(sealed).decode().rstrip("=")
    return signing.TimestampSigner(salt=SALT).sign(raw)


def decode(bound: str, cursor: Any, *, size: int) -> list[Any]:
    """The position of `size` values. Raises QueryError with one sentence, whatever is wrong."""
    if not isinstance(cursor, str) or len(cursor) > LONGEST or not cursor.isascii():
        raise QueryError(STALE)
    try:
        raw = signing.TimestampSigner(salt=SALT).unsign(cursor, max_age=LIFETIME)
        sealed = base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4))
        owner, position = json.loads(mixed(sealed[NONCE:], sealed[:NONCE]))
        values = [unpack(item) for item in position]
    except (signing.BadSignature, ValueError, binascii.Error):
        raise QueryError(STALE) from None
    if owner != bound or len(values) != size:
        raise QueryError(STALE)
    return values


def mixed(text: bytes, nonce: bytes) -> bytes:
    """The text under a keystream, and back again.

    The key of a row is in every cursor, whether or not records show it. The signature round this
    keeps anybody from changing it; here it only has to be unreadable.
    """
    key = salted_hmac(SALT, nonce, algorithm="sha256").digest()
    stream = hashlib.shake_256(key).digest(len(text))
    return bytes(one ^ other for one, other in zip(text, stream, strict=True))


def pack(value: Any) -> Any:
    if value is None or type(value) in (bool, int, str):
        return value
    for tag, kind, write, _ in CODECS:
        if isinstance(value, kind):
            return {tag: write(value)}
    raise TypeError(f"No cursor for {type(value).__name__}")


def unpack(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((tag, text),) = value.items()
    return READERS[tag](text)


#: A datetime is a date, so it comes first. Floats travel in hexadecimal, bit by bit.
CODECS: tuple[tuple[str, type, Any, Any], ...] = (
    ("D", Decimal, str, Decimal),
    ("f", float, float.hex, float.fromhex),
    ("t", datetime, datetime.isoformat, datetime.fromisoformat),
    ("d", date, date.isoformat, date.fromisoformat),
    ("h", time, time.isoformat, time.fromisoformat),
    (
        "i",
        timedelta,
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda parts: timedelta(days=parts[0], seconds=parts[1], microseconds=parts[2]),
    ),
    ("u", UUID, str, UUID),
    ("s", str, str, str),
)
READERS = {tag: read for tag, _, _, read in CODECS}
