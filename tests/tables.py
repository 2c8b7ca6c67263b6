"""What tests do to tables, and undo."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection
from django.db.models import Model


@contextmanager
def without_table(model: type[Model]) -> Iterator[None]:
    """The table of a model is not there for a while, and is the same afterwards."""
    name = model._meta.db_table
    with connection.schema_editor() as editor:
        editor.alter_db_table(model, name, f"{name}_aside")
    try:
        yield
    finally:
        with connection.schema_editor() as editor:
            editor.alter_db_table(model, f"{name}_aside", name)
