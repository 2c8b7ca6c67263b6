from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth.models import User

from mcp_django.exposure.admin_sites import exposure_of
from mcp_django.exposure.paths import FILTER, RETURN, SEARCH, Declaration
from tests.shop.models import Customer, Order


def expose(model=Order, **attributes):
    kind = type("SomeAdmin", (admin.ModelAdmin,), attributes)
    return exposure_of(kind(model, admin.site))


def test_without_named_fields_the_list_and_the_form_are_shown():
    exposure = expose(list_display=["number", "shout"], fields=["status", ("total", "number")])

    assert exposure.fields == ("id", "number", "status", "total")


def test_fieldsets_and_readonly_fields_count_as_the_form():
    exposure = expose(
        list_display=["__str__"],
        fieldsets=[(None, {"fields": ["number", ("status", "total")]})],
        readonly_fields=["placed_at"],
    )

    assert exposure.fields == ("id", "number", "status", "total", "placed_at")


def test_without_any_declaration_the_editable_columns_are_shown():
    exposure = expose(exclude=["margin"])

    assert exposure.fields == ("id", "number", "customer", "status", "total", "placed_at")


def test_what_looks_secret_is_shown_only_where_it_is_named():
    hidden = expose(User, list_display=["username", "password"], search_fields=["password"])
    named = expose(User, mcp_fields=["username", "password"])

    assert "password" not in hidden.fields
    assert hidden.search_fields == ()
    assert named.fields == ("username", "password")


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


@pytest.mark.parametrize(
    "path", ["nothing", "customer__nothing", "number__year", "customer__password"]
)
def test_filters_and_search_that_lead_nowhere_are_left_out(path):
    exposure = expose(mcp_fields=["number"], list_filter=[path], search_fields=[path])

    assert exposure.more_filter_fields == ()
    assert exposure.search_fields == ()


def test_filter_classes_are_left_to_people():
    class Mine(admin.SimpleListFilter):
        title = parameter_name = "mine"

    exposure = expose(mcp_fields=["number"], list_filter=[Mine, "status"])

    assert exposure.more_filter_fields == ("status",)


def test_order_and_actions_are_taken_over():
    exposure = expose(mcp_fields=["number"], ordering=["-number"], mcp_actions=["pay"])

    assert exposure.ordering == ("-number",)
    assert exposure.actions == ("pay",)


def test_the_keys_of_the_model_may_be_filtered_by():
    exposure = expose(Customer, mcp_fields=["name"], list_filter=["pk"])

    assert exposure.more_filter_fields == ("pk",)
