"""Rules of the site that are easily asked in the wrong way, or for somebody else."""

from __future__ import annotations

import itertools

import pytest
from django.contrib.admin import AdminSite, ModelAdmin
from django.core import checks

from mcp_django.exceptions import QueryError
from mcp_django.exposure.admin_sites import AdminSource
from mcp_django.exposure.query.access import allowed_paths
from mcp_django.exposure.query.arguments import FindRecords
from mcp_django.exposure.query.find import find_records
from mcp_django.testing import Client
from tests.nasty import models
from tests.nasty.site import REGISTRY, caller, registry
from tests.shop.models import Order

pytestmark = pytest.mark.django_db


class PersonAdmin(ModelAdmin):
    def get_fields(self, request, obj=None):
        # People are made with a salary, and nobody sees it afterwards.
        return ["username", "salary"] if obj is None else ["username"]


@pytest.mark.parametrize(
    ("has_rows", "may_add", "fields"),
    [(True, True, {"username"}), (False, True, {"username", "salary"}), (False, False, set())],
)
def test_without_a_record_there_are_the_fields_of_the_add_form_for_who_may_add(
    rf, make_user, has_rows, may_add, fields
):
    request = rf.get("/")
    request.user = make_user(is_superuser=may_add)
    source = AdminSource(PersonAdmin(models.Person, AdminSite(name="x")))
    if has_rows:
        models.Person.objects.create(username="ada")

    shown = source.shown(request, models.Person.objects.all())

    assert shown == {"id", "__str__", *fields}


def test_a_misspelt_admin_site_is_an_error_and_opens_no_door(make_user, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "ADMIN_SITES": ["admn"]}
    Order.objects.create(number="A1")

    found = checks.run_checks(tags=["mcp_django"])
    answer = Client(user=make_user("clerk", "view_order")).call_tool(
        "find_records", model="shop.order"
    )

    assert "mcp_django.E007" in [one.id for one in found]
    assert answer.is_error


class Replicas:
    """Another replica for each read."""

    turn = itertools.cycle(["default", "replica"])

    def db_for_read(self, model, **hints):
        return next(self.turn)


def test_a_router_that_takes_turns_changes_no_paths(settings):
    settings.DATABASE_ROUTERS = [Replicas()]

    found = {
        tuple(allowed_paths(caller(), REGISTRY.exposures[models.Order]).names("filter"))
        for _ in range(6)
    }

    assert len(found) == 1
    assert "customer__country" in next(iter(found))


SIGHTS = {
    "all": {},
    "no total": {"shown": {models.Order: ["id", "number"]}},
    "one row": {"narrow": {models.Order: lambda rows: rows.filter(number="A1")}},
    "no customers": {"may": lambda perm: "customer" not in perm},
    "one customer": {"narrow": {models.Customer: lambda rows: rows.filter(name="x")}},
}
CALLS = [
    {},
    {"fields": ["number"]},
    {"fields": ["number", "customer"], "order_by": ["-number"]},
    {"filters": {"number": "A1"}},
    {"filters": {"customer__name__isnull": True}, "limit": 2},
    {"order_by": ["total"]},
    {"search": "A"},
]


def answer(rights, arguments):
    call = FindRecords(model="nasty.order", **arguments)
    try:
        return find_records(rights, rights.registry.exposures[models.Order], call).encoded
    except QueryError as refusal:
        return str(refusal)


def test_callers_of_different_rights_share_no_answers():
    owner = models.Person.objects.create(username="boss")
    for number in (1, 2, 3):
        models.Order.objects.create(owner=owner, number=f"A{number}")
    questions = list(itertools.product(SIGHTS, range(len(CALLS))))
    alone = {
        (name, at): answer(caller(**SIGHTS[name], tables=registry()), CALLS[at])
        for name, at in questions
    }
    shared = registry()

    together = [
        answer(caller(**SIGHTS[name], tables=shared), CALLS[at])
        for name, at in [*questions, *reversed(questions)]
    ]

    assert len(set(alone.values())) > 10
    assert together == [*alone.values(), *reversed(alone.values())]
