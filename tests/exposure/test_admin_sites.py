from __future__ import annotations

import pytest
from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import F
from django.test import RequestFactory
from msgspec import UNSET

from mcp_django.exposure.admin_sites import exposure_of
from mcp_django.exposure.decisions import ModelDecision, label_choices, restricted
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import FILTER, RETURN, SEARCH, Declaration
from mcp_django.exposure.query.describe import describe
from mcp_django.exposure.registry import Registry
from tests.nasty import models as nasty
from tests.nasty.site import Narrowable, caller, objects, page, records
from tests.shop.models import Customer, Memo, Order


def expose(model=Order, **attributes):
    kind = type("SomeAdmin", (admin.ModelAdmin,), attributes)
    return exposure_of(kind(model, admin.site))


@pytest.mark.parametrize(
    ("model", "options", "fields"),
    [
        (
            Order,
            {"list_display": ["number", "shout"], "fields": ["status", ("total", "number")]},
            "id number status total",
        ),
        (
            Order,
            {
                "list_display": ["__str__"],
                "fieldsets": [(None, {"fields": ["number", ("status", "total")]})],
                "readonly_fields": ["placed_at"],
            },
            "id number status total placed_at",
        ),
        (Order, {"exclude": ["margin"]}, "id number customer status total placed_at"),
        (User, {"fields": ["username", "groups"]}, "id username groups"),
        (User, {"list_display": ["username", "password"], "fields": []}, "id username"),
        (User, {"mcp_fields": ["username", "password"]}, "username password"),
    ],
    ids=range(6),
)
def test_without_named_fields_the_list_and_the_form_are_shown(model, options, fields):
    shown = expose(model, **options).fields

    assert shown[: len(fields.split())] == tuple(fields.split())
    assert ("password" in shown) is ("mcp_fields" in options)


class NarrowForm(forms.ModelForm):
    class Meta:
        fields = ["number", "total"]


class OpenForm(forms.ModelForm):
    #: Declared, so that it is shown whatever Meta says.
    status = forms.CharField()

    class Meta:
        exclude = ["status", "margin"]


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({"form": NarrowForm}, "id number total"),
        ({"form": NarrowForm, "list_display": ["status"]}, "id status number total"),
        ({"form": OpenForm}, "id number customer total placed_at status"),
        # Django does not ask the form what to exclude where the ModelAdmin says it.
        ({"form": OpenForm, "exclude": ["total"]}, "id number customer status placed_at margin"),
    ],
    ids=range(4),
)
def test_a_form_of_the_sites_own_shows_its_fields_and_no_others(options, fields):
    kind = type("OwnFormAdmin", (admin.ModelAdmin,), {"list_display": [], **options})
    request = RequestFactory().get("/")
    request.user = User(is_superuser=True)
    form = kind(Order, admin.site).get_form(request)

    shown = expose(Order, list_display=options.get("list_display", []), form=options["form"],
                   exclude=options.get("exclude")).fields  # fmt: skip

    assert sorted(shown) == sorted(fields.split())
    assert set(form.base_fields) <= set(shown)


def test_filters_and_search_that_lead_nowhere_or_to_secrets_are_left_out():
    class Mine(admin.SimpleListFilter):
        title = parameter_name = "mine"

    too_long = "customer__orders__customer__orders__number"
    odd = ["nothing", "customer__nothing", "number__year", "customer__password", too_long]

    exposure = expose(
        mcp_fields=["number"], list_filter=[Mine, *odd, "status"], search_fields=odd,
        ordering=["-number"], mcp_actions=["pay"],
    )  # fmt: skip

    assert (exposure.more_filter_fields, exposure.search_fields) == (("status",), ())
    assert (exposure.ordering, exposure.actions) == (("-number",), ("pay",))


def test_excluded_fields_are_gone_from_every_use():
    kind = expose(
        mcp_fields=["number", "customer", "total"],
        mcp_exclude_fields=["customer"],
        list_filter=["status", "customer__country", ("customer", admin.RelatedFieldListFilter)],
        search_fields=["number", "^customer__name"],
    )

    paths = Declaration(kind(Order)).paths
    assert [path.text for path in paths[RETURN]] == ["number", "total"]
    assert [path.text for path in paths[FILTER]] == ["number", "total", "status"]
    assert [path.text for path in paths[SEARCH]] == ["number"]
    assert kind.fields == ("number", "total")


# The order of records


def listed(monkeypatch, *, caller_sees=None, meta=(), **attributes):
    """The numbers of the orders of the nasty schema, in the order of such an admin."""
    monkeypatch.setattr(nasty.Order._meta, "ordering", list(meta))
    fields = attributes.pop("fields", ["id", "number", "total"])
    made = expose(nasty.Order, mcp_fields=fields, **attributes)
    tables = Registry()
    tables.register(nasty.Order, made)
    if caller_sees is not None:
        made.get_fields = lambda self, request: caller_sees
    rights = caller(tables=tables)
    order = describe(rights, tables.exposures[nasty.Order]).get("default_order", ["id"])
    # One at a time, so that every page but the first has a cursor.
    found, cursor = [], UNSET
    while cursor is not None:
        read = page(rights, nasty.Order, limit=1, cursor=cursor)
        found += objects(read.table)
        cursor = read.next_cursor
    return [one["number"] for one in found], order


@pytest.fixture
def orders(db):
    owner = nasty.Person.objects.create(username="boss")
    for number, total in (("B", 1), ("C", 2), ("A", 3)):
        nasty.Order.objects.create(owner=owner, number=number, total=total, quantity=-total)


def get_ordering(*names):
    return lambda self, request: names


@pytest.mark.parametrize(
    ("options", "order", "numbers"),
    [
        ({}, ["id"], "BCA"),
        ({"meta": ["number"]}, ["number"], "ABC"),
        ({"meta": ["-number", "pk"]}, ["-number", "pk"], "CBA"),
        ({"meta": ["number"], "ordering": ["-total"]}, ["-total"], "ACB"),
        ({"meta": ["number"], "get_ordering": get_ordering("-total")}, ["-total"], "ACB"),
        ({"meta": ["number"], "get_ordering": get_ordering()}, ["number"], "ABC"),
        ({"meta": ["number", "total", "-number", "id", "pk"]}, None, "ABC"),
    ],
)
@pytest.mark.usefixtures("orders")
def test_the_order_is_that_of_the_admin_and_else_that_of_the_model(
    monkeypatch, options, order, numbers
):
    found, described = listed(monkeypatch, **options)

    assert found == list(numbers)
    assert order is None or described == order


@pytest.mark.parametrize(
    "options",
    [
        {"meta": ["quantity"]},
        {"meta": ["-owner__username"]},
        {"meta": [F("number").asc()]},
        {"ordering": [F("number").desc(), "number"]},
        {"ordering": ["-api_token"]},
        {"get_ordering": get_ordering("quantity")},
        {"meta": ["number"], "ordering": ["quantity"]},
        {"meta": ["-total"], "caller_sees": ["id", "number"]},
        {"get_ordering": get_ordering("-total"), "caller_sees": ["id", "number"]},
    ],
)
@pytest.mark.usefixtures("orders")
def test_an_order_that_tells_of_what_is_not_shown_is_not_used(monkeypatch, options):
    assert listed(monkeypatch, **options) == (["B", "C", "A"], ["id"])


@pytest.mark.usefixtures("orders")
def test_an_admin_may_order_for_each_request(monkeypatch):
    def by_right(self, request):
        return ["number"] if request.user.has_perm("nasty.sort") else ["-number"]

    made = expose(nasty.Order, mcp_fields=["id", "number"], get_ordering=by_right)
    tables = Registry()
    tables.register(nasty.Order, made)
    first = caller(tables=tables)
    other = caller(tables=tables, may=lambda name: name != "nasty.sort")

    assert [one["number"] for one in records(first, nasty.Order)] == ["A", "B", "C"]
    assert [one["number"] for one in records(other, nasty.Order)] == ["C", "B", "A"]


# What stands for a record where another one refers to it


def show(self, obj):
    return str(obj)


@pytest.mark.parametrize(
    ("model", "options", "label"),
    [
        (Order, {"list_display": ["total", show, "shout", "status", "number"]}, "number"),
        (Order, {"list_display": ["__str__"], "search_fields": ["^number"]}, "number"),
        (Order, {"search_fields": ["customer__name", "=status", "@number"]}, "number"),
        (Order, {"list_display": ["customer", "placed_at"]}, None),
        (Order, {"list_display": ["number"], "mcp_fields": ["id", "customer__name"]}, None),
        (Order, {"list_display": ["number"], "mcp_exclude_fields": ["number"]}, None),
        (Order, {}, None),
        (Customer, {"list_display": ["id", "country", "name"]}, "country"),
        (User, {"list_display": ["password", "is_staff"], "search_fields": ["password"]}, None),
        (User, {"list_display": ["password", "username"]}, "username"),
        (nasty.Tricky, {"list_display": ["key", "year", "contains"]}, "contains"),
        (Memo, {"list_display": ["text", "scan", "code"]}, "code"),
    ],
)
def test_the_label_is_the_first_short_text_of_the_list_and_else_of_the_search(
    model, options, label
):
    assert expose(model, **options).label_fields == (() if label is None else (label,))


def labelled(decision):
    """The customer of an order, where the admin of customers has a label."""
    names, tables = ["name", "country"], Registry()
    customers = expose(nasty.Customer, list_display=names, mcp_fields=names)(nasty.Customer)
    chosen = restricted(customers, decision)
    options = {"fields": chosen.fields, "label_fields": chosen.label_fields}
    tables.register(nasty.Customer, type("Chosen", (Narrowable,), options))
    orders = {"fields": ["number", "customer"]}
    tables.register(nasty.Order, type("Orders", (Narrowable,), orders))
    [record] = records(caller(tables=tables), nasty.Order, filters={"number": "A1"})
    return record["customer"]


@pytest.mark.parametrize(
    ("decision", "label"),
    [
        ({"label_fields": ("country", "name")}, "Anne FR"),
        ({"label_fields": ("credit_rating", "tenant", "country")}, "FR"),
        ({"label_fields": ()}, None),
        ({"fields": ("country",), "label_fields": ("name",)}, None),
        ({"fields": ("country",), "label_fields": ("name", "country")}, "FR"),
    ],
)
def test_staff_choose_another_label_out_of_what_records_show(shop, decision, label):
    found = labelled(ModelDecision(**decision))

    key = shop.anne.pk
    assert found == (key if label is None else {"pk": key, "label": label})


def test_staff_keep_the_label_that_code_has_besides_the_fields():
    exposure = type("Coded", (ModelExposure,), {"fields": ["id"], "label_fields": ["number"]})

    assert label_choices(exposure(Order)) == ["number", "id"]
    assert restricted(exposure(Order), ModelDecision()).label_fields == ["number"]
