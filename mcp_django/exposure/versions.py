"""Versions of records, so that nobody overwrites what somebody else has changed meanwhile."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from django.conf import settings
from django.db import connections
from django.db.models import F, Model, QuerySet
from django.utils.crypto import constant_time_compare
from django.utils.encoding import force_bytes

from mcp_django.exceptions import ToolError
from mcp_django.exposure.dry_run_state import current
from mcp_django.exposure.locks import contended
from mcp_django.exposure.paths import key_parts
from mcp_django.exposure.serializers import as_text

#: Bytes of a version: as many as nobody hits by chance.
SIZE = 9


def version_of(obj: Model) -> str:
    """The version of a row that was read from the database: another one after any change.

    All columns count, those that a caller may not see, too. With the key of the site in it,
    nobody can find out by trying what is in them.
    """
    columns = [[field.attname, written(field, obj)] for field in obj._meta.concrete_fields]
    text = json.dumps([obj._meta.label_lower, columns], default=as_text)
    return hashlib.blake2b(text.encode(), digest_size=SIZE, key=site_key()).hexdigest()


def written(field: Any, obj: Model) -> Any:
    try:
        return field.value_to_string(obj)
    except Exception:  # a class of the site's own that cannot show every value
        return as_text(field.value_from_object(obj))


def site_key() -> bytes:
    # A key of blake2b has 64 bytes at most.
    return hashlib.sha256(b"mcp_django.version:" + force_bytes(settings.SECRET_KEY)).digest()


def lock(model: type[Model], pk: Any, *, using: str) -> Model | None:
    """The row as it is now, which nobody else changes until this transaction ends, or None.

    Call it first in the transaction, and show nothing of the row to a caller before it is known
    that they may see it. Raises ToolError where others hold the row for too long.
    """
    # No manager: a join to what may be missing cannot be locked, nor can DISTINCT.
    rows: QuerySet[Any] = QuerySet(model, using=using).filter(pk=pk)
    key = key_parts(model)[0].attname
    with contended():
        if not connections[using].features.has_select_for_update and current.get() is None:
            # SQLite: whoever has written first is the only one who may until the end. What is
            # taken back anyway needs no such thing, and would be seen to change every record.
            rows.update(**{key: F(key)})
        return rows.select_for_update().first()


def check_version(obj: Model, expected: str) -> None:
    """Raise ToolError unless the row that `lock` gave has still the version that was read."""
    current = version_of(obj)
    if not constant_time_compare(current, expected):
        raise ToolError(
            "This record was changed after you read it. Nothing was changed by this call. Read "
            f"the record again; its version is now {current}."
        )
