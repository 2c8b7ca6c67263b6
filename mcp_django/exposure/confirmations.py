"""What was shown before a change is made, signed, so that only what was shown can be done."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import IntegrityError, router, transaction
from django.utils.timezone import make_naive

from mcp_django.exceptions import ToolError
from mcp_django.signing import seal, unseal

if TYPE_CHECKING:
    from mcp_django.exposure.permissions import Rights

#: The argument of a tool that takes the token.
ARGUMENT = "confirmation"
#: Seconds that a person may think about it.
LIFETIME = 600
PURPOSE = "confirmation"


def issue(rights: Rights, *, tool: str, arguments: Mapping[str, Any], digest: str) -> str:
    """A token for this caller, this call and what was shown, of which `digest` is the digest."""
    expires = int(time.time()) + LIFETIME
    # The nonce makes one token of each preview: whoever looks twice may act twice.
    made = [secrets.token_urlsafe(16), expires, digest_of(tool, arguments), digest]
    return seal(json.dumps(made), purpose=PURPOSE, bound_to=rights.identity)


def redeem(
    rights: Rights, token: object, *, tool: str, arguments: Mapping[str, Any], digest: str
) -> None:
    """Spend a token: it is good once, for what it was issued for. Raises ToolError, which says
    how to get another.

    Call it in the transaction of the change: when that rolls back, the token is unspent again.
    """
    # Whatever a model puts there, `true` among it.
    text = token if isinstance(token, str) else ""
    made = unseal(text, purpose=PURPOSE, bound_to=rights.identity)
    if made is None:
        refuse(tool, "This confirmation is not valid.")
    nonce, expires, call, shown = json.loads(made)
    if expires <= time.time():
        refuse(tool, "This confirmation is too old.")
    if call != digest_of(tool, arguments):
        refuse(tool, "This confirmation was given for another call.")
    if shown != digest:
        refuse(tool, "What this call would do is no longer what was shown.")
    if not spend(nonce, expires_at=datetime.fromtimestamp(expires, tz=UTC)):
        refuse(tool, "This confirmation was used already.")


def shown_by(rights: Rights, token: object) -> str | None:
    """The digest that a token of this caller holds, however old it is. None: it is no token."""
    text = token if isinstance(token, str) else ""
    made = unseal(text, purpose=PURPOSE, bound_to=rights.identity)
    return None if made is None else str(json.loads(made)[3])


def spend(secret: str, *, expires_at: datetime) -> bool:
    """Whether this is the first use of the secret, as far as the current transaction goes."""
    # Not at the top: sites may declare tools before models can be imported.
    from mcp_django.models import SpentConfirmation

    alias = router.db_for_write(SpentConfirmation)
    if not settings.USE_TZ:
        expires_at = make_naive(expires_at)
    row = SpentConfirmation(digest=hash_of(secret), expires_at=expires_at)
    try:
        # Whoever inserts second waits for the first to commit or to roll back.
        with transaction.atomic(using=alias):
            row.save(using=alias, force_insert=True)
    except IntegrityError:
        return False
    return True


def unspend(secret: str) -> None:
    """Take back `spend` where no transaction does it."""
    from mcp_django.models import SpentConfirmation

    alias = router.db_for_write(SpentConfirmation)
    SpentConfirmation.objects.using(alias).filter(digest=hash_of(secret)).delete()


def hash_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def digest_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """Of the call: the same for the same arguments in any order, with and without a token."""
    text = json.dumps([tool, without_token(arguments)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def refuse(tool: str, reason: str) -> NoReturn:
    raise ToolError(
        f"{reason} Nothing was changed. Call {tool} again without `{ARGUMENT}`: "
        "it shows what would happen and gives a new one."
    )


def with_token(schema: Mapping[str, Any], *, tool: str) -> dict[str, Any]:
    """The schema of a tool that may come back with a token, and then takes it."""
    properties = schema.get("properties", {})
    if ARGUMENT in properties:
        raise ImproperlyConfigured(
            f"The tool {tool!r} asks, so its argument {ARGUMENT!r} is ours. "
            "Give yours another name."
        )
    token = {"type": "string", "description": "Token from the answer that asked for it."}
    return {**schema, "properties": {**properties, ARGUMENT: token}}


def without_token(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name != ARGUMENT}
