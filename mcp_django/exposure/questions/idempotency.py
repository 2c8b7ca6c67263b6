"""Idempotency keys: calls that may be sent twice and are done once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.db import IntegrityError, router, transaction

from mcp_django.exceptions import ToolError
from mcp_django.exposure.decisions import rights_digest
from mcp_django.exposure.limits import contended
from mcp_django.exposure.query.serializers import encoder
from mcp_django.models import IdempotentAnswer, SpentConfirmation
from mcp_django.principal import Principal
from mcp_django.signing import digest_of, digest_of_json
from mcp_django.stores.transactions import delete_in_chunks

# How long answers are kept.

#: For this long a repeated call gets the answer of the first.
KEPT = timedelta(hours=24)


def prune_promises(now: datetime) -> int:
    """Delete the rows that cannot be used any more at `now`. Returns their number."""
    answers = IdempotentAnswer.objects.using(router.db_for_write(IdempotentAnswer))
    spent = SpentConfirmation.objects.using(router.db_for_write(SpentConfirmation))
    return delete_in_chunks(answers.filter(created_at__lt=now - KEPT)) + delete_in_chunks(
        spent.filter(expires_at__lt=now)
    )


#: The argument of a tool that takes the key.
ARGUMENT = "idempotency_key"
LONGEST_KEY = 64
NOT_GIVEN_AGAIN = (
    "This call was done before, and was not done again. Its answer is not available any more: "
    "what you may see, or the record itself, has changed since. Look for the record with "
    "find_records."
)


def once(
    principal: Principal,
    *,
    tool: str,
    key: object,
    arguments: Mapping[str, Any],
    work: Callable[[], Any],
    is_readable: Callable[[Any], bool] = lambda answer: True,
) -> Any:
    """The answer of `work`, decoded from JSON; for a key that was used already, the first answer.

    The old answer is given again only to a caller who would get it now: under the same rights and
    decisions of staff, and if `is_readable` agrees. Otherwise a ToolError says that the work was
    done; it is never done twice.

    The key is stored in the transaction of the work, so that work that raises leaves none and may
    be tried again. A call that comes while another one works waits for it. Raises ToolError for
    a bad key, for one that was used with other arguments, and where others were in the way for
    too long.

    `work` must change nothing in other databases than that of IdempotentAnswer if it is not to be
    done twice after a crash between two commits.
    """
    is_text = isinstance(key, str) and 0 < len(key) <= LONGEST_KEY
    if not (is_text and str(key).isascii() and str(key).isprintable()):
        raise ToolError(
            f"{ARGUMENT} must be a text of 1 to {LONGEST_KEY} ASCII characters, such as a UUID of "
            "your own."
        )
    # A digest, since the column does not hold every client's key.
    owner = f"{principal.server}:{digest_of(principal.key)}"
    promise = {"principal": owner, "tool": tool, "key": key}
    digest = digest_of_json(tool, arguments)
    alias = router.db_for_write(IdempotentAnswer)
    answers = IdempotentAnswer.objects.using(alias)
    rights = rights_digest(principal)
    with contended(), transaction.atomic(using=alias):
        try:
            # A second insert waits for the first to commit or to roll back. In a savepoint, so
            # that an IntegrityError of the work is not mistaken for this one.
            with transaction.atomic(using=alias):
                row = answers.create(**promise, digest=digest, answer={})
        except IntegrityError:
            # With a lock, since a transaction that has read before does not see it on MySQL.
            found = answers.select_for_update().filter(**promise).first()
            answer = answer_of(found, digest, rights=rights)
            if not is_readable(answer):
                raise ToolError(NOT_GIVEN_AGAIN) from None
            return answer
        answer = msgspec.json.decode(encoder.encode(work()))
        row.answer = {"answer": answer, "rights": rights}
        row.save(using=alias, update_fields=["answer"])
        return answer


def answer_of(row: IdempotentAnswer | None, digest: str, *, rights: str) -> Any:
    """What was answered under these rights. Raises ToolError."""
    if row is None:  # pruned at this moment
        raise ToolError("This call was answered long ago. Send it again.")
    if row.digest != digest:
        raise ToolError(
            f"This {ARGUMENT} was used with other arguments already. Nothing was changed. Use a "
            "new key for a new call, and the same arguments to repeat an old one."
        )
    if row.answer["rights"] != rights:
        raise ToolError(NOT_GIVEN_AGAIN)
    return row.answer["answer"]
