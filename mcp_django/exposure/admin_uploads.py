"""Files in the arguments of a call: their names and their bytes, as base64."""

from __future__ import annotations

import base64
import binascii
from mimetypes import guess_type
from typing import Any

from django.core.exceptions import SuspiciousFileOperation
from django.core.files.uploadedfile import SimpleUploadedFile

from mcp_django.conf import get_config
from mcp_django.exposure.admin_parsing import Unfit

FORM = '{"filename": "note.txt", "data": "aGVsbG8="} with the bytes as base64'


def uploaded(value: Any) -> SimpleUploadedFile:
    """Raises Unfit for anything but a name and base64 within the cap."""
    if not isinstance(value, dict) or value.keys() != {"filename", "data"}:
        raise Unfit(f"A file is {FORM}.")
    name, data = value["filename"], value["data"]
    if not isinstance(name, str) or not isinstance(data, str):
        raise Unfit(f"A file is {FORM}.")
    most = get_config().max_file
    if len(data) // 4 * 3 > most + 2:
        raise Unfit(f"The file is larger than {most} bytes.")
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise Unfit(f"The data are not base64. A file is {FORM}.") from None
    if len(content) > most:
        raise Unfit(f"The file is larger than {most} bytes.")
    # Of a path only the last part counts, whatever system it comes from.
    last = name.replace("\\", "/").rpartition("/")[2]
    if not last.isprintable():
        raise Unfit("This is not a name for a file.")
    try:
        return SimpleUploadedFile(last, content, guess_type(last)[0] or "application/octet-stream")
    except SuspiciousFileOperation:
        raise Unfit("This is not a name for a file.") from None


def is_taken_away(bound: Any) -> tuple[str, str]:
    """What is posted to clear a file."""
    field = bound.field
    checkbox = getattr(field.widget, "clear_checkbox_name", None)
    if field.required or checkbox is None:
        raise Unfit(f"This file cannot be taken away. To replace it: {FORM}.")
    return checkbox(bound.html_name), "on"
