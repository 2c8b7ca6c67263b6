"""What may stand beside a record: links to its files, and when it was last changed."""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from django.core.exceptions import SuspiciousOperation
from django.core.files.storage import FileSystemStorage
from django.db.models import FileField

from mcp_django.exposure.guard import RETURN
from mcp_django.exposure.reach import reach_of
from mcp_django.exposure.serializers import as_text
from mcp_django.exposure.uris import file_uri
from mcp_django.protocol.content import Annotations, ResourceLink

if TYPE_CHECKING:
    from mcp_django.exposure.options import ModelExposure
    from mcp_django.exposure.permissions import Rights


def file_fields(rights: Rights, exposure: ModelExposure) -> list[FileField]:
    """The fields of the model itself that name a file and that this caller can see."""
    paths = reach_of(rights, exposure).paths[RETURN]
    return [path.field for path in paths if not path.hops and isinstance(path.field, FileField)]


def file_links(
    rights: Rights, exposure: ModelExposure, pk: Any, record: Mapping[str, Any]
) -> list[ResourceLink]:
    """A link to each file that a record shows."""
    found = []
    for field in file_fields(rights, exposure):
        stored = record.get(field.name)
        if stored:
            found.append(
                ResourceLink(
                    uri=file_uri(exposure.label, pk, field.name),
                    name=PurePosixPath(stored).name,
                    title=as_text(field.verbose_name),
                    mime_type=mimetypes.guess_type(stored)[0] or "application/octet-stream",
                    size=size_of(field, stored),
                    annotations=changes_of(exposure, record),
                )
            )
    return found


def size_of(field: FileField, stored: str) -> int | None:
    """The size of a file where asking costs no request to another machine."""
    if not isinstance(field.storage, FileSystemStorage):
        return None
    try:
        return field.storage.size(stored)
    except (OSError, SuspiciousOperation):
        return None


def changes_of(exposure: ModelExposure, record: Mapping[str, Any]) -> Annotations | None:
    """When the record was last changed, where the exposure names a field that tells."""
    changed = record.get(exposure.modified_field) if exposure.modified_field else None
    return Annotations(last_modified=changed) if isinstance(changed, str) else None
