"""What was shown before a change is made, signed, so that only what was shown can be done."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn

from django.db import IntegrityError, router, transaction

from mcp_django.exceptions import ToolError
from mcp_django.exposure.permissions import Rights
from mcp_django.models import SpentConfirmation
from mcp_django.signing import seal, unseal

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


def spend(secret: str, *, expires_at: datetime) -> bool:
    """Whether this is the first use of the secret, as far as the current transaction goes."""
    alias = router.db_for_write(SpentConfirmation)
    try:
        # Whoever inserts second waits for the first to commit or to roll back.
        with transaction.atomic(using=alias):
            SpentConfirmation.objects.using(alias).create(
                digest=hashlib.sha256(secret.encode()).hexdigest(), expires_at=expires_at
            )
    except IntegrityError:
        return False
    return True


def digest_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """Of the call: the same for the same arguments in any order, with and without a token."""
    asked = {name: value for name, value in arguments.items() if name != ARGUMENT}
    text = json.dumps([tool, asked], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def refuse(tool: str, reason: str) -> NoReturn:
    raise ToolError(
        f"{reason} Nothing was changed. Call {tool} again without `{ARGUMENT}`: "
        "it shows what would happen and gives a new one."
    )
