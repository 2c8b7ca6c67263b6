"""Lists of records as files for the person: what is in them, and who opens them."""

from __future__ import annotations

import csv
import io
import json
import sys

import openpyxl
import pytest
from django.utils import timezone

from mcp_django.exposure.query.arguments import FindRecords
from mcp_django.exposure.query.find import find_records
from mcp_django.exposure.tools.exports import cells_of
from mcp_django.models import Upload
from mcp_django.models.uploads import KEPT
from tests.clients import browser_of
from tests.nasty.models import Order as NastyOrder
from tests.nasty.site import ORDER, caller, registry
from tests.shop.models import Customer, Memo, Order

pytestmark = pytest.mark.django_db


@pytest.fixture
def orders(db):
    customer = Customer.objects.create(name="Ada", country="FR")
    numbers = ["=1+1", "A2", "+49 1", "é"]
    return [Order.objects.create(number=one, customer=customer, total=5) for one in numbers]


def export(client, **arguments):
    answer = client.call_tool("export_records", model="shop.order", **arguments)
    assert not answer.is_error, answer.text
    return json.loads(answer.text)


def rows_of_csv(content):
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))


def test_the_person_alone_opens_the_file_of_an_export(client, staff, make_user, orders):
    made = export(client, fields=["number", "total"], order_by=["id"])

    mine = browser_of(staff).get(made["file"])
    theirs = browser_of(make_user("eve", is_superuser=True, is_staff=True)).get(made["file"])

    # What a spreadsheet would run is a text.
    numbers = ["'=1+1", "A2", "'+49 1", "é"]
    assert rows_of_csv(mine.content) == [["number", "total"], *([one, "5.00"] for one in numbers)]
    assert made["records"] == 4
    assert mine["Content-Disposition"] == 'attachment; filename="order.csv"'
    Upload.objects.update(created_at=timezone.now() - KEPT)
    expired = browser_of(staff).get(made["file"])
    assert (theirs.status_code, expired.status_code) == (404, 404)


def test_a_workbook_has_the_same_cells(client, orders):
    export(client, fields=["number", "total"], filters={"number": "A2"}, format="xlsx")

    (upload,) = Upload.objects.all()
    sheet = openpyxl.load_workbook(io.BytesIO(upload.data)).active
    assert [list(row) for row in sheet.values] == [["number", "total"], ["A2", "5.00"]]


def test_an_export_has_all_pages_and_whole_texts(client, configure):
    configure(MAX_PAGE_SIZE=2, PUBLIC_URL="https://shop.example.com")
    Memo.objects.bulk_create(Memo(text="x" * 3000, code=f"m{at}\x00") for at in range(5))

    answer = client.call_tool("export_records", model="shop.memo", fields=["text"])

    (upload,) = Upload.objects.all()
    assert rows_of_csv(bytes(upload.data)) == [["text"]] + [["x" * 3000]] * 5
    assert json.loads(answer.text)["file"].startswith("https://shop.example.com/admin/")


def test_more_records_than_fit_are_said(client, orders, monkeypatch, configure):
    configure(MAX_PAGE_SIZE=2)
    monkeypatch.setattr("mcp_django.exposure.tools.exports.MOST_EXPORTED", 3)

    made = export(client, fields=["number"])

    assert (made["records"], made["note"]) == (3, "These are the first 3.")


@pytest.mark.parametrize(
    ("most", "kind", "words"),
    [
        (20, "csv", "larger than 20 bytes. Name fewer fields, or narrow the records"),
        # What is read is bounded as well, before a workbook is made of it.
        (1, "xlsx", "larger than 1 bytes."),
        (10_000, "pdf", "format: Use one of: csv, xlsx."),
        (10_000, "xlsx", 'This site writes no XLSX. Use "csv"'),
    ],
)
def test_what_cannot_be_exported_is_refused(
    client, orders, configure, monkeypatch, most, kind, words
):
    configure(MAX_UPLOAD=most, MAX_PAGE_SIZE=1)
    monkeypatch.setitem(sys.modules, "openpyxl", None)

    answer = client.call_tool("export_records", model="shop.order", format=kind)

    assert answer.is_error
    assert words in answer.text
    assert not Upload.objects.exists()


def test_a_person_reads_texts_of_strangers_whole_and_without_a_fence(shop):
    NastyOrder.objects.update(remark="x" * 3000)
    who = caller(tables=registry({NastyOrder: {**ORDER, "untrusted_fields": "remark"}}))
    asked = FindRecords(model="nasty.order", fields=["remark"], limit=1)

    page = find_records(who, who.exposure("nasty.order"), asked, whole=True)

    assert list(cells_of(page.table, who.mark)) == [["x" * 3000]]


def test_who_is_not_let_into_the_admin_exports_nothing(make_client):
    client = make_client("view_order", is_staff=False)

    assert "export_records" not in client.tools()
