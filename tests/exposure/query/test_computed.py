"""Computed columns: for whom the admin has them, read beside the records and never before."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import reduce
from types import SimpleNamespace

import msgspec
import pytest
from django.contrib import admin
from django.contrib.admin import AdminSite, ModelAdmin
from django.db import OperationalError, connection
from django.db.models import Count, F
from django.utils.html import format_html
from django.utils.translation import gettext_lazy

from mcp_django.exceptions import NotFound, QueryError
from mcp_django.exposure import fields
from mcp_django.exposure.inspection import OwnRights, SharedRights
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.query.describe import describe
from mcp_django.exposure.query.find import get_record
from mcp_django.levels import Level
from mcp_django.models import ExposedModel
from mcp_django.principal import Restriction
from mcp_django.stores.cache_version import generations
from mcp_django.templating.fences import FENCES
from tests.clients import CheckedClient
from tests.nasty.models import Customer, Order
from tests.nasty.site import caller, records, refusal, registry
from tests.shop.models import Ledger

pytestmark = pytest.mark.django_db


@admin.display(description="As a list", ordering="-number")
def as_list(order):
    return [order.number, 1]


class OrderAdmin(ModelAdmin):  # type: ignore[type-arg]
    """What it computes may come from anything that an order has."""

    list_display = ["number", "margin_text", as_list, "owner", "is_big", "api_token_text"]
    list_select_related = ["owner"]

    def get_queryset(self, request):
        rows = super().get_queryset(request).annotate(line_count=Count("lines"))
        return rows.exclude(number__in=getattr(request, "not_listed", ()))

    @admin.display(description="Margin", ordering="total")
    def margin_text(self, order):
        return f"{order.number}: {order.owner.username}"

    @admin.display(boolean=True, ordering=F("quantity").desc())
    def is_big(self, order):
        return order.quantity and order.quantity > 1

    def api_token_text(self, order):
        return order.api_token

    @admin.display(ordering="line_count")
    def lines_text(self, order):
        return f"{order.line_count} lines"

    @admin.display(ordering="api_token")
    def by_token(self, order):
        return "x"

    def seen(self, order):
        Seen.keys.append(order.pk)
        return order.pk

    def value(self, order):
        return Seen.values[order.number]()


class Seen:
    """What a test lets columns return, and which rows they were asked about."""

    keys: list[int] = []
    values: dict = {}  # type: ignore[type-arg]


class CustomerAdmin(ModelAdmin):  # type: ignore[type-arg]
    list_display = ["name", "shout"]

    def shout(self, customer):
        return customer.name.upper()


@pytest.fixture(autouse=True)
def site(settings):
    found = AdminSite(name="computed")
    found.register(Order, OrderAdmin)
    found.register(Customer, CustomerAdmin)
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "ADMIN_SITES": [found.name]}
    Seen.keys, Seen.values = [], {}
    fields.logged.clear()
    # The rows of another test went without a signal.
    generations.forget()
    return found


FIELDS = {"fields": ["id", "number", "status", "total", "quantity"]}


def who(*computed, order=FIELDS, base=ModelExposure, request=None, **options):
    """A caller of an exposure with these computed columns."""
    declared = {"computed": computed or ("margin_text",), **order}
    found = caller(tables=registry({Order: declared}, base=base), **options)
    for name, value in (request or {}).items():
        setattr(found.request, name, value)
    return found


def found(rights, model=Order, **arguments):
    return records(rights, model, **arguments)


def one(rights, pk, model=Order, **options):
    exposure = rights.exposed.exposures[model]
    return msgspec.json.decode(get_record(rights, exposure, pk, all_computed=True, **options))


def described(rights, model=Order):
    return describe(rights, rights.exposed.exposures[model]).get("computed", [])


def cells(rights, name, **arguments):
    arguments = {"order_by": ["number"], "fields": ["number", name], **arguments}
    return {row["number"]: row[name] for row in found(rights, **arguments)}


def fail(error):
    def value(*args):
        raise error

    return value


def value_of(shop, value):
    """What a caller gets where the column returns this."""
    Seen.values = {"A1": value}
    return cells(who("value"), "value", filters={"number": "A1"})["A1"]


# Where it is shown


def test_methods_callables_properties_and_annotations_are_columns(shop, monkeypatch):
    half = admin.display(description="Half")(lambda order: order.quantity / 2)
    monkeypatch.setattr(Order, "half", property(half), raising=False)
    names = ["margin_text", "as_list", "line_count", "is_big", "half"]
    rights = who("margin_text", as_list, "line_count", "is_big", "half")

    [row] = found(rights, fields=names, filters={"number": "A1"})

    assert row == {
        "margin_text": "A1: boss", "as_list": ["A1", 1], "line_count": 2, "is_big": False,
        "half": 0.5,
    }  # fmt: skip
    assert described(rights)[-1] == {"name": "half", "label": "Half"}


def test_a_record_shows_every_column_and_a_page_those_that_are_named(shop):
    rights = who("margin_text", "line_count")

    assert one(rights, shop.a1.pk).keys() == {*FIELDS["fields"], "margin_text", "line_count"}
    assert one(rights, shop.a1.pk, fields=["number"]) == {"number": "A1"}
    assert one(rights, shop.a1.pk, fields=["line_count"]) == {"line_count": 2}
    assert found(rights)[0].keys() == {*FIELDS["fields"]}
    assert found(rights, fields=["line_count", "id", "line_count"])[0] == {
        "id": shop.a1.pk,
        "line_count": 2,
    }


def test_the_description_lists_them_apart_from_fields(shop):
    rights = who("margin_text", "is_big", "line_count", as_list, "by_token", "lines_text")

    assert described(rights) == [
        {"name": "margin_text", "label": "Margin", "order": True},
        {"name": "is_big", "label": "Is big", "order": True},
        {"name": "line_count", "label": "Line count"},
        {"name": "as_list", "label": "As a list", "order": True},
        {"name": "by_token", "label": "By token"},
        {"name": "lines_text", "label": "Lines text"},
    ]
    described_fields = describe(rights, rights.registry.exposures[Order])["fields"]
    assert [field["name"] for field in described_fields] == FIELDS["fields"]


# Values


def test_a_value_is_told_as_json_and_what_is_no_json_as_a_text(shop):
    marked = format_html("<b>{}</b>&nbsp;{}", "1 < 2", "x")
    deep, wide = reduce(lambda inner, _: [inner], range(50), []), [[0] * 600, 1]
    told = [
        (None, None),
        (2**60, str(2**60)),
        ({1: (None, frozenset({3}))}, {"1": [None, [3]]}),
        (gettext_lazy("Yes"), "Yes"),
        (marked, "1 < 2 x"),
        (SimpleNamespace(a=1), "namespace(a=1)"),
        (b"12", {"bytes": 2}),
        (float("-inf"), "-inf"),
        (Decimal("NaN"), "NaN"),
        (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00Z"),
        (timedelta(seconds=1), "P0DT00H00M01S"),
        # The depth and the size are held.
        (deep, reduce(lambda inner, _: [inner], range(21), "...")),
        (wide, [[0] * 498 + ["..."], "..."]),
        (dict.fromkeys(range(600), 0), {**{str(n): 0 for n in range(499)}, "...": "..."}),
    ]

    shown = [value_of(shop, lambda value=value: value) for value, _ in told]

    assert shown == [expected for _, expected in told]


def test_a_long_text_is_cut_in_a_page_and_whole_in_a_record(shop):
    cut = value_of(shop, lambda: "x" * 100_000)
    marked = value_of(shop, lambda: format_html("<p>{}</p>", "y" * 100_000))

    assert cut == "x" * 2000 + "... [cut: 100000 characters; get_record shows more]"
    assert marked.startswith("yyy")
    assert len(marked) < 2100
    assert one(who("value"), shop.a1.pk, fields=["value"]) == {"value": "y" * 100_000}


# What goes wrong


class Hostile:
    def __str__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    "value",
    [
        fail(ValueError("secret")),
        fail(RecursionError()),
        fail(QueryError("secret")),
        Hostile,
        lambda: "\ud800",
    ],
    ids=["error", "recursion", "ours", "text", "surrogate"],
)
def test_an_error_is_told_in_its_cell_and_nowhere_else(shop, value, caplog):
    Seen.values = {"A1": value, "A2": lambda: "fine", "A3": value, "R1": lambda: None}

    with caplog.at_level(logging.WARNING, "mcp_django"):
        assert cells(who("value"), "value") == {
            "A1": "<error>", "A2": "fine", "A3": "<error>", "R1": None,
        }  # fmt: skip

    messages = [record.getMessage() for record in caplog.records]
    assert [text.partition(" cannot")[0] for text in messages] == ["nasty.order.value"]


@pytest.mark.database
@pytest.mark.skipif(connection.vendor == "sqlite", reason="there it may be the lost database")
@pytest.mark.django_db(transaction=True)
def test_a_statement_that_fails_takes_no_other_cell_along(shop):
    def broken():
        with connection.cursor() as cursor:
            cursor.execute("SELECT x FROM nowhere")

    Seen.values = {"A1": broken, "A2": Order.objects.count, "A3": broken, "R1": lambda: "fine"}

    assert cells(who("value"), "value") == {
        "A1": "<error>",
        "A2": 4,
        "A3": "<error>",
        "R1": "fine",
    }


def test_what_it_says_is_in_a_fence_where_strangers_wrote_any_column(shop):
    Seen.values = {"A1": lambda: "Do it.", "A2": lambda: ["Do it."], "A3": lambda: 7}
    rights = who("value", order={**FIELDS, "untrusted_fields": ["number"]})

    values = [row["value"] for row in found(rights, order_by=["id"], fields=["value"])][:3]

    assert values == [
        f"<data-{rights.mark}>Do it.</data-{rights.mark}>",
        f'<data-{rights.mark}>["Do it."]</data-{rights.mark}>',
        7,
    ]
    assert describe(rights, rights.exposed.exposures[Order])["fences"] == FENCES


# What it costs


@pytest.mark.parametrize(("related", "queries"), [(True, 2), (False, 2), (["owner"], 2), ((), 6)])
def test_the_objects_of_a_page_are_one_query_with_what_the_list_selects(
    shop, monkeypatch, django_assert_num_queries, related, queries
):
    # The list has a foreign key in it, so that False selects what is related.
    monkeypatch.setattr(OrderAdmin, "list_select_related", related)
    rights = who("margin_text", "line_count")
    found(rights, limit=1)

    with django_assert_num_queries(queries):
        assert len(found(rights, fields=["margin_text", "line_count"])) == 4
    with django_assert_num_queries(1):
        found(rights, fields=["number"])


def test_what_ends_every_column_ends_the_call(shop, monkeypatch, settings):
    Seen.values = {"A1": fail(OperationalError("server closed the connection"))}
    with pytest.raises(OperationalError):
        cells(who("value"), "value", filters={"number": "A1"})

    usual = settings.MCP_DJANGO
    settings.MCP_DJANGO = {**usual, "STATEMENT_TIMEOUT": 1e-9}
    with pytest.raises(QueryError, match="took too long"):
        cells(who(), "margin_text")

    settings.MCP_DJANGO = usual
    monkeypatch.setattr(OrderAdmin, "get_list_select_related", lambda self, request: ["nothing"])
    assert cells(who(), "margin_text", filters={"number": "A1"}) == {"A1": "<error>"}


# For whom


def nobody_has(rights, name="margin_text"):
    """Whether nothing tells of the column: the words are those for what was never there."""
    hidden = refusal(found, rights, fields=[name]).replace(name, "NAME")
    missing = refusal(found, rights, fields=["never_there"]).replace("never_there", "NAME")
    assert hidden.partition(". ")[0] == missing.partition(". ")[0]
    assert name not in hidden
    order = refusal(found, rights, order_by=[name])
    assert f"'{name}' cannot be used in order_by." in order
    return described(rights) == []


class Open(ModelExposure):
    def has_view_permission(self, request, obj=None):
        return not hasattr(request, "left") or request.left is not None

    def get_queryset(self, request):
        return Order.objects.all()


class Partial(ModelExposure):
    def get_fields(self, request):
        return getattr(request, "left", None)


def not_staff():
    rights = who(base=Open)
    rights.request.user.is_staff = False
    return rights


#: Callers, each beside one who has the columns.
WITHOUT = {
    "not staff": (not_staff, lambda: who(base=Open)),
    "a credential that is limited to models": (
        lambda: who(restriction=Restriction(models=frozenset({"nasty.order"}))),
        who,
    ),
    "not all fields": (
        lambda: who(base=Partial, request={"left": [*FIELDS["fields"][1:], "margin_text"]}),
        lambda: who(base=Partial, request={"left": [*FIELDS["fields"], "margin_text"]}),
    ),
    "no right to a path of records": (
        lambda: who(order=THROUGH, may=lambda name: "customer" not in name),
        lambda: who(order=THROUGH),
    ),
    "masks, where code names no column": (
        lambda: who(order={**FIELDS, "computed": None, "mask": {"number": "text"}}),
        lambda: who(order={**FIELDS, "computed": None}),
    ),
    "what two people may both see": (lambda: SharedRights(who(), OwnRights(who())), who),
}
THROUGH = {"fields": ["number", "customer__name"]}


@pytest.mark.parametrize("name", WITHOUT)
def test_some_callers_have_no_columns(shop, name):
    blind, seeing = WITHOUT[name]

    assert described(seeing()) != []
    assert nobody_has(blind())
    assert one(blind(), shop.a1.pk).keys().isdisjoint({"margin_text"})


def test_an_admin_that_refuses_its_list_or_fails_takes_the_columns_with_it(
    shop, monkeypatch, caplog
):
    refusing = lambda self, request, obj=None: False  # noqa: E731
    monkeypatch.setattr(OrderAdmin, "has_view_or_change_permission", refusing)
    assert nobody_has(who(base=Open))

    monkeypatch.setattr(OrderAdmin, "has_view_permission", fail(RuntimeError("secret")))
    assert nobody_has(who(base=Open))
    assert "The computed columns of nasty.order cannot be told." in caplog.text
    assert len(found(who(base=Open))) == 4


# Which rows


def test_rows_that_the_admin_does_not_list_have_no_value(shop):
    rights = who("margin_text", base=Open, request={"not_listed": ["A2"]})

    assert cells(rights, "margin_text", limit=2) == {"A1": "A1: boss", "A2": None}
    assert one(rights, shop.a2.pk)["margin_text"] is None


def test_rows_that_are_judged_away_are_never_asked_about(shop, monkeypatch):
    def may_view(self, request, obj=None):
        return obj is None or obj.number != "A2"

    monkeypatch.setattr(OrderAdmin, "has_view_permission", may_view)
    rights = who("seen")

    assert list(cells(rights, "seen", limit=1)) == ["A1"]
    assert Seen.keys == [shop.a1.pk]
    assert list(cells(rights, "seen")) == ["A1", "A3", "R1"]
    assert shop.a2.pk not in Seen.keys
    with pytest.raises(NotFound):
        one(rights, shop.a2.pk)
    assert shop.a2.pk not in Seen.keys


# Order, filters and groups


def test_records_are_ordered_by_the_path_of_a_column(shop):
    rights = who("margin_text", "is_big", as_list)

    def numbers(*order_by):
        return [row["number"] for row in found(rights, fields=["number"], order_by=order_by)]

    assert numbers("as_list") == ["R1", "A3", "A2", "A1"]
    assert numbers("-as_list") == ["A1", "A2", "A3", "R1"]
    assert numbers("is_big", "number") == ["A3", "A2", "A1", "R1"]
    assert numbers("-is_big", "-number") == ["R1", "A1", "A2", "A3"]
    rights = who("line_count", "lines_text", "by_token")
    for name in ("line_count", "lines_text", "by_token"):
        sentence = refusal(found, rights, order_by=[f"-{name}"])
        assert f"'{name}' cannot be used in order_by." in sentence


# Models that staff opened


def names_of(rights, model=Order):
    return [column["name"] for column in described(rights, model)]


def opened(**attributes):
    """A caller of what staff opened, where code says nothing but what the ModelAdmin has."""
    return caller(tables=registry({Order: None, Customer: None}, base=ModelExposure), **attributes)


@pytest.fixture
def open_by_staff(db):
    for label in ("nasty.order", "nasty.customer"):
        ExposedModel.objects.create(label=label, level=Level.READ)


@pytest.mark.usefixtures("open_by_staff")
def test_an_admin_names_columns_for_assistants_or_they_are_those_of_the_callers_list(monkeypatch):
    def get_list_display(self, request):
        return ["__str__", "name", "orders", *(["shout"] if request.user.pk == 2 else [])]

    monkeypatch.setattr(OrderAdmin, "mcp_computed", ["lines_text"], raising=False)
    monkeypatch.setattr(CustomerAdmin, "get_list_display", get_list_display)

    assert names_of(opened()) == ["lines_text"]
    assert names_of(opened(pk=2), Customer) == ["shout"]
    assert names_of(opened(), Customer) == []


@pytest.mark.usefixtures("open_by_staff")
def test_the_list_has_its_columns_although_the_admin_hides_a_field(shop, monkeypatch):
    monkeypatch.setattr(OrderAdmin, "get_fields", lambda *args: ["number", "owner"])

    assert "status" not in one(opened(), shop.a1.pk)
    assert one(opened(), shop.a1.pk)["margin_text"] == "A1: boss"
    assert names_of(opened()) == ["margin_text", "as_list", "is_big"]
    assert nobody_has(who())
    # What rights or staff took away is another matter.
    rights = opened()
    exposure = rights.exposed.exposures[Order]
    exposure.get_fields = lambda request: ["id", "number"]
    assert names_of(rights) == []
    ExposedModel.objects.filter(label="nasty.order").update(fields=["number", "status"])
    generations.forget()
    assert names_of(opened()) == []


def test_a_client_reads_the_columns_of_a_model_that_staff_opened(settings, monkeypatch, make_user):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "ADMIN_SITES": ["admin"]}
    ledger_admin = type(admin.site._registry[Ledger])
    monkeypatch.setattr(ledger_admin, "list_display", ["amount", "doubled"])
    monkeypatch.setattr(ledger_admin, "doubled", lambda self, row: row.amount * 2, raising=False)
    ExposedModel.objects.create(label="shop.ledger", level=Level.READ)
    ledger = Ledger.objects.create(amount=21)
    client = CheckedClient(user=make_user("grace", "view_ledger", is_staff=True))

    def text(tool, **arguments):
        return client.call_tool(tool, model="shop.ledger", **arguments).text

    assert '"doubled":42' in text("get_record", pk=ledger.pk)
    assert "42" in text("find_records", fields=["doubled"])
    assert "42" not in text("find_records")
    assert '"computed":[{"name":"doubled"' in text("describe_model")
    assert "42" in str(client.read_resource("django://objects/shop.ledger?fields=doubled"))
