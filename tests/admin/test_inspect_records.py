"""What can it see: the fields of a model and some of its records."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.db import models
from django.test.utils import isolate_apps

import mcp_django as mcp
from mcp_django.admin.inspect.access import as_text
from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from tests.admin.looking import (
    allow,
    decide,
    row_of,
    text_of,
)
from tests.library.models import Author, Book
from tests.shop.models import Customer, Ledger, Memo, Order

pytestmark = pytest.mark.django_db


# Fields and records


@pytest.fixture
def orders():
    ada = Customer.objects.create(name="Ada", country="FR", credit_rating=7)
    return [
        Order.objects.create(number=f"A-{n}", customer=ada, total=n, margin=99) for n in range(5)
    ]


def test_fields_that_the_admin_hides_from_the_user_say_so(look, bob, monkeypatch):
    Order.objects.create(number="A1")
    order_admin = admin.site.get_model_admin(Order)

    def get_fields(self, request, obj=None):
        return ["number"] if request.user.get_username() == "bob" else ["number", "status"]

    monkeypatch.setattr(type(order_admin), "get_fields", get_fields, raising=False)
    monkeypatch.setattr(type(order_admin), "list_display", ["number"])
    response = look(model="shop.order")

    assert "The site does not show status of shop.order" in row_of(response, "status")
    # And what it hides from both is not named at all.
    assert "margin" not in text_of(response)


def test_what_looks_secret_and_what_code_excludes_say_so(look, looker, bob):
    user_model = type(bob)
    mcp.register(user_model, fields=["id", "username", "email"], exclude=["email"])
    try:
        response = look(model="auth.user")
    finally:
        registry.unregister(user_model)

    assert "does not have the permission auth.view_user" in text_of(response)
    allow(bob, "auth.view_user")
    mcp.register(user_model, fields=["id", "username", "email"], exclude=["email"])
    try:
        response = look(model="auth.user")
    finally:
        registry.unregister(user_model)
    assert "It looks secret" in row_of(response, "password")
    assert "Code excludes it." in row_of(response, "email")


def test_three_records_are_shown_that_both_may_see(look, bob, orders):
    response = look(model="shop.order")

    assert "yes show, filter, order" in row_of(response, "number")
    assert "yes filter" in row_of(response, "customer__country")
    assert len(response.context["model"]["rows"]["rows"]) == 3
    assert "A-0" in text_of(response)
    assert "margin" not in response.context["model"]["rows"]["columns"]


def test_no_record_is_shown_that_the_looker_would_not_get(look, bob, orders, monkeypatch):
    order_admin = admin.site.get_model_admin(Order)

    def get_queryset(self, request):
        rows = Order.objects.all()
        return rows if request.user.get_username() == "bob" else rows.filter(number="A-3")[:1]

    monkeypatch.setattr(type(order_admin), "get_queryset", get_queryset, raising=False)
    text = text_of(look(model="shop.order"))
    Order.objects.filter(number="A-3").delete()

    assert "A-3" in text
    assert "A-0" not in text
    nothing = text_of(look(model="shop.order"))
    assert "There is no record that both of you may see." in nothing


def test_no_value_is_shown_that_the_looker_would_not_get(look, bob, orders, monkeypatch):
    order_admin = admin.site.get_model_admin(Order)

    def get_fields(self, request, obj=None):
        return ["number", "total"] if request.user.get_username() == "bob" else ["number"]

    monkeypatch.setattr(type(order_admin), "get_fields", get_fields, raising=False)
    monkeypatch.setattr(type(order_admin), "list_display", ["number"])
    response = look(model="shop.order")

    assert set(response.context["model"]["rows"]["columns"]) == {"id", "number"}
    assert "total" not in text_of(response)


def test_a_label_that_only_the_user_would_get_is_left_out(look, looker, bob):
    class Authors(mcp.ModelExposure):
        fields = ["id", "name"]
        label_fields = ["name"]

        def get_queryset(self, request):
            rows = Author.objects.all()
            return rows if request.user == bob else rows.filter(name="Ada")

    for name in ("Ada", "Eve"):
        Book.objects.create(title=f"On {name}", author=Author.objects.create(name=name))
    for user in (looker, bob):
        allow(user, "library.view_book", "library.view_author")
    mcp.register(Author)(Authors)
    mcp.register(Book, fields=["id", "title", "author"])
    try:
        response = look(model="library.book")
    finally:
        registry.unregister(Author)
        registry.unregister(Book)

    shown = response.context["model"]["rows"]
    assert shown["columns"] == ["id", "title", "author"]
    of_ada, of_eve = shown["rows"]
    assert of_ada[2].startswith("Ada (")
    assert of_eve[1] == "On Eve"
    assert '"label": null' in of_eve[2]
    assert "Eve (" not in text_of(response)


def test_a_model_of_numbers_shows_no_records(look, bob, orders):
    decide("shop.order", level=Level.AGGREGATES)

    response = look(model="shop.order")

    assert "rows" not in response.context["model"]
    assert "A-0" not in text_of(response)


@pytest.mark.parametrize("label", ["shop.nothing", "auth.permission", "<script>", "shop.ORDER"])
def test_labels_that_are_none_of_the_lookers_models_say_one_thing(look, bob, label):
    assert "There is no such model that you may see." in text_of(look(model=label))


def test_paths_through_records_of_which_the_user_sees_some_say_so(look, looker, bob):
    class Authors(mcp.ModelExposure):
        fields = ["id", "country"]

        def get_queryset(self, request):
            rows = Author.objects.all()
            return rows.filter(country="FR") if request.user == bob else rows

    mcp.register(Author)(Authors)
    mcp.register(Book, fields=["id", "author__country"], filter_fields=["id"])
    for user in (looker, bob):
        allow(user, "library.view_book", "library.view_author")
    try:
        row = row_of(look(model="library.book"), "author__country")
    finally:
        registry.unregister(Author)
        registry.unregister(Book)

    assert "of which this user sees some" in row


def test_columns_that_the_admin_does_not_have_say_so(look, bob, monkeypatch):
    ledger_admin = type(admin.site.get_model_admin(Ledger))
    monkeypatch.setattr(ledger_admin, "list_display", ["id"])
    monkeypatch.setattr(ledger_admin, "exclude", ["amount"])
    registry.forget_resolved()
    allow(bob, "shop.view_ledger")
    decide("shop.ledger", level=Level.READ)
    try:
        row = row_of(look(model="shop.ledger"), "amount")
    finally:
        registry.forget_resolved()

    assert "neither in the list nor in the form" in row


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"value": "new", "label": "New"}, "New (new)"),
        ({"id": 5, "label": "Ada"}, "Ada (5)"),
        ({"label": 5, "a": 1}, '{"label": 5, "a": 1}'),
        ({"a": "ä"}, '{"a": "ä"}'),
        (None, "-"),
        ("x", "x"),
        (1.5, "1.5"),
    ],
)
def test_values_are_shown_as_people_read_them(value, text):
    assert as_text(value) == text


def test_long_values_are_cut(look, bob, looker):
    allow(bob, "shop.view_memo")
    Memo.objects.create(text="x" * 5000, code="long")

    page = look(model="shop.memo").content.decode()

    assert "x" * 200 + "…" in page
    assert "x" * 201 not in page


def test_a_model_without_a_table_says_so(look, looker, bob):
    with isolate_apps("tests.shop"):

        class Ghost(models.Model):
            name = models.CharField(max_length=5)

            class Meta:
                app_label = "shop"

    class GhostExposure(mcp.ModelExposure):
        fields = ["id", "name"]

        def has_view_permission(self, request, obj=None):
            return True

    registry.register(Ghost, GhostExposure)
    try:
        assert "yes" in row_of(look(), "shop.ghost")
        assert "The database cannot read it." in text_of(look(model="shop.ghost"))
    finally:
        registry.unregister(Ghost)


def test_a_declaration_that_is_wrong_says_so(look, bob):
    mcp.register(Ledger, fields=["id", "nothing"])
    try:
        allow(bob, "shop.view_ledger")
        assert "Ledger has no field nothing" in text_of(look(model="shop.ledger"))
    finally:
        registry.unregister(Ledger)
