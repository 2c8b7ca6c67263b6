"""Fields and models of packages: each can be read, and none takes the rest of its model away."""

from __future__ import annotations

import pytest
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import BaseUserCreationForm
from djmoney.money import Money

from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import Declaration
from mcp_django.exposure.uris import COLLECTION
from mcp_django.levels import Level
from mcp_django.models import ExposedModel
from mcp_django.testing.client import rows_as_objects
from tests.clients import CheckedClient
from tests.decisions import open_model
from tests.sites.bakery.models import (
    Cake,
    Category,
    Fee,
    Notice,
    Page,
    Pie,
    Product,
    Region,
    Tart,
    Tour,
)

pytestmark = pytest.mark.django_db

MODELS = ["page", "tour", "cake", "pie", "tart", "category", "region", "product", "notice"]


@pytest.fixture
def people(make_user, superuser):
    """The four kinds of users that there are."""
    views = [f"view_{name}" for name in MODELS]
    changes = [f"{verb}_{name}" for verb in ("add", "change") for name in MODELS]
    return {
        "superuser": superuser,
        "staff": make_user("staff", *views, *changes, is_staff=True),
        "viewer": make_user("viewer", *views, is_staff=True),
        "outsider": make_user("outsider", *views, *changes),
    }


@pytest.fixture
def page():
    return Page.objects.create(title="Rye", body=[("heading", "Flour"), ("list", ["a", "b"])])


@pytest.fixture
def tour():
    return Tour.objects.create(
        name="Alps", start="CH", stops=["CH", "FR"], price=Money("12.50", "EUR")
    )


def updated(client, model, pk, *, dry_run=False, **values):
    return client.data("update_record", model=model, pk=pk, values=values, dry_run=dry_run)


@pytest.mark.parametrize("kind", ["superuser", "staff", "viewer"])
def test_whoever_may_view_reads_every_field(connect, people, kind, page, tour):
    client = connect(people[kind])

    found = client.data("find_records", model=Tour, filters={"start": "CH"})
    read = client.read_resource(f"django://objects/bakery.tour/{tour.pk}")
    (blocks,) = rows_as_objects(client.read_resource("django://objects/bakery.page"))

    assert rows_as_objects(found) == [
        {
            "id": tour.pk,
            "name": "Alps",
            "start": "CH",
            "stops": "CH,FR",
            "price": "12.50",
        }
    ]
    assert read["stops"] == "CH,FR"
    assert [(one["type"], one["value"]) for one in blocks["body"]][:1] == [("heading", "Flour")]


def test_a_field_of_several_choices_is_described_filtered_grouped_and_completed(boss, tour):
    Tour.objects.create(name="Coast", stops=["IT"])

    described = boss.data("describe_model", model=Tour)
    found = boss.data(
        "find_records", model=Tour, filters={"stops__contains": "FR"}, fields=["name"]
    )
    groups = boss.data("aggregate_records", model=Tour, group_by=["start"])
    completed = boss.complete(COLLECTION.text, "stops", "I", model="bakery.tour")

    fields = {one["name"]: one for one in described["fields"]}
    assert "choices" not in fields["stops"]
    assert fields["start"]["choices"]
    assert rows_as_objects(found) == [{"name": "Alps"}]
    assert [one["start"] for one in rows_as_objects(groups)] == ["", "CH"]
    assert completed == ["IT"]


def blocks_of(page):
    return [(one.block_type, one.value) for one in Page.objects.get(pk=page.pk).body]


@pytest.mark.parametrize("kind", ["superuser", "staff"])
def test_the_other_fields_of_a_model_with_blocks_can_be_written(connect, people, kind, page):
    client = connect(people[kind])
    before = blocks_of(page)

    changed = updated(client, Page, page.pk, title="Spelt")
    made = client.data("create_record", model=Page, values={"title": "Oat"})

    assert list(changed["changed"]) == ["title"]
    assert changed["changed"]["title"][1] == "Spelt"
    assert [str(one) for one in blocks_of(page)] == [str(one) for one in before]
    assert made["record"]["title"] == "Oat"
    assert made["record"]["body"] == []


def test_a_field_that_needs_a_browser_is_named_and_left_alone(boss, page):
    described = boss.data("describe_model", model=Page)["writing"]
    refused = boss.refusal("update_record", model=Page, pk=page.pk, values={"body": [], "no": 1})

    assert described["create_record"]["only_in_a_browser"] == ["body"]
    assert list(described["create_record"]["values"]["properties"]) == ["title"]
    assert "body: This can be set only in a browser" in refused
    assert "'no' is not a field that you can set. You can set: title." in refused


def test_a_widget_that_leads_nowhere_keeps_nobody_from_its_field(boss):
    notice = Notice.objects.create(title="Closed", text="on Monday")

    changed = updated(boss, Notice, notice.pk, text="today")
    made = boss.data("create_record", model=Notice, values={"title": "New"})

    notice.refresh_from_db()
    assert (notice.title, notice.text) == ("Closed", "today")
    assert list(changed["changed"]) == ["text"]
    assert made["record"]["title"] == "New"


def test_a_field_that_must_be_filled_in_with_a_browser_stops_a_new_record(boss, monkeypatch):
    monkeypatch.setattr(Page._meta.get_field("body"), "blank", False)
    Page.objects.create(title="Old")

    described = boss.data("describe_model", model=Page)["writing"]
    refused = boss.refusal("create_record", model=Page, values={"title": "New"})

    assert described["create_record"] == {"unavailable": refused}
    assert "requires body, which can be set only in a browser." in refused
    assert list(described["update_record"]["values"]["properties"]) == ["title"]
    assert Page.objects.count() == 1


def test_tags_are_a_text_and_count_for_the_version(boss):
    notice = Notice.objects.create(title="Closed")
    notice.tags.add("old")
    read = boss.data("get_record", model=Notice, pk=notice.pk)["_version"]

    changed = updated(boss, Notice, notice.pk, tags="x, z")

    assert sorted(notice.tags.names()) == ["x", "z"]
    assert changed["changed"] == {"tags": "Set. You cannot read it."}
    assert changed["version"] != read
    for values, words in [
        ({"tags": "y"}, "changed after you read it"),
        ({"tags": ["y"]}, "a bare list would drop what is not in it"),
        ({"tags": {"add": "y"}}, "each with a list of names"),
        ({"tags": {"add": ['a"b']}}, "These names cannot be told apart."),
    ]:
        refused = boss.refusal(
            "update_record", model=Notice, pk=notice.pk, values=values, version=read
        )
        assert words in refused
        read = changed["version"]
    updated(boss, Notice, notice.pk, tags={"add": ["two words", "a, b"], "remove": ["x"]})
    assert sorted(notice.tags.names()) == ["a, b", "two words", "z"]
    made = boss.data("create_record", model=Notice, values={"title": "New", "tags": ["p", "q"]})
    assert sorted(Notice.objects.get(pk=made["pk"]).tags.names()) == ["p", "q"]


def test_a_relation_of_a_package_is_told_by_the_checks_and_takes_nothing_away(boss, caplog):
    exposure = type("Tagged", (ModelExposure,), {"fields": ["title", "tags"]})(Notice)

    (problem,) = Declaration(exposure).problems

    assert problem.startswith(
        "bakery.notice: fields: tags: tags is generic, or of another package"
    )
    Notice.objects.create(title="Closed").tags.add("new")
    assert "not announced" not in caplog.text


def test_money_says_what_it_takes(boss, tour):
    described = boss.data("describe_model", model=Tour)["writing"]["create_record"]
    price = described["values"]["properties"]["price"]

    changed = updated(boss, Tour, tour.pk, price=[13, "USD"])

    assert price["description"] == 'Such as [1, "EUR"].'
    amount, currency = price["prefixItems"]
    assert amount["type"] == ["number", "string"]
    assert {one["const"] for one in currency["oneOf"]} == {"EUR", "USD"}
    assert list(changed["changed"]) == ["price"]
    tour.refresh_from_db()
    assert tour.price == Money("13.00", "USD")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (12.5, '12.5 is not a list of 2 parts, such as [1, "EUR"].'),
        ([12.5], 'A list is not a list of 2 parts, such as [1, "EUR"].'),
        ({"amount": 1}, 'An object is not a list of 2 parts, such as [1, "EUR"].'),
        ([1, "XXX"], "'XXX' is not one of: EUR, USD."),
        (["much", "EUR"], "'much' is not a number."),
    ],
)
def test_a_wrong_price_is_told_the_form_of_a_right_one(boss, tour, value, sentence):
    refused = boss.refusal("update_record", model=Tour, pk=tour.pk, values={"price": value})

    assert refused == f"Nothing was saved.\nprice: {sentence}"
    tour.refresh_from_db()
    assert tour.price == Money("12.50", "EUR")


def test_money_that_staff_opened_comes_with_its_currency(boss):
    for amount in (Money(10, "EUR"), Money(5, "EUR"), Money(7, "USD")):
        Fee.objects.create(name="Entry", amount=amount)
    ExposedModel.objects.create(label="bakery.fee", level=Level.READ)

    found = boss.data("find_records", model=Fee, filters={"amount_currency": "USD"})
    sums = boss.data(
        "aggregate_records",
        model=Fee,
        group_by=["amount_currency"],
        metrics={"total": {"sum": "amount"}},
    )

    (record,) = rows_as_objects(found)
    assert set(record) == {"id", "name", "amount", "amount_currency"}
    assert record["amount"] == "7.00"
    totals = {one["amount_currency"]: one["total"] for one in rows_as_objects(sums)}
    assert totals == {"EUR": "15.00", "USD": "7.00"}


def test_the_parent_of_several_models_says_where_records_are_made(connect, people):
    client = connect(people["staff"])

    described = client.data("describe_model", model=Cake)["writing"]
    refused = client.refusal("create_record", model=Cake, values={"name": "Cheese"})
    made = client.data("create_record", model=Pie, values={"name": "Plum", "filling": "plums"})

    assert described["create_record"] == {"unavailable": refused}
    assert refused.endswith("Create a record of one of these models: bakery.pie, bakery.tart.")
    assert Pie.objects.get(pk=made["pk"]).filling == "plums"


def test_an_update_through_the_parent_says_what_changed(connect, people):
    client = connect(people["staff"])
    pie = Pie.objects.create(name="Apple", filling="  apples ")

    first = updated(client, Cake, pie.pk, name="Pear")
    again = updated(client, Cake, pie.pk, name="Pear")
    child = updated(client, Cake, pie.pk, filling="pears")

    assert [list(one["changed"]) for one in (first, again, child)] == [["name"], [], ["filling"]]
    assert Cake.objects.get().filling == "pears"


def test_what_is_closed_of_a_child_cannot_be_set_through_its_parent(boss):
    ExposedModel.objects.create(label="bakery.tart", level=Level.READ)
    tart = Tart.objects.create(name="Lemon")

    refused = boss.refusal("update_record", model=Cake, pk=tart.pk, values={"diameter": 30})

    assert "'diameter' is not a field that you can set. You can set: name." in refused
    updated(boss, Cake, tart.pk, name="Lime")
    assert Tart.objects.values_list("name", "diameter").get() == ("Lime", 20)


@pytest.mark.parametrize("kind", ["superuser", "staff"])
def test_a_column_that_is_null_and_reads_as_an_empty_text_stays_null(connect, people, kind):
    client = connect(people[kind])
    product, _ = Product.objects.create(title="Rye"), Product.objects.create(title="Oat")
    plain = Product.objects.create(title="Spelt", upc="A1", note="")

    changed = updated(client, Product, product.pk, title="Rolls")
    refused = client.refusal("update_record", model=Product, pk=product.pk, values={"upc": "A1"})
    updated(client, Product, plain.pk, title="Buns")

    assert list(changed["changed"]) == ["title"]
    assert "upc: Product with this Upc already exists." in refused
    assert Product.objects.filter(upc__isnull=True).count() == 2
    assert Product.objects.values_list("title", "upc", "note").get(pk=plain.pk) == (
        "Buns",
        "A1",
        "",
    )


@pytest.mark.parametrize("model", [Category, Region])
def test_a_tree_is_described_without_a_word_in_the_log(connect, people, model, caplog):
    client = connect(people["staff"])

    empty = client.data("describe_model", model=model)["writing"]
    root = model.add_root(name="Bread")
    described = client.data("describe_model", model=model)["writing"]
    made = client.data(
        "create_record", model=model, values={"name": "Rye", "treebeard_ref_node": root.pk}
    )
    changed = updated(client, model, root.pk, name="All")

    assert empty["update_record"] == {"unavailable": "There is no record that you can change."}
    assert "name" in described["create_record"]["values"]["properties"]
    assert described["update_record"]["values"].startswith("The fields of create_record")
    assert model.objects.get(pk=made["pk"]).get_parent().pk == root.pk
    assert list(changed["changed"]) == ["name"]
    assert not [one for one in caplog.records if one.levelname in ("WARNING", "ERROR")]


@pytest.fixture(params=[Category, Region], ids=lambda model: model.__name__)
def tree(request):
    """The model of a tree: Bread with Rye, Spelt and Oat, and Buns below Spelt."""
    model = request.param
    bread = model.add_root(name="Bread")
    for name in ("Rye", "Spelt", "Oat"):
        model.objects.get(pk=bread.pk).add_child(name=name)
    model.objects.get(name="Spelt").add_child(name="Buns")
    return model


def places(model):
    """Each node with its depth, in the order of the tree, which has no fault."""
    assert not any(model.find_problems())
    return [(one.name, one.get_depth()) for one in model.get_tree()]


@pytest.mark.parametrize("kind", ["superuser", "staff"])
def test_a_node_is_created_below_another_one_or_beside_it(people, tree, kind):
    client = CheckedClient(user=people[kind])
    spelt = tree.objects.get(name="Spelt").pk

    for values in (
        {"name": "Rolls", "treebeard_ref_node": spelt},
        {"name": "Corn", "treebeard_ref_node": spelt, "treebeard_position": "left"},
        {"name": "Cake"},
    ):
        client.data("create_record", model=tree, values=values)

    below = [("Rye", 2), ("Corn", 2), ("Spelt", 2), ("Rolls", 3), ("Buns", 3), ("Oat", 2)]
    assert places(tree) == [("Bread", 1), *below, ("Cake", 1)]


@pytest.mark.parametrize("kind", ["superuser", "staff"])
def test_a_node_keeps_its_place_until_it_is_moved(people, tree, kind):
    client = CheckedClient(user=people[kind])
    before = places(tree)
    spelt, oat = (tree.objects.get(name=one).pk for one in ("Spelt", "Oat"))
    behind_oat = {"treebeard_ref_node": oat, "treebeard_position": "right"}

    updated(client, tree, spelt, name="Emmer")
    renamed = places(tree)
    tried = updated(client, tree, spelt, dry_run=True, **behind_oat)
    untouched = places(tree)
    updated(client, tree, spelt, **behind_oat)

    assert renamed == [("Emmer" if one == "Spelt" else one, depth) for one, depth in before]
    assert tried["dry_run"] is True
    assert untouched == renamed
    assert places(tree) == [("Bread", 1), ("Rye", 2), ("Oat", 2), ("Emmer", 2), ("Buns", 3)]


@pytest.mark.parametrize("names", [["Spelt"], ["Rye", "Spelt"]])
def test_a_subtree_is_deleted_and_the_tree_has_no_fault(boss, tree, names):
    pks = [tree.objects.get(name=one).pk for one in names]
    key = pks[0] if len(pks) == 1 else pks

    asked = boss.data("delete_record", model=tree, pk=key)
    before = places(tree)
    boss.data("delete_record", model=tree, pk=key, confirmation=asked["confirmation"])

    assert len(before) == 5
    left = [("Bread", 1), ("Rye", 2), ("Oat", 2)]
    assert places(tree) == [one for one in left if one[0] not in names]


def test_a_user_is_made_without_a_password(connect, people, django_user_model):
    label = open_model(django_user_model)
    client = connect(people["superuser"])

    described = client.data("describe_model", model=label)["writing"]
    refused = client.refusal("create_record", model=label, values={"username": "eve"})
    client.data(
        "create_record", model=label, values={"username": "eve", "usable_password": "false"}
    )

    properties = described["create_record"]["values"]["properties"]
    assert set(properties) == {"username", "usable_password"}
    assert "It may depend on these: username, usable_password." in refused
    assert not django_user_model.objects.get(username="eve").has_usable_password()


def test_a_user_whose_form_asks_for_a_password_cannot_be_made(
    boss, django_user_model, monkeypatch
):
    monkeypatch.setattr(UserAdmin, "add_form", BaseUserCreationForm)
    monkeypatch.setattr(
        UserAdmin, "add_fieldsets", [(None, {"fields": ["username", "password1", "password2"]})]
    )
    label = open_model(django_user_model)

    described = boss.data("describe_model", model=label)["writing"]
    refused = boss.refusal("create_record", model=label, values={"username": "eve"})

    assert described["create_record"] == {"unavailable": refused}
    assert "requires a field that assistants cannot set." in refused
    assert not django_user_model.objects.filter(username="eve").exists()
