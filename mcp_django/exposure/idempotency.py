"""Calls that may be sent twice and are done once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from django.db import IntegrityError, router, transaction

from mcp_django.exceptions import ToolError
from mcp_django.exposure.confirmations import digest_of
from mcp_django.exposure.locks import contended
from mcp_django.exposure.serializers import encoder
from mcp_django.models import IdempotentAnswer
from mcp_django.principal import Principal

#: The argument of a tool that takes the key.
ARGUMENT = "idempotency_key"
LONGEST_KEY = 64


def once(
    principal: Principal,
    *,
    tool: str,
    key: str,
    arguments: Mapping[str, Any],
    work: Callable[[], Any],
) -> Any:
    """What `work` answers, as JSON has it; for a key that was used already, what it answered then.

    The key is stored in the transaction of the work, so that work that raises leaves none and may
    be tried again. A call that comes while another one works waits for it. Raises ToolError for
    a bad key, for one that was used with other arguments, and where others were in the way for
    too long.

    `work` must change nothing in other databases than that of IdempotentAnswer if it is not to be
    done twice after a crash between two commits.
    """
    check_key(key)
    asked = {name: value for name, value in arguments.items() if name != ARGUMENT}
    promise = {"principal": owner_of(principal), "tool": tool, "key": key}
    digest = digest_of(tool, asked)
    alias = router.db_for_write(IdempotentAnswer)
    answers = IdempotentAnswer.objects.using(alias)
    with contended(), transaction.atomic(using=alias):
        try:
            # Whoever inserts second waits for the first to commit or to roll back. In a savepoint,
            # so that an IntegrityError of the work is not taken for this one.
            with transaction.atomic(using=alias):
                row = answers.create(**promise, digest=digest, answer=[])
        except IntegrityError:
            # With a lock, or a transaction that has read before does not see it on MySQL.
            found = answers.select_for_update().filter(**promise).first()
            return answer_of(found, digest)
        answer = msgspec.json.decode(encoder.encode(work()))
        # In a list: null as such is no JSON to a column of Django.
        row.answer = [answer]
        row.save(using=alias, update_fields=["answer"])
        return answer


def check_key(key: object) -> None:
    is_text = isinstance(key, str) and 0 < len(key) <= LONGEST_KEY
    if not (is_text and str(key).isascii() and str(key).isprintable()):
        raise ToolError(
            f"{ARGUMENT} must be a text of 1 to {LONGEST_KEY} ASCII characters, such as a UUID of "
            "your own."
        )


def owner_of(principal: Principal) -> str:
    """Of a length that the column holds, whatever the client is called."""
    return f"{principal.server}:{hashlib.sha256(principal.key.encode()).hexdigest()}"


def answer_of(row: IdempotentAnswer | None, digest: str) -> Any:
    if row is None:  # pruned at this moment
        raise ToolError("This call was answered long ago. Send it again.")
    if row.digest != digest:
        raise ToolError(
            f"This {ARGUMENT} was used with other arguments already. Nothing was changed. Use a "
            "new key for a new call, and the same arguments to repeat an old one."
        )
    (answer,) = row.answer
    return answer
