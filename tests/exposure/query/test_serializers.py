from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pytest
from django.db.models import CharField, JSONField
from django.test import override_settings
from django.utils.safestring import mark_safe
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.exposure import fields
from mcp_django.exposure.fields import choices_of
from mcp_django.exposure.query.serializers import Trimming, as_text, converter_of, encoder
from tests.nasty.models import Money, Order, Person
from tests.nasty.site import ORDER, caller, record, records, registry

FIELDS = [field.name for field in Order._meta.concrete_fields]


def everything():
    tables = registry({Order: {**ORDER, "fields": FIELDS, "order_fields": []}})
    return caller(tables=tables)


def converter(field: Any) -> Any:
    return converter_of(field, whole=False)


@pytest.fixture(params=[2**60, -(2**60)])
def rich(db, request):
    return Order.objects.create(
        owner=Person.objects.create(username="o"),
        number="N",
        total=Decimal("12.30"),
        weight=0.5,
        gift=True,
        placed_at=datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=2))),
        due=date(2026, 1, 31),
        at=time(12, 30, 1, 5),
        took=timedelta(days=1, seconds=3),
        ref=UUID(int=5),
        ip="::1",
        payload={"a": [1, 2**60, None, {"b": "x" * 3000}]},
        blob=b"12345",
        attachment="a/b.txt",
        price=1250,
        word="w",
        big=request.param,
    )


def test_every_kind_of_column_has_its_json(rich):
    row = record(everything(), Order, rich.pk)

    assert row == {
        "id": rich.pk,
        "owner": rich.owner_id,
        "customer": None,
        "number": "N",
        "status": "new",
        "total": "12.30",
        "quantity": 0,
        "weight": 0.5,
        "gift": True,
        "placed_at": "2026-01-31T10:00Z",
        "due": "2026-01-31",
        "at": "12:30:01.000005",
        "took": "P1DT00H00M03S",
        "ref": "00000000-0000-0000-0000-000000000005",
        "ip": "::1",
        "payload": {"a": [1, str(2**60), None, {"b": "x" * 3000}]},
        "blob": {"bytes": 5},
        "attachment": "a/b.txt",
        "remark": "",
        "price": "EUR 12.50",
        "word": "w",
        "big": str(rich.big),
        "api_token": "",
        "margin": None,
        "double": 0,
    }


def test_a_value_that_its_field_cannot_read_does_not_take_the_page_away(rich, monkeypatch, caplog):
    Order.objects.update(price=1250)
    Order.objects.create(owner=rich.owner, number="M", price=7)

    def read(field, value, expression, connection):
        if value == 7:
            raise ValueError("who wrote this?")
        return Money(value)

    monkeypatch.setattr(type(Order._meta.get_field("price")), "from_db_value", read)
    monkeypatch.setattr(fields, "logged", set())
    pages = [records(everything(), Order) for _ in range(2)]

    for page in pages:
        assert {one["number"]: one["price"] for one in page} == {
            "N": "EUR 12.50",
            "M": "<unreadable>",
        }
    assert caplog.text.count("nasty.Order.price has values that cannot be read.") == 1


class Broken(CharField):
    name = "broken"

    @property
    def flatchoices(self):
        raise LookupError("no countries today")


def test_choices_that_cannot_be_listed_are_left_out_and_logged(monkeypatch, caplog):
    monkeypatch.setattr(fields, "logged", set())
    field = Broken(choices=[("FR", "France")], max_length=10)

    assert [choices_of(field), choices_of(field)] == [[], []]
    assert caplog.text.count("has choices that cannot be listed.") == 1
    # Several in one column, as django-countries has it.
    several = type("Countries", (CharField,), {"flatchoices": None})(choices=[("FR", "France")])
    assert choices_of(several) == []


class Blocks:
    """As wagtail's: its text is the page that it makes."""

    def __str__(self):
        return mark_safe("<h1>Bread</h1>")


class BlocksField(JSONField):
    def from_db_value(self, value, expression, connection):
        return Blocks()

    def get_prep_value(self, value):
        return [{"type": "heading", "value": "Bread"}]


def test_what_a_field_stores_as_a_list_is_read_as_that_list(monkeypatch):
    convert, blocks = converter(BlocksField()), [{"type": "heading", "value": "Bread"}]

    assert convert([Blocks(), None]) == [blocks, None]
    assert encoder.encode([as_text(Blocks()), mark_safe("<b>")]) == b'["<h1>Bread</h1>","<b>"]'
    monkeypatch.setattr(BlocksField, "get_prep_value", lambda self, value: "a text")
    assert convert([Blocks()]) == ["<h1>Bread</h1>"]


@override_settings(USE_TZ=False)
def test_without_time_zones_instants_have_no_offset():
    convert = converter(Order._meta.get_field("placed_at"))

    assert convert([datetime(2026, 1, 1)]) == ["2026-01-01T00:00"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
)


@given(JSON)
def test_whatever_a_column_holds_can_be_encoded(value):
    msgspec.json.decode(encoder.encode(Trimming(500, whole=True).json(value)))
