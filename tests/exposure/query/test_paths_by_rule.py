"""Paths through relations that nobody lists: whatever each model on the way shows, and no more."""

from __future__ import annotations

import pytest
from django.core.exceptions import FieldError
from django.db.models import Count, F, Q, Sum

from mcp_django.exceptions import Leak, QueryError
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.query.describe import describe
from mcp_django.exposure.query.guard import guarded
from mcp_django.exposure.query.paths_by_rule import paths_of_call
from mcp_django.levels import Level
from mcp_django.principal import Restriction
from tests.nasty import models
from tests.nasty.models import Customer, Line, Order, Person, Region, RushOrder, Tag, Watch
from tests.nasty.site import caller, groups, numbers, record, records, refusal, registry

pytestmark = pytest.mark.usefixtures("shop")

#: What each model shows, and not one path through a relation.
PLAIN = {
    Order: {
        "fields": "id number status customer owner total placed_at",
        "filter_fields": None,
        "order_fields": None,
        "search_fields": "",
        "more_filter_fields": "tags notes watchers",
    },
    Customer: {"fields": "name country region account_manager", "label_fields": "name"},
    Region: {"fields": "name budget", "label_fields": "name"},
    Person: {"fields": "username manager"},
    Tag: {"fields": "slug parent"},
    Line: {"fields": "order sku amount"},
    Watch: {"fields": "order person"},
    models.Note: {"fields": "text"},
    RushOrder: {"fields": "number courier customer"},
    models.PaidOrder: None,
    models.Tricky: {"fields": "key year order"},
    models.Seat: None,
    models.Odd: None,
}


def ruled(changes):
    """The same with changes: options of a model, or None to leave it out."""
    found = dict(PLAIN)
    for model, options in changes.items():
        found[model] = None if options is None else {**(PLAIN[model] or {}), **options}
    return registry(found)


TABLES = ruled({})


def who(changes=None, **options):
    return caller(tables=TABLES if changes is None else ruled(changes), **options)


@pytest.fixture
def region(shop):
    region = Region.objects.create(name="North", budget=5)
    shop.anne.region = region
    shop.anne.save()
    return region


# What it is good for


@pytest.mark.usefixtures("region")
def test_a_path_that_nobody_lists_filters(shop):
    assert numbers(who(), filters={"customer__country": "FR"}) == ["A1"]
    assert numbers(who(), filters={"customer__region__name__istartswith": "no"}) == ["A1"]
    assert numbers(who(), exclude={"customer__country": "FR"}) == ["A2", "A3", "R1"]
    assert numbers(who(), any_of=[{"customer__name": "Bert"}, {"number": "A1"}]) == ["A1", "A2"]
    assert numbers(who(), filters={"customer__region__pk": shop.anne.region_id}) == ["A1"]
    assert numbers(who(), filters={"customer__region_id__isnull": False}) == ["A1"]


@pytest.mark.usefixtures("region")
def test_a_path_that_nobody_lists_is_shown_with_labels(shop):
    [row] = records(
        who(), Order, fields=["customer__name", "customer__region"], filters={"number": "A1"}
    )

    label = {"pk": shop.anne.region_id, "label": "North"}
    assert row == {"customer__name": "Anne", "customer__region": label}
    assert record(who(), Order, shop.a2.pk, fields=["customer__country"]) == {
        "customer__country": "DE"
    }


def test_groups_and_sums_by_rule(region):
    found = groups(
        who(), Line, group_by=["order__customer__country"], metrics={"sum": {"sum": "amount"}}
    )
    assert found == [
        {"order__customer__country": "DE", "sum": "5.00"},
        {"order__customer__country": "FR", "sum": "10.00"},
    ]
    assert groups(
        who(),
        Order,
        group_by=["customer__region"],
        metrics={"n": {"count": "*"}, "budget": {"max": "customer__region__budget"}},
    ) == [
        {"customer__region": {"pk": region.pk, "label": "North"}, "n": 1, "budget": 5},
        {"customer__region": None, "n": 3, "budget": None},
    ]


def test_many_values_filter_forwards_and_backwards():
    assert numbers(who(), filters={"tags__slug": "red"}) == ["A1"]
    assert numbers(who(), filters={"lines__sku": "x", "lines__amount__gte": 5}) == ["A1", "A2"]
    assert numbers(who(), filters={"lines__isnull": True}) == ["A3", "R1"]
    assert numbers(who(), exclude={"lines__sku": "x"}) == ["A3", "R1"]
    assert numbers(who(), filters={"watchers__username": "boss"}) == ["A1"]
    assert numbers(who(), filters={"notes__text": "hello"}) == ["A1"]
    assert numbers(who(), filters={"customer__orders__lines__sku": "y"}) == ["A1"]
    found = records(who(), Customer, filters={"orders__tags__slug": "blue"}, fields=["name"])
    assert [row["name"] for row in found] == ["Anne", "Bert"]


def test_a_one_to_one_relation_leads_both_ways():
    inherited = ruled({RushOrder: {"fields": "order_ptr number courier customer"}})
    rights = caller(tables=inherited)

    assert numbers(rights, filters={"rushorder__courier": "zed"}) == ["R1"]
    shown = records(rights, Order, fields=["rushorder__courier"], order_by=["-number"])
    assert [row["rushorder__courier"] for row in shown] == ["zed", None, None, None]
    assert numbers(rights, RushOrder, filters={"order_ptr__owner__username": "boss"}) == ["R1"]
    assert numbers(rights, RushOrder, filters={"customer__name__isnull": True}) == ["R1"]


# What it never does


class Judging(ModelExposure):
    """Its rows are judged one by one."""

    def has_view_permission(self, request, obj=None):
        return obj is None or obj.pk % 2 == 0


#: What closes a model to paths that lead to it.
CLOSING = [
    None,
    {"level": Level.AGGREGATES},
    {"level": Level.DEFINITION},
    {"follow_relations": False},
    {"bases": (Judging,)},
]
NAME, SKU = "customer__name", "lines__sku"
CLOSED = [
    *((NAME, {Customer: options}, {}) for options in (*CLOSING, {"fields": "country"})),
    *((SKU, {Line: options}, {}) for options in (*CLOSING, {"fields": "sku amount"})),
    *((NAME, {Order: {"exclude": [path]}}, {}) for path in ("customer", NAME)),
    *(
        (SKU, {model: {"exclude": [path]}}, {})
        for model, path in ((Order, "lines"), (Line, "order"))
    ),
    *((path, {Order: {"follow_relations": False}}, {}) for path in (NAME, SKU)),
    *(
        (NAME, {model: {"filter_fields": names}}, {})
        for model, names in ((Customer, "country"), (Order, "number"))
    ),
    (NAME, {}, {"may": lambda name: "customer" not in name}),
    (SKU, {}, {"may": lambda name: "line" not in name}),
    (NAME, {}, {"shown": {Customer: ["country"]}}),
    (SKU, {}, {"shown": {Line: ["sku"]}}),
    *(
        (path, {}, {"restriction": Restriction(models=frozenset({"nasty.order"}))})
        for path in (NAME, SKU)
    ),
]


@pytest.mark.parametrize(("path", "changes", "rights"), CLOSED, ids=range(len(CLOSED)))
def test_what_closes_a_path_closes_it_to_every_use(shop, path, changes, rights):
    closed = who(changes, **rights)

    assert refusal(records, closed, Order, filters={path: "x"})
    if path == SKU:
        sentence = refusal(records, closed, Order, include=["lines"])
        assert "'lines' cannot be used in include" in sentence
        sentence = refusal(groups, closed, metrics={"n": {"count": "lines"}})
        assert "'lines' cannot be used in count" in sentence


def test_an_excluded_path_is_excluded_behind_other_models_and_from_what_is_suggested():
    rights = who({Order: {"exclude": ["customer__name"]}})

    with pytest.raises(QueryError, match="order__customer has the operators"):
        records(rights, Line, filters={"order__customer__name": "x"})
    assert records(rights, Line, filters={"order__customer__country": "FR"})

    closed = who({Customer: {"exclude": ["orders__number"]}})
    sentence = refusal(records, closed, Customer, filters={"orders__number": "A1"})
    assert "orders__status" in sentence
    assert "orders__number" not in sentence


def test_a_list_of_an_exposure_still_narrows_and_closes_a_relation_to_its_use(shop):
    lists = {"order_fields": "number", "group_fields": "status", "metric_fields": "total"}
    rights = who({Order: lists})

    sentence = refusal(records, rights, Order, order_by=["customer__name"])
    assert "cannot be used in order_by" in sentence
    sentence = refusal(groups, rights, group_by=["customer__country"])
    assert "cannot be used in group_by" in sentence
    sentence = refusal(groups, rights, metrics={"n": {"count": "lines"}})
    assert "'lines' cannot be used in count" in sentence
    assert records(rights, Order, filters={"customer__name": "x"}) == []
    assert records(rights, Order, include=["lines"], filters={"lines__sku": "x"})


# The second stage, with the first out of the way


def guarded_rows(rights, model=Order, use="policy"):
    access = paths_of_call(
        rights, rights.exposed.exposures[model], {"filters": ["customer__region__name"]}
    )
    return guarded(rights.rows(model), getattr(access, use))


QUERIES = {
    "filter": lambda rows, path: rows.filter(Q((f"{path}__isnull", False))).values("number"),
    "order": lambda rows, path: rows.order_by(path).values("number"),
    "return": lambda rows, path: rows.values_list(path),
}
NUMBERS = {
    "group": lambda rows, path: rows.values(g=F(path)).annotate(n=Count("*")),
    "sum": lambda rows, path: rows.values(g=F("status")).annotate(n=Sum(path)),
}


@pytest.mark.parametrize(
    "path",
    [
        "customer__credit_rating",
        "customer__account_manager__username",
        "lines__sku",
        "customer__orders__number",
    ],
)
def test_the_guard_refuses_what_is_not_shown_or_was_not_looked_at(path):
    for make in QUERIES.values():
        with pytest.raises(Leak):
            str(make(guarded_rows(who()), path).query)
    for make in NUMBERS.values():
        with pytest.raises((Leak, FieldError)):
            str(make(guarded_rows(who(), use="group_policy"), path).query)


def test_the_guard_knows_the_lists_and_the_rows_of_a_caller():
    listed = who({Customer: {"order_fields": "name"}})
    with pytest.raises(Leak):
        str(QUERIES["order"](guarded_rows(listed), "customer__country").query)

    narrowed = who(narrow={Region: lambda rows: rows.filter(name="North")})
    with pytest.raises(Leak):
        str(QUERIES["return"](guarded_rows(narrowed), "customer__region__name").query)


# What a caller is told


def described(rights, model=Order):
    return describe(rights, rights.exposed.exposures[model])


def test_a_description_names_relations_and_no_path():
    found = described(who())

    assert found["relations"] == {"customer": "nasty.customer", "owner": "nasty.person"}
    assert found["many_relations"] == {
        "tags": "nasty.tag",
        "notes": "nasty.note",
        "watchers": "nasty.person",
        "watch": "nasty.watch",
        "lines": "nasty.line",
        "tricky": "nasty.tricky",
    }
    assert "customer__" not in str(found)
    assert "at most 3 relations" in found["paths"]
