"""After the commit, once, and never in the way of whoever commits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from django.db import transaction

from mcp_django.subscriptions.events import Change
from mcp_django.subscriptions.facts import Fact
from mcp_django.subscriptions.outbox import publish

#: Facts that one transaction keeps apart; what is more says "any of this model".
MOST_FACTS = 1000

logger = logging.getLogger("mcp_django.subscriptions")


class Announcement:
    """What a commit sets free. Facts that share their fate may share one."""

    def __init__(self, tell: Callable[[Iterable[Fact]], None], fact: Fact) -> None:
        self._tell = tell
        self._facts = {fact: None}

    def __call__(self) -> None:
        # Django names what failed by its __qualname__, which an object has not.
        try:
            self._tell(self._facts)
        except Exception:
            logger.exception("Changes were not announced.")

    def add(self, fact: Fact) -> None:
        self._facts[fact] = None
        if len(self._facts) > MOST_FACTS:
            whole = (replace(one, records=(), is_whole=True) for one in self._facts)
            self._facts = dict.fromkeys(whole)


def tell_after_commit(
    tell: Callable[[Iterable[Fact]], None], fact: Fact, *, using: str | None
) -> None:
    """Tell of a fact if the transaction, and every savepoint that it stands in, holds."""
    connection = transaction.get_connection(using)
    waiting = connection.run_on_commit
    if len(waiting) > MOST_FACTS:
        # An import of a million rows must not hang a million functions on its commit.
        savepoints, last, *_ = waiting[-1]
        if isinstance(last, Announcement) and savepoints == set(connection.savepoint_ids):
            last.add(fact)
            return
    run_after_commit(Announcement(tell, fact), using=using)


def publish_after_commit(changes: Iterable[Change], *, using: str | None) -> None:
    some = tuple(changes)

    def publish_some() -> None:
        publish(some)

    run_after_commit(publish_some, using=using)


def run_after_commit(function: Callable[[], None], *, using: str | None) -> None:
    try:
        transaction.on_commit(function, using=using, robust=True)
    except transaction.TransactionManagementError:
        # The site commits by hand, so nobody will say when. Better early than never.
        function()
