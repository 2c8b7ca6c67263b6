"""Values that leave the process and must come back unchanged, to the same caller, in time."""

from __future__ import annotations

import base64
import hashlib

from django.core import signing

LONGEST = 4096


def seal(value: str, *, purpose: str, bound_to: str) -> str:
    """An opaque token of `value`. It is signed and not secret."""
    raw = base64.urlsafe_b64encode(value.encode()).decode().rstrip("=")
    return signing.TimestampSigner(salt=salt_of(purpose, bound_to)).sign(raw)


def unseal(
    token: str,
    *,
    purpose: str,
    bound_to: str,
    max_age: int | None = None,
    longest: int = LONGEST,
) -> str | None:
    """The value, or None for a token that is forged, foreign, damaged or too old.

    Without `max_age` it has any age: the value itself says how long it is good.
    """
    if len(token) > longest or not token.isascii():
        return None
    try:
        signer = signing.TimestampSigner(salt=salt_of(purpose, bound_to))
        raw = signer.unsign(token, max_age=max_age)
        return base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4)).decode()
    except (signing.BadSignature, ValueError):
        return None


def salt_of(purpose: str, bound_to: str) -> str:
    return f"mcp_django.{purpose}:{hashlib.sha256(bound_to.encode()).hexdigest()}"
