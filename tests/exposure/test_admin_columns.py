"""Columns of the admin's list that are no fields: which there are, and what they are called."""

from __future__ import annotations

from django.contrib.admin import AdminSite, ModelAdmin
from django.test import RequestFactory

from mcp_django.exposure.admin_columns import columns_of
from mcp_django.exposure.decisions import in_one_order
from tests.shop.models import Customer, Ledger, Order


class Callable:
    def __call__(self, order):
        return 1


def columns(*items, listed=None, **attributes):
    """The columns of an admin whose list has these items."""
    kind = type("SomeAdmin", (ModelAdmin,), {"list_display": list(items), **attributes})
    return columns_of(kind(Order, AdminSite()), RequestFactory().get("/"), listed)


def test_a_list_has_the_text_of_its_records_where_the_model_has_one():
    def listed(model):
        model_admin = ModelAdmin(model, AdminSite())
        return list(columns_of(model_admin, RequestFactory().get("/"), None))

    assert (listed(Customer), listed(Ledger)) == (["__str__"], [])


def test_a_function_is_the_same_in_the_digest_of_every_process():
    assert in_one_order([columns]) == '[["columns"]]'


def test_what_has_no_name_or_looks_secret_is_no_column_unless_code_names_it():
    odd = [lambda order: 1, Callable(), None, 5, "", "no name", "delete", ["number"]]
    secret = {"api_key": lambda self, order: "x"}

    assert columns(*odd, "api_key", **secret) == {}
    assert list(columns(listed=[*odd, "api_key"], **secret)) == ["api_key"]
