"""Rows that the admin shows only in the forms of other records: their model has no ModelAdmin."""

from __future__ import annotations

import pytest
from django.contrib.admin import ModelAdmin, TabularInline
from django.contrib.contenttypes.admin import GenericTabularInline
from django.forms import BaseInlineFormSet

from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from mcp_django.models import ExposedModel
from tests.clients import CheckedClient
from tests.library.admin import BookAdmin, Copies
from tests.library.models import Author, Book, Copy
from tests.workshop.admin import ThingAdmin, site
from tests.workshop.models import Remark, Scrap, Tag


@pytest.fixture(autouse=True)
def _sites(settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "ADMIN_SITES": ["library", "workshop"]}


@pytest.fixture
def book(db):
    for label in ("library.book", "library.copy"):
        ExposedModel.objects.create(label=label, level=Level.WRITE)
    book = Book.objects.create(title="T", author=Author.objects.create(name="A"))
    Copy.objects.create(book=book, number=1)
    return book


@pytest.fixture
def librarian(make_user):
    names = ["view_book", "change_book", "view_copy", "add_copy", "change_copy", "delete_copy"]
    return make_user("librarian", *names, is_staff=True)


@pytest.mark.database
def test_they_are_read_and_written_with_the_record_that_has_them(superuser, thing, monkeypatch):
    class RemarkInline(GenericTabularInline):
        model = Remark

    class ScrapsInline(TabularInline):
        model = Scrap

    monkeypatch.delitem(site._registry, Scrap)
    monkeypatch.setattr(ThingAdmin, "inlines", [RemarkInline, ScrapsInline])
    registry.forget_resolved()
    for label in ("workshop.remark", "workshop.scrap"):
        ExposedModel.objects.create(label=label, level=Level.WRITE)
    Remark.objects.create(target=thing, text="of the thing")
    Remark.objects.create(target=Tag.objects.create(pk=thing.pk + 99, name="n"), text="of a tag")
    client = CheckedClient(user=superuser)
    scraps = client.call_tool("find_records", model="workshop.scrap", filters={"thing": thing.pk})
    remarks = client.call_tool("find_records", model="workshop.remark")
    rows = {
        "scraps": [{"pk": scraps.records[0]["id"], "text": "other"}, {"text": "new"}],
        "workshop-remark-content_type-object_id": [
            {"pk": row["id"], "text": "read"} for row in remarks.records
        ],
    }

    client.data("update_record", model="workshop.thing", pk=thing.pk, inlines=rows)

    assert {*Scrap.objects.values_list("text", flat=True)} == {"other", "new"}
    assert {*Remark.objects.values_list("text", flat=True)} == {"read", "of a tag"}
    assert "writing" not in client.data("describe_model", model="workshop.scrap")


@pytest.mark.parametrize(
    "lost", ["view_copy", "view_book", "is_staff", "the book", "one by one", "rows one by one"]
)
def test_nobody_reads_those_that_the_admin_does_not_show(
    lost, book, librarian, make_user, monkeypatch
):
    def of_shelf(self, request, obj=None):
        return obj is None or obj.shelf == 1

    if lost == "the book":
        monkeypatch.setattr(BookAdmin, "get_queryset", lambda *args: Book.objects.none())
    elif lost == "one by one":
        monkeypatch.setattr(BookAdmin, "has_view_permission", of_shelf)
    elif lost == "rows one by one":
        monkeypatch.setattr(Copies, "has_view_permission", of_shelf, raising=False)
    elif lost == "is_staff":
        librarian.is_staff = False
        librarian.save()
    else:
        kind = lost.removeprefix("view")
        named = librarian.user_permissions.filter(codename__endswith=kind)
        librarian.user_permissions.remove(*named)
    client = CheckedClient(user=librarian)

    answer = client.call_tool("find_records", model="library.copy")

    assert answer.is_error or answer.data["rows"] == []
    assert (lost == "the book") is not answer.is_error


class NarrowFormSet(BaseInlineFormSet):
    def get_queryset(self):
        return super().get_queryset().filter(number=2)


@pytest.mark.parametrize(
    ("options", "columns"),
    [
        ({}, {"id", "number", "remark", "book"}),
        ({"fields": ["number"]}, {"id", "number", "book"}),
        ({"exclude": ["remark"]}, {"id", "number", "book"}),
        ({"readonly_fields": ["remark"], "fields": ["remark"]}, {"id", "remark", "book"}),
        # Who is shown what only code of the site knows.
        ({"get_fields": lambda self, request, obj=None: ["number"]}, None),
        ({"formset": NarrowFormSet}, None),
    ],
    ids=range(6),
)
def test_staff_may_open_the_columns_that_the_inlines_show(
    options, columns, book, librarian, monkeypatch
):
    inline = type("CopyInline", (TabularInline,), {"model": Copy, **options})
    monkeypatch.setattr(BookAdmin, "inlines", [inline])
    registry.forget_resolved()
    client = CheckedClient(user=librarian)

    answer = client.call_tool("describe_model", model="library.copy")

    if columns is None:
        assert answer.is_error
    else:
        assert {field["name"] for field in answer.data["fields"]} == columns


@pytest.mark.parametrize(
    "name", ["get_inlines", "get_inline_instances", "get_formsets_with_inlines"]
)
def test_inlines_that_code_of_the_site_chooses_open_nothing(name, book, librarian, monkeypatch):
    djangos = getattr(ModelAdmin, name)
    monkeypatch.setattr(BookAdmin, name, lambda *args: djangos(*args), raising=False)
    registry.forget_resolved()

    assert CheckedClient(user=librarian).call_tool("describe_model", model="library.copy").is_error
