"""Pages of definitions: the same cursor for every list method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.protocol.errors import INVALID_PARAMS, ProtocolError
from mcp_django.protocol.results import Definition, ListResult
from mcp_django.signing import seal, unseal

#: Seconds that a cursor is good for.
LIFETIME = 3600

Found = TypeVar("Found", bound=Definition)


def page(
    context: CallContext,
    definitions: Sequence[Found],
    *,
    member: str,
    cursor: str | None,
    key: Callable[[Found], str],
) -> ListResult:
    """One page of `definitions`. Raises ProtocolError for a cursor that is not this caller's."""
    last = None
    if cursor is not None:
        last = unseal(
            cursor, purpose=f"list.{member}", bound_to=context.principal.key, max_age=LIFETIME
        )
        if last is None:
            raise ProtocolError(
                INVALID_PARAMS, "This cursor is not valid. Call again without a cursor."
            )
    shown, following = page_after(
        sorted(definitions, key=key), last, size=get_config().list_page_size, key=key
    )
    if following is not None:
        following = seal(following, purpose=f"list.{member}", bound_to=context.principal.key)
    return ListResult(key=member, definitions=shown, next_cursor=following)


def page_after(
    items: Sequence[Found], last: str | None, *, size: int, key: Callable[[Found], str]
) -> tuple[Sequence[Found], str | None]:
    """The items behind the one whose key was `last`, and the key to go on from: None at the end.

    Positions are keys and not numbers: a list that changes between two pages neither repeats nor
    skips what stayed. `items` must be in the order of `key`.
    """
    if last is not None:
        items = [item for item in items if key(item) > last]
    if len(items) <= size:
        return items, None
    page = items[:size]
    return page, key(page[-1])
