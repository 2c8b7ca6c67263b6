"""Counts of related records as metrics: of those that the caller may see, and of no others."""

from __future__ import annotations

import pytest
from django.db.models import Avg, Count, Exists, F, OuterRef, Q, Subquery, Sum

from mcp_django.exceptions import Leak
from mcp_django.exposure.query.describe import describe
from mcp_django.exposure.query.guard import guarded
from mcp_django.exposure.query.paths_by_rule import paths_of_call
from mcp_django.exposure.query.related_counts import count_of_related
from tests.exposure.query.test_paths_by_rule import ruled, who
from tests.nasty.models import Customer, Line, Note, Order, Person, RushOrder, Watch
from tests.nasty.site import caller, groups, refusal

pytestmark = pytest.mark.usefixtures("shop")


def total(path, rights=None, model=Order, **arguments):
    [row] = groups(rights or who(), model, metrics={"n": {"count": path}}, **arguments)
    return row["n"]


# What is counted


#: How many related records there are, by model and path. A3 and R1 have no customer.
COUNTED = {
    Order: {"lines": 3, "tags": 3, "watchers": 1, "notes": 1, "tricky": 1, "customer__orders": 2},
    Person: {"orders": 4, "watched": 1},
    Customer: {
        "orders": 2,
        "orders__tags": 3,
        "orders__watchers__orders": 4,
        "account_manager__orders__lines": 3,
    },
    Line: {"order__tags": 5, "order__customer__orders": 3},
    Watch: {"order__lines": 2},
    RushOrder: {"customer__orders": 0},
}


@pytest.mark.parametrize("model", COUNTED)
def test_each_kind_of_relation_is_counted(shop, model):
    # A note whose number is that of an order, and that belongs to a customer.
    Note.objects.create(target=shop.anne, text="of a customer")
    Note.objects.filter(text="of a customer").update(object_id=shop.a1.pk)

    assert {path: total(path, model=model) for path in COUNTED[model]} == COUNTED[model]


def test_relations_of_a_parent_are_counted(shop):
    fields = "order_ptr number courier customer"
    rights = caller(tables=ruled({RushOrder: {"fields": fields, "more_filter_fields": "tags"}}))
    Line.objects.create(order=shop.r1, sku="r", amount=1)
    shop.r1.tags.add(shop.red)

    for path in ("lines", "tags", "order_ptr__lines"):
        assert total(path, rights, RushOrder) == 1


def test_a_record_that_is_reached_twice_counts_once_for_each_record(shop):
    Watch.objects.create(order=shop.a1, person=shop.boss)
    Watch.objects.create(order=shop.a2, person=shop.boss)

    assert (total("watchers"), total("watch")) == (2, 3)
    assert total("orders__watchers", model=Customer) == 2


def test_metrics_beside_each_other_do_not_multiply():
    metrics = {
        "orders": {"count": "*"},
        "revenue": {"sum": "total"},
        "lines": {"count": "lines"},
        "tags": {"count": "tags"},
        "customers": {"count": "customer"},
    }

    assert groups(who(), group_by=["status"], metrics=metrics) == [
        {"status": "new", "orders": 2, "revenue": "20.00", "lines": 1, "tags": 1, "customers": 1},
        {"status": "paid", "orders": 2, "revenue": "10.00", "lines": 2, "tags": 2, "customers": 1},
    ]


# What the caller may see


@pytest.mark.parametrize(
    ("path", "closed"),
    [
        ("customer__orders", {Customer: {"follow_relations": False}}),
        ("customer__orders", {Customer: {"metric_fields": "name"}}),
        ("customer__orders", {Order: {"metric_fields": "total"}}),
        ("watchers__orders", {Watch: None}),
        ("watchers__orders", {Person: {"filter_fields": "username"}}),
    ],
)
def test_what_closes_a_model_on_the_way_makes_the_count_unknown(path, closed):
    assert total(path) >= 0
    assert f"'{path}' cannot be used in count." in refusal(total, path, who(closed))


@pytest.mark.parametrize(
    ("model", "path"),
    [(Line, "lines"), (Line, "customer__orders__lines"), (Watch, "customer__orders__watchers")],
)
def test_a_path_over_a_model_with_a_smallest_group_is_not_counted(model, path, shop):
    rights, label = who({model: {"smallest_group": 3}}), model._meta.label_lower

    assert refusal(total, path, rights) == (
        f"metrics: {path} cannot be counted here: {label} gives numbers about 3 or more "
        f"records at a time. Call aggregate_records with the model {label}."
    )
    with pytest.raises(Leak, match="An undeclared count of related rows"):
        compiled(rights, Order, path)


@pytest.mark.parametrize(
    "path",
    ["lines__cost", "lines__sku", "lines__nothing", "lines__order", "tags__order", "watch__tags"],
)
def test_no_other_path_is_counted_and_another_function_is_refused_with_what_works(path):
    assert f"'{path}' cannot be used in count." in refusal(total, path)
    said = refusal(groups, who(), metrics={"n": {"sum": "customer__orders"}})
    assert 'Count it, as in {"orders": {"count": "customer__orders"}}.' in said
    assert "Ask nasty.order for it." in said


# What a caller is told


def test_a_description_says_what_can_be_counted():
    def told(changes=None):
        rights = who(changes)
        return describe(rights, rights.exposed.exposures[Order])["paths"]

    usual = ' A metric can count them, also at the end of a path: {"count": "tags"}.'
    assert told().endswith(usual)
    some = 'A metric can count tags, notes, watchers, watch, tricky, also at the end of a path: {"'
    assert some in told({Line: {"smallest_group": 3}})
    assert "metric" not in told({Order: {"metric_fields": "total"}})


# The second stage, with the first out of the way


def access_to(rights, model, *paths):
    arguments = {"metrics": {path: {"count": path} for path in paths}}
    return paths_of_call(rights, rights.exposed.exposures[model], arguments)


def grouped_rows(rights, model, *paths):
    policy = access_to(rights, model, *paths).group_policy
    return guarded(rights.rows(model), policy).values(g=F("pk"))


def compiled(rights, model, path, *, asked=None):
    """The SQL that counts a path, for a call that asked for a path which may be counted."""
    related = count_of_related(
        rights, access_to(rights, model, path).counted[path], using="default"
    )
    rows = grouped_rows(rights, model, asked or path)
    query = rows.annotate(n=Sum(related)).query
    return query.get_compiler("default").as_sql()


def test_the_guard_knows_only_models_that_were_looked_at():
    with pytest.raises(Leak, match="An undeclared count of related rows"):
        compiled(who(), Order, "lines", asked="tags")


def test_the_guard_asks_for_the_rows_that_a_caller_sees(shop):
    everybody = who()
    related = count_of_related(
        everybody, access_to(everybody, Order, "lines").counted["lines"], using="default"
    )
    narrowed = who(narrow={Line: lambda rows: rows.filter(sku="y")})
    rows = grouped_rows(narrowed, Order, "lines")

    with pytest.raises(Leak, match=r"A count of all rows of nasty\.Line"):
        str(rows.annotate(n=Sum(related)).query)


def lines_counted(change=lambda rows: rows, *, tie=None, name="lines"):
    """A count of lines, made by hand or changed, over orders."""
    rights = who()
    found = count_of_related(rights, access_to(rights, Order, name).counted[name], using="default")
    query = found.query
    if tie is not None:
        query.where.children.clear()
        query.add_q(tie)
    change(query)
    return found


def negated(query):
    query.where.negate()


def compared(query):
    query.add_q(Q(("order_id__gt", OuterRef("margin"))))


def alone(query):
    query.policy = guarded(who().rows(Line), access_to(who(), Line).policy).query.policy


ODD = {
    "nothing ties them": lambda: lines_counted(tie=Q(("order_id__exact", 1))),
    "another operator": lambda: lines_counted(tie=Q(("order_id__gt", OuterRef("pk")))),
    "a hidden column of the record": lambda: lines_counted(
        tie=Q(("order_id__exact", OuterRef("margin")))
    ),
    "a column of their own": lambda: lines_counted(
        compared, tie=Q(("order_id__exact", F("order_id")))
    ),
    "a comparison besides": lambda: lines_counted(compared),
    "all that are not theirs": lambda: lines_counted(negated),
    "no policy for it": lambda: lines_counted(alone),
    "no guard": lambda: Subquery(
        Line.objects.filter(order=OuterRef("pk")).order_by().values("order").annotate(n=Count("*"))
    ),
}


#: What is done with a count that is tied as it should be.
AROUND = {
    "average": lambda rows, count: rows.annotate(n=Avg(count)),
    "distinct": lambda rows, count: rows.annotate(n=Sum(count, distinct=True)),
    "alone": lambda rows, count: rows.annotate(n=count),
    "filter": lambda rows, count: rows.alias(n=count).filter(n=1),
    "exists": lambda rows, count: rows.filter(Exists(count.query)),
}


CASES = {
    **{
        name: (make, lambda rows, count: rows.annotate(n=Sum(count))) for name, make in ODD.items()
    },
    **{name: (lines_counted, use) for name, use in AROUND.items()},
}


@pytest.mark.parametrize("name", CASES)
def test_the_guard_refuses_a_count_that_is_tied_or_used_otherwise(name):
    make, use = CASES[name]
    rows = use(grouped_rows(who(), Order, "lines"), make())

    with pytest.raises(Leak):
        str(rows.query)
