"""The content of a FileField as a resource."""

from __future__ import annotations

import mimetypes
from typing import Any

import msgspec
from django.core.exceptions import FieldDoesNotExist, SuspiciousOperation
from django.db.models import FileField

from mcp_django.conf import get_config
from mcp_django.exceptions import NotFound, QueryError
from mcp_django.exposure.find import check_shows_records, get_record
from mcp_django.exposure.guard import RETURN
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.reach import reach_of
from mcp_django.protocol.content import ResourceContents


def read_file(
    rights: Rights, exposure: ModelExposure, key: Any, name: str, *, uri: str
) -> ResourceContents:
    """The file that a field of a record names.

    Raises NotFound where the record, the field or the file does not exist for this caller, and
    QueryError for a file that is too large to be sent.
    """
    check_shows_records(exposure)
    field = file_field(exposure, name)
    try:
        stored = msgspec.json.decode(get_record(rights, exposure, key, fields=[name]))[name]
    except QueryError:  # not a field of this caller's
        raise no_file() from None
    if not stored:
        raise no_file()
    try:
        # base64 is a third longer than what it carries.
        longest = get_config().max_response * 3 // 4
        with field.storage.open(stored) as file:
            content = file.read(longest + 1)
    except (OSError, SuspiciousOperation):
        raise no_file() from None
    if len(content) > longest:
        raise QueryError(f"This file is longer than {longest} bytes and cannot be sent.")
    kind = mimetypes.guess_type(stored)[0] or "application/octet-stream"
    if kind.startswith("text/"):
        try:
            return ResourceContents(uri=uri, mime_type=kind, text=content.decode())
        except UnicodeDecodeError:
            pass  # it says that it is text and is in another encoding
    return ResourceContents(uri=uri, mime_type=kind, blob=content)


def file_field(exposure: ModelExposure, name: str) -> FileField:
    try:
        field = exposure.model._meta.get_field(name)
    except FieldDoesNotExist:
        raise no_file() from None
    if not isinstance(field, FileField):
        raise no_file()
    return field


def has_files(rights: Rights, exposure: ModelExposure) -> bool:
    """Whether this caller can see a field that names a file."""
    if exposure.aggregates_only:
        return False
    paths = reach_of(rights, exposure).paths[RETURN]
    return any(not path.hops and isinstance(path.field, FileField) for path in paths)


def no_file() -> NotFound:
    return NotFound("There is no such file.")
