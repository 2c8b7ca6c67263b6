"""Values that leave the process and must come back unchanged, to the same caller, in time."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from django.conf import settings
from django.core import signing
from django.utils.crypto import salted_hmac

LONGEST = 4096


class ShortSigner(signing.TimestampSigner):
    """128 bits of the signature and some: models repeat every character."""

    def signature(self, value: str | bytes, key: str | bytes | None = None) -> str:
        return super().signature(value, key)[:22]


def seal(value: str, *, purpose: str, bound_to: str) -> str:
    """An opaque token of `value`. It is signed and not secret."""
    raw = base64.urlsafe_b64encode(value.encode()).decode().rstrip("=")
    return ShortSigner(salt=salt_of(purpose, bound_to)).sign(raw)


def unseal(
    token: str,
    *,
    purpose: str,
    bound_to: str,
    max_age: int,
    longest: int = LONGEST,
) -> str | None:
    """The value, or None for a token that is forged, foreign, damaged or too old."""
    if len(token) > longest or not token.isascii():
        return None
    try:
        signer = ShortSigner(salt=salt_of(purpose, bound_to))
        raw = signer.unsign(token, max_age=max_age)
        return base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4)).decode()
    except (signing.BadSignature, ValueError):
        return None


def keyed_digests(value: str, *, purpose: str, bound_to: str) -> list[bytes]:
    """For tokens that have to be short: by the secret key, and by those that it was before."""
    salt = salt_of(purpose, bound_to)
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return [salted_hmac(salt, value, secret=key, algorithm="sha256").digest() for key in keys]


def digest_of(text: str) -> str:
    """What stands for a text of any characters and any length."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def digest_of_json(*parts: Any) -> str:
    """The same of data: equal for equal members in any order."""
    return digest_of(json.dumps(parts, sort_keys=True, default=str))


def salt_of(purpose: str, bound_to: str) -> str:
    return f"mcp_django.{purpose}:{digest_of(bound_to)}"
