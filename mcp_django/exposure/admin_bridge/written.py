"""Which models a page of the admin has written to, although the action has not ended yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from django.apps import apps
from django.db import connections
from django.db.models import Model

from mcp_django.exposure.admin_bridge.dry_runs import (
    WRITING_VERBS,
    as_text,
    first_words,
    unquoted,
)
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.related import shows_records


class WrittenModels:
    """Collects what the SQL of pages writes: signals tell nothing of `QuerySet.update()`."""

    def __init__(self) -> None:
        self.tables: set[str] = set()
        #: By the page that is being sent.
        self._sent: set[str] = set()

    @contextmanager
    def recording(self, aliases: Iterable[str]) -> Iterator[None]:
        """Record what a page writes. If it fails, its error says what became of that."""
        self._sent = set()
        with ExitStack() as stack:
            for alias in aliases:
                stack.enter_context(connections[alias].execute_wrapper(self.execute))
            yield
        self.tables |= self._sent

    def execute(self, execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001
        """A wrapper as `connection.execute_wrapper` takes it."""
        answer = execute(sql, params, many, context)
        verb, *names = first_words(as_text(sql))
        # INSERT has no number of rows on SQLite before those of RETURNING are fetched.
        if verb in WRITING_VERBS and (verb == "INSERT" or context["cursor"].rowcount):
            self._sent |= {unquoted(name) for name in names}
        return answer

    def __bool__(self) -> bool:
        return bool(self.tables)

    def labels(self, rights: Rights) -> list[str]:
        """The models among them that this caller may see."""
        models: list[type[Model]] = [
            one for one in apps.get_models() if one._meta.db_table in self.tables
        ]
        return sorted(one._meta.label_lower for one in models if shows_records(rights, one))
