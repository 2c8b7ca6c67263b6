"""Records as a file that the person opens in the admin: CSV, or XLSX with openpyxl."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.arguments import ExportRecords, FindRecords, or_default
from mcp_django.exposure.query.find import find_records
from mcp_django.exposure.query.serializers import as_text, encoder
from mcp_django.exposure.query.tables import Table
from mcp_django.models import Upload
from mcp_django.protocol.content import TextContent
from mcp_django.protocol.results import ToolResult
from mcp_django.templating.fences import inside_fence

#: Records in one file.
MOST_EXPORTED = 10_000
#: Characters in a cell: more than this no XLSX holds.
LONGEST_CELL = 32_767
FORMATS = ("csv", "xlsx")
#: A text that begins so is a formula to a program that opens the file.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export_records(context: CallContext, rights: Rights, given: ExportRecords) -> ToolResult:
    """Write the records that find_records finds into a file of the user, and answer with the
    address where this user alone opens it. Raises ToolError for a file that is too large.
    """
    kind = or_default(given.format, "csv")
    if kind not in FORMATS:
        raise ToolError(f"format: Use one of: {', '.join(FORMATS)}.")
    exposure = rights.exposure(given.model)
    members = {**msgspec.structs.asdict(given), "limit": get_config().max_page_size}
    members.pop("format")
    columns: Sequence[str] = ()
    rows: list[list[Any]] = []
    cursor: Any = UNSET
    most, read = get_config().max_upload, 0
    # A workbook is compressed, to a third or less.
    while cursor is not None and len(rows) < MOST_EXPORTED and read <= 4 * most:
        asked = FindRecords(**members, cursor=cursor)
        page = find_records(rights, exposure, asked, whole=True)
        columns, cursor = page.table.columns, page.next_cursor
        read += len(page.encoded)
        rows += cells_of(page.table, rights.mark)
        context.progress(len(rows))
    is_cut = cursor is not None or len(rows) > MOST_EXPORTED
    del rows[MOST_EXPORTED:]
    too_large = ToolError(
        f"The file would be larger than {most} bytes. Name fewer fields, or narrow the records "
        "with filters."
    )
    if read > 4 * most:
        raise too_large
    content = (as_xlsx if kind == "xlsx" else as_csv)(columns, rows)
    if len(content) > most:
        raise too_large
    filename = f"{exposure.model._meta.model_name}.{kind}"
    user, size = rights.principal.user, len(content)
    upload = Upload.objects.create(user=user, filename=filename, data=content, size=size)
    Upload.drop_oldest(user)
    # The admin is optional; without it this tool does not exist.
    from mcp_django.exposure.admin_bridge.requests import page_address

    address = page_address(rights.admin_of(Upload), "download", upload.pk)
    answer = {"file": address, "records": len(rows), "bytes": size}
    if is_cut:
        answer["note"] = f"These are the first {MOST_EXPORTED}."
    # No link as a block: some clients fail on one that is no resource of the server.
    text = TextContent(msgspec.json.encode(answer).decode())
    return ToolResult(content=[text], records=len(rows))


def cells_of(table: Table, mark: str) -> Iterator[list[Any]]:
    """Yield rows of numbers and texts: of a foreign key its label, of a list its JSON, and of a
    text in a fence what is inside.
    """
    for row in table.rows:
        cells = []
        for name, value in zip(table.columns, row, strict=True):
            if name in table.labels and value is not None:
                value = table.labels[name].texts.get(str(value), value)
            if isinstance(value, dict | list):
                value = encoder.encode(value).decode()
            if value is not None and not isinstance(value, int | float):
                text = as_text(value)
                text = inside_fence(text, mark) or text
                value = f"'{text}" if text.startswith(FORMULA) else text
            cells.append(value)
        yield cells


def as_csv(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    file = io.StringIO()
    csv.writer(file).writerows([columns, *rows])
    # Excel takes a file without this mark for one of an older encoding.
    return file.getvalue().encode("utf-8-sig")


def as_xlsx(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    try:
        from openpyxl import Workbook
        from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
    except ImportError:
        raise ToolError('This site writes no XLSX. Use "csv", which Excel opens.') from None
    book = Workbook(write_only=True)
    sheet = book.create_sheet()
    for row in [columns, *rows]:
        sheet.append(
            [
                ILLEGAL_CHARACTERS_RE.sub("", one)[:LONGEST_CELL] if isinstance(one, str) else one
                for one in row
            ]
        )
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()
