"""Pages of definitions. The transport of the cursor (signing, binding) is not decided here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def page_after(
    items: Sequence[Item], last: str | None, *, size: int, key: Callable[[Item], str]
) -> tuple[Sequence[Item], str | None]:
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
