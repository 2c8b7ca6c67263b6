"""Confirmations: signed, used once, and good only for what a person was asked about."""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from struct import Struct
from typing import TYPE_CHECKING, Any, NoReturn

from django.conf import settings
from django.db import IntegrityError, router, transaction
from django.utils.timezone import make_naive

from mcp_django.exceptions import ToolError
from mcp_django.exposure.query.arguments import CONFIRMATION
from mcp_django.protocol.results import ToolDefinition
from mcp_django.signing import digest_of, keyed_digests

if TYPE_CHECKING:
    from mcp_django.exposure.permissions import Rights

#: The argument of a tool that takes the confirmation, and the member of the answer that gives it.
ARGUMENT = "confirmation"
NEXT = (
    "Nothing was done yet. Ask the person: question, word for word. Only if they agree, call "
    "again with this confirmation. All other arguments stay the same."
)
#: Seconds that a person may think about it.
LIFETIME = 600
PURPOSE = "confirmation"
#: Of 16 bytes, since a model has to repeat them: when it expires, what makes two of them
#: different, and the beginning of a keyed digest of what was approved.
LAYOUT = Struct(">I2s10s")
LENGTH = 22


def issue(rights: Rights, approved: str) -> str:
    """Return a confirmation for this caller and for what `approved` is the digest of."""
    expires = int(time.time()) + LIFETIME
    # Each question gives another confirmation: who agrees twice may act twice.
    nonce = secrets.token_bytes(2)
    return short_text(LAYOUT.pack(expires, nonce, tags(rights, expires, nonce, approved)[0]))


def redeem(rights: Rights, confirmation: object, approved: str, *, tool: str) -> None:
    """Use a confirmation up. Raises ToolError for one that is not good, or not for this.

    Call it in the transaction of the change: when that rolls back, it may be used again.
    """

    def refuse(reason: str) -> NoReturn:
        raise ToolError(
            f"This confirmation {reason}. Nothing was done. Call {tool} again without "
            f"`{ARGUMENT}`: the answer has the question and a new one."
        )

    raw = b""
    # Models send anything here, such as `true`.
    if isinstance(confirmation, str) and len(confirmation) == LENGTH:
        with suppress(ValueError):
            raw = base64.urlsafe_b64decode(confirmation + "==")
    # It is used up under its text, so it may have one spelling only.
    if not raw or short_text(raw) != confirmation:
        refuse("is not valid")
    expires, nonce, tag = LAYOUT.unpack(raw)
    expected = tags(rights, expires, nonce, approved)
    if not any(secrets.compare_digest(tag, one) for one in expected):
        refuse("is not valid for this call, or the call would do something else by now")
    if expires <= time.time():
        refuse("is too old")
    if not spend(confirmation, expires_at=datetime.fromtimestamp(expires, tz=UTC)):
        refuse("was used already")


def tags(rights: Rights, expires: int, nonce: bytes, approved: str) -> list[bytes]:
    """By the secret key first, then by its fallbacks."""
    value = f"{expires} {nonce.hex()} {approved}"
    digests = keyed_digests(value, purpose=PURPOSE, bound_to=rights.principal.key)
    return [digest[:10] for digest in digests]


def short_text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


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


#: Members of a schema that count for all schemas within it.
OUTERMOST = frozenset({"$schema", "$id", "$defs", "definitions"})


def with_confirmation(definition: ToolDefinition) -> ToolDefinition:
    """Return the definition of a tool that may answer with a question before it runs."""
    text = {"type": "string"}
    schema, output = definition.input_schema, definition.output_schema
    properties = schema.get("properties", {})
    if ARGUMENT in properties:
        return definition
    token = {**text, "description": CONFIRMATION}
    schema = {**schema, "properties": {**properties, ARGUMENT: token}}
    if output is not None:
        names = ["question", ARGUMENT, "next"]
        asks = {"type": "object", "properties": dict.fromkeys(names, text), "required": names}
        done = {name: value for name, value in output.items() if name not in OUTERMOST}
        around = {name: value for name, value in output.items() if name in OUTERMOST}
        output = {**around, "type": "object", "anyOf": [done, asks]}
    return replace(definition, input_schema=schema, output_schema=output)


def without_token(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name != ARGUMENT}
