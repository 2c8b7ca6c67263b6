"""Holes that a site could have, and what finds them."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

import mcp_django as mcp
from mcp_django.exposure.registry import registry
from mcp_django.models import PersonalToken
from mcp_django.testing.leaks import check_leaks, find_leaks
from tests.shop.models import Customer, Ledger, Order

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]

CUSTOMER = ["view_customer"]
BOTH = ["view_customer", "view_order"]


def in_france(self, request):
    return type(self).__mro__[1].get_queryset(self, request).filter(country="FR")


def of_france(self, request):
    return type(self).__mro__[1].get_queryset(self, request).filter(customer__country="FR")


#: What the pages of the admin show, and the rows.
ADMINS = {
    Customer: {
        "fields": ["name", "country"],
        "search_fields": ["name"],
        "get_queryset": in_france,
    },
    Order: {
        "fields": ["number", "customer", "status", "total"],
        "search_fields": ["number"],
        "list_filter": ["status"],
    },
}
SAFE = {
    Customer: {"fields": ["id", "name", "country"], "search_fields": ["name"]},
    Order: {
        "fields": ["id", "number", "customer", "status", "total"],
        "filter_fields": ["id", "number", "customer__name"],
        "search_fields": ["number"],
    },
}


def everything(self, request):
    return self.model._base_manager.all()


def anybody(self, request, obj=None):
    return True


NAMES = ["id", "name", "country"]
RATED = {"fields": [*NAMES, "credit_rating"]}
FILTERED = {"filter_fields": [*NAMES, "credit_rating"]}
ALL_ROWS = {"get_queryset": everything}
OPEN = {"get_queryset": everything, "has_view_permission": anybody}
HOLES = {
    "a queryset of its own": (ALL_ROWS, BOTH, "3 records, of which the admin shows 2"),
    "a record by its key": (ALL_ROWS, BOTH, "'get_record'.*hides this record"),
    "the resource of a record": (ALL_ROWS, BOTH, "read_resource.*hides this record"),
    "a model without its permission": (OPEN, ["view_order"], "describe_model.*hides this model"),
    "records without the permission": (OPEN, ["view_order"], "of which the admin shows 0"),
    "a hidden column": (RATED, BOTH, r"fields=\['credit_rating'\]"),
    "a group of it": (RATED, BOTH, r"group_by=\['credit_rating'\]"),
    "a metric of it": (RATED, BOTH, "metrics={'n': {'max': 'credit_rating'}}"),
    "a filter by it": (FILTERED, BOTH, "filters={'credit_rating': "),
    "a lookup of it": (FILTERED, BOTH, "filters={'credit_rating__gte': "),
    "whether it is empty": (FILTERED, BOTH, "exclude={'credit_rating__isnull': "),
    "an order by it": (
        {**FILTERED, "order_fields": [*NAMES, "credit_rating"]},
        BOTH,
        r"order_by=\['credit_rating'\]",
    ),
    "a search in it": ({"search_fields": ["name", "credit_rating"]}, BOTH, "search='7654321'"),
}


@pytest.fixture
def site(change_admin, make_user):
    def make(rights, changes=()):
        for model, attributes in ADMINS.items():
            change_admin(model, **attributes)
        for model, options in SAFE.items():
            options = {**options, **dict(changes).get(model, {})}
            registry._classes[model] = type("Exposed", (mcp.ModelExposure,), options)
        registry.forget_resolved()
        return make_user("clerk", *rights, is_staff=True)

    before = dict(registry._classes)
    customers = [
        Customer.objects.create(name=name, country=country, credit_rating=7654321 + n)
        for n, (name, country) in enumerate(
            [("Amélie", "FR"), ("Bernard", "FR"), ("Hannelore", "DE")]
        )
    ]
    for n, customer in enumerate(customers):
        Order.objects.create(number=f"number {n}", customer=customer, margin=9870000 + n)
    Ledger.objects.create(amount=1234567)
    yield make
    registry._classes = before
    registry.forget_resolved()


@pytest.mark.parametrize("rights", [[], CUSTOMER, ["view_order"], BOTH], ids=str)
def test_a_site_that_asks_its_admin_has_no_leaks(site, rights):
    assert find_leaks(site(rights), budget=600) == []


@pytest.mark.parametrize(("options", "rights", "line"), HOLES.values(), ids=HOLES)
def test_a_hole_is_found(site, options, rights, line):
    user = site(rights, {Customer: options})

    with pytest.raises(AssertionError, match=line):
        check_leaks(users=[user], budget=600)


def test_the_command_names_what_it_finds_and_leaves_no_token(site, capsys):
    site(BOTH, {Customer: FILTERED})

    with pytest.raises(CommandError, match="tell more than the admin shows"):
        call_command("mcp_leaktest", "clerk", budget=600)

    assert "as clerk: client.call_tool('aggregate_records'" in capsys.readouterr().out
    assert not PersonalToken.objects.exists()
