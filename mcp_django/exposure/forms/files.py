"""A file in the arguments of a call: a name and its bytes, or the address of an upload."""

from __future__ import annotations

import base64
import binascii
from mimetypes import guess_type
from typing import Any

from django.core.exceptions import SuspiciousFileOperation
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils.text import get_valid_filename

from mcp_django.conf import get_config
from mcp_django.exposure.forms.schemas import InvalidValue
from mcp_django.models.uploads import LONGEST_NAME, SCHEME, Upload

FORM = '{"filename": "note.txt", "data": "aGVsbG8="} with the bytes as base64'
UPLOADED = (
    f'"{SCHEME}..." of a file that the person put into the admin, under '
    f"{str(Upload._meta.verbose_name_plural).capitalize()}"
)
NO_NAME = "This is not a name for a file. Use letters, digits and dots."


def file_of(value: Any, *, user: Any) -> SimpleUploadedFile:
    """The file that an argument holds or names. Raises InvalidValue for anything else, in the
    same words for an upload that is missing and for one of somebody else.
    """
    if isinstance(value, str) and value.startswith(SCHEME):
        found = upload_of(value, user=user)
        if found is None:
            raise InvalidValue(
                "There is no such file, or it has expired. The person can put it into the admin "
                "again, and say its new address."
            )
        return named_file(found.filename, bytes(found.data))
    if not isinstance(value, dict) or value.keys() != {"filename", "data"}:
        raise InvalidValue(f"A file is {FORM}, or {UPLOADED}.")
    name, data = value["filename"], value["data"]
    if not isinstance(name, str) or not isinstance(data, str):
        raise InvalidValue(f"A file is {FORM}, or {UPLOADED}.")
    return named_file(name, decoded(data))


def upload_of(address: str, *, user: Any) -> Upload | None:
    reference = address.removeprefix(SCHEME)
    if "\x00" in reference:  # no database takes it
        return None
    return Upload.usable(user).filter(reference=reference).first()


def decoded(data: str) -> bytes:
    most = get_config().max_file
    too_large = f"The file is larger than {most} bytes. Take {UPLOADED}."
    if len(data) // 4 * 3 > most + 2:
        raise InvalidValue(too_large)
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidValue(f"The data are not base64. A file is {FORM}.") from None
    if len(content) > most:
        raise InvalidValue(too_large)
    return content


def named_file(name: str, content: bytes) -> SimpleUploadedFile:
    """A file with the last part of a name. Raises InvalidValue where no storage takes it."""
    # Of a path only the last part counts, whatever system it comes from.
    last = name.replace("\\", "/").rpartition("/")[2]
    if not last.isprintable():
        raise InvalidValue(NO_NAME)
    if len(last.encode()) > LONGEST_NAME:
        raise InvalidValue(f"The name of the file is too long: at most {LONGEST_NAME} bytes.")
    try:
        # As the storage will: nothing may be left of a name.
        get_valid_filename(last)
        return SimpleUploadedFile(last, content, guess_type(last)[0] or "application/octet-stream")
    except SuspiciousFileOperation:
        raise InvalidValue(NO_NAME) from None
