"""Confirmations: signed tokens for a change, so that only what was shown can be done."""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from struct import Struct
from typing import TYPE_CHECKING, Any, NoReturn

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import IntegrityError, router, transaction
from django.utils.timezone import make_naive

from mcp_django.exceptions import ToolError
from mcp_django.exposure.functions.arguments import EMPTY
from mcp_django.signing import digest_of, digest_of_json, keyed_digests

if TYPE_CHECKING:
    from mcp_django.exposure.permissions import Rights

#: The argument of a tool that takes the token.
ARGUMENT = "confirmation"
#: Seconds that a person may think about it.
LIFETIME = 600
PURPOSE = "confirmation"
#: Of 16 bytes, since a model has to repeat them: when the token expires, what makes two of them
#: different, and the beginnings of three keyed digests: of caller, call and what was shown.
LAYOUT = Struct(">I2s4s3s3s")
LENGTH = 22


@dataclass(frozen=True, kw_only=True)
class Token:
    """What this caller was issued, however old it is and whatever it is for."""

    rights: Rights
    expires: int
    nonce: bytes
    call: bytes
    shown: bytes

    def is_for(self, tool: str, arguments: Mapping[str, Any]) -> bool:
        return self._has(self.call, f"call {call_digest(tool, arguments)}")

    def shows(self, digest: str) -> bool:
        return self._has(self.shown, f"shown {digest}")

    def _has(self, tag: bytes, part: str) -> bool:
        found = tags(self.rights, self.expires, self.nonce, part)
        return any(secrets.compare_digest(tag, one[: len(tag)]) for one in found)


def tags(rights: Rights, expires: int, nonce: bytes, part: str) -> list[bytes]:
    """By the secret key first, then by its fallbacks."""
    value = f"{expires} {nonce.hex()} {part}"
    return keyed_digests(value, purpose=PURPOSE, bound_to=rights.identity)


def issue(rights: Rights, *, tool: str, arguments: Mapping[str, Any], digest: str) -> str:
    """A token for this caller, this call and what was shown, of which `digest` is the digest."""
    expires = int(time.time()) + LIFETIME
    # The nonce makes each preview give another token: who looks twice may act twice.
    nonce = secrets.token_bytes(2)
    parts = ("", f"call {call_digest(tool, arguments)}", f"shown {digest}")
    signed = [tags(rights, expires, nonce, part)[0] for part in parts]
    return short_text(LAYOUT.pack(expires, nonce, *signed))


def short_text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def read_token(rights: Rights, token: object) -> Token | None:
    """None for whatever this caller was not issued."""
    # Models send anything here, such as `true`.
    if not isinstance(token, str) or len(token) != LENGTH:
        return None
    try:
        raw = base64.urlsafe_b64decode(token + "==")
    except ValueError:
        return None
    # A token is spent under its text, so it may have one spelling only.
    if short_text(raw) != token:
        return None
    expires, nonce, caller, call, shown = LAYOUT.unpack(raw)
    found = Token(rights=rights, expires=expires, nonce=nonce, call=call, shown=shown)
    return found if found._has(caller, "") else None


def redeem(
    rights: Rights, token: object, *, tool: str, arguments: Mapping[str, Any], digest: str
) -> None:
    """Spend a token: it is good once, for what it was issued for. Raises ToolError, which says
    how to get another.

    Call it in the transaction of the change: when that rolls back, the token is unspent again.
    """
    found = read_token(rights, token)
    if found is None:
        refuse(tool, "This confirmation is not valid.")
    if found.expires <= time.time():
        refuse(tool, "This confirmation is too old.")
    if not found.is_for(tool, arguments):
        refuse(tool, "This confirmation was given for another call.")
    if not found.shows(digest):
        refuse(tool, "What this call would do is no longer what was shown.")
    if not spend(str(token), expires_at=datetime.fromtimestamp(found.expires, tz=UTC)):
        refuse(tool, "This confirmation was used already.")


def spend(secret: str, *, expires_at: datetime) -> bool:
    """Whether this is the first use of the secret, as far as the current transaction goes."""
    # Not at the top: sites may declare tools before models can be imported.
    from mcp_django.models import SpentConfirmation

    alias = router.db_for_write(SpentConfirmation)
    if not settings.USE_TZ:
        expires_at = make_naive(expires_at)
    row = SpentConfirmation(digest=digest_of(secret), expires_at=expires_at)
    try:
        # Whoever inserts second waits for the first to commit or to roll back.
        with transaction.atomic(using=alias):
            row.save(using=alias, force_insert=True)
    except IntegrityError:
        return False
    return True


def unspend(secret: str) -> None:
    """Undo `spend` where no transaction does it."""
    from mcp_django.models import SpentConfirmation

    alias = router.db_for_write(SpentConfirmation)
    SpentConfirmation.objects.using(alias).filter(digest=digest_of(secret)).delete()


def call_digest(tool: str, arguments: Mapping[str, Any]) -> str:
    """The same for the same arguments in any order, with and without a token."""
    return digest_of_json(tool, without_token(arguments))


def refuse(tool: str, reason: str) -> NoReturn:
    raise ToolError(
        f"{reason} Nothing was changed. Call {tool} again without `{ARGUMENT}`: "
        "it shows what would happen and gives a new one."
    )


def with_token(schema: Mapping[str, Any], *, tool: str) -> dict[str, Any]:
    """The input schema of a tool that may ask for a token."""
    properties = schema.get("properties", {})
    if ARGUMENT in properties:
        raise ImproperlyConfigured(
            f"The tool {tool!r} asks, so its argument {ARGUMENT!r} is ours. "
            "Give yours another name."
        )
    token = {"type": "string", "description": "Token from the answer that asked for it."}
    return {**schema, "properties": {**properties, ARGUMENT: token}}


def token_in(arguments: Mapping[str, Any]) -> Any:
    """What was sent as a token, or None. Clients that fill in every argument send an empty one."""
    token = arguments.get(ARGUMENT)
    return None if token in EMPTY else token


def without_token(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name != ARGUMENT}
