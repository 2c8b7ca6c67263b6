"""Rules of the site that are easily asked in the wrong way, or for somebody else."""

from __future__ import annotations

import itertools

import pytest
from django.contrib.admin import AdminSite, ModelAdmin
from django.core import checks

from mcp_django.exposure.admin_sites import AdminSource
from mcp_django.exposure.query.access import allowed_paths
from mcp_django.testing import Client
from tests.nasty import models
from tests.nasty.site import REGISTRY, caller
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
