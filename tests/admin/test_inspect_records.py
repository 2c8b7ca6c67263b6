"""What can it see: the fields of a model and some of its records."""

from __future__ import annotations

import pytest
from django.contrib import admin

from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from tests.admin.looking import allow, many_models, row_of, text_of
from tests.decisions import decide
from tests.library.models import Author, Book
from tests.shop.models import Customer, Ledger, Order

pytestmark = pytest.mark.django_db


# Fields and records


@pytest.fixture
def orders():
    ada = Customer.objects.create(name="Ada", country="FR", credit_rating=7)
    return [
        Order.objects.create(number=f"A-{n}", customer=ada, total=n, margin=99) for n in range(5)
    ]


@pytest.mark.parametrize("narrow", ["bob", "looker"])
def test_a_field_that_the_admin_hides_from_one_of_both_has_no_value(
    look, bob, orders, monkeypatch, narrow
):
    order_admin = type(admin.site.get_model_admin(Order))

    def get_fields(self, request, obj=None):
        is_narrow = request.user.get_username() == narrow
        return ["number"] if is_narrow else ["number", "status"]

    monkeypatch.setattr(order_admin, "get_fields", get_fields, raising=False)
    monkeypatch.setattr(order_admin, "list_display", ["number"])

    response = look(model="shop.order")

    assert set(response.context["model"]["rows"]["columns"]) == {"id", "number"}
    # What it hides from the looker is not named at all, and from the user it says so.
    assert ("status" in text_of(response)) is (narrow == "bob")
    if narrow == "bob":
        assert "The site does not show status of shop.order" in row_of(response, "status")
    assert "margin" not in text_of(response)


def test_what_looks_secret_and_what_code_excludes_say_so(look, looker, bob, expose):
    expose(type(bob), fields=["id", "username", "email"], exclude=["email"])
    before = text_of(look(model="auth.user"))
    allow(bob, "auth.view_user")

    response = look(model="auth.user")

    assert "does not have the permission auth.view_user" in before
    assert "It looks secret" in row_of(response, "password")
    assert "Code excludes it." in row_of(response, "email")


def test_three_records_are_shown_that_both_may_see(look, bob, orders):
    Order.objects.filter(number="A-0").update(status="x" * 500)
    response = look(model="shop.order")

    assert "x" * 200 + "…" in text_of(response)
    assert "x" * 201 not in text_of(response)
    assert "yes show, filter, order" in row_of(response, "number")
    assert "yes filter" in row_of(response, "customer__country")
    assert len(response.context["model"]["rows"]["rows"]) == 3
    assert "A-0" in text_of(response)
    assert "margin" not in response.context["model"]["rows"]["columns"]
    # Which rows both see: tests/admin/test_prompt_previews.py.
    Order.objects.all().delete()
    nothing = text_of(look(model="shop.order"))
    assert "There is no record that both of you may see." in nothing


def test_of_related_records_that_one_of_both_sees_none_is_named(look, looker, bob, expose):
    narrow = ["looker"]

    def get_queryset(self, request):
        is_narrow = request.user.get_username() in narrow
        return Author.objects.filter(**{"name": "Ada"} if is_narrow else {})

    for name in ("Ada", "Eve"):
        Book.objects.create(title=f"On {name}", author=Author.objects.create(name=name))
    for user in (looker, bob):
        allow(user, "library.view_book", "library.view_author")
    fields = ["id", "name", "country"]
    expose(Author, fields=fields, label_fields=["name"], get_queryset=get_queryset)
    expose(Book, fields=["id", "title", "author", "author__country"], filter_fields=["id"])
    response = look(model="library.book")
    narrow[:] = ["bob"]
    row = row_of(look(model="library.book"), "author__country")

    assert "of which this user sees some" in row
    shown = response.context["model"]["rows"]
    assert shown["columns"][:3] == ["id", "title", "author"]
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


def test_what_cannot_be_read_says_why(look, bob, expose):
    expose(Ledger, fields=["id", "nothing"])
    allow(bob, "shop.view_ledger")
    with many_models(1):
        ghost = text_of(look(model="shop.many0"))

    assert "The database cannot read it." in ghost
    assert "Ledger has no field nothing" in text_of(look(model="shop.ledger"))


@pytest.mark.parametrize("label", ["shop.nothing", "auth.permission", "<script>", "shop.ORDER"])
def test_labels_that_are_none_of_the_lookers_models_say_one_thing(look, bob, label):
    assert "There is no such model that you may see." in text_of(look(model=label))


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
