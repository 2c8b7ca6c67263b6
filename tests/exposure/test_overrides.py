"""What staff decided about models: it narrows what code allows, in every use and on every path."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.exceptions import NotFound
from mcp_django.exposure.decisions import Decisions, Exposed, ModelDecision, restricted
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import FILTER, GROUP, METRIC, ORDER, RETURN, SEARCH, Declaration
from mcp_django.exposure.query.access import allowed_paths
from mcp_django.levels import Level
from mcp_django.models import ExposedModel
from mcp_django.testing import Client, ProtocolFailure
from tests.nasty.site import REGISTRY, caller
from tests.shop.models import Customer, Ledger, Memo, Order

pytestmark = pytest.mark.django_db


GERMAN = {"model": "shop.order", "filters": {"customer__country": "DE"}}


def models_of(client):
    return [one["model"] for one in client.call_tool("list_models").data["models"]]


def decide(label, **decided):
    return ExposedModel.objects.update_or_create(label=label, defaults=decided)[0]


def described(client, model):
    return client.call_tool("describe_model", model=model).data


def test_without_a_row_everything_is_as_in_code(client):
    assert models_of(client) == ["shop.customer", "shop.memo", "shop.order"]


def test_a_hidden_model_does_not_exist(client):
    Order.objects.create(number="A1")
    decide("shop.order", level=Level.HIDDEN)

    missing = client.call_tool("find_records", model="shop.orders")
    hidden = client.call_tool("find_records", model="shop.order")

    assert models_of(client) == ["shop.customer", "shop.memo"]
    assert hidden.is_error
    assert hidden.text.replace("shop.order", "X") == missing.text.replace("shop.orders", "X")
    assert not any(
        "shop.order" in one["uri"] for one in client.request("resources/list")["resources"]
    )


def test_no_path_of_another_model_passes_a_hidden_one(client):
    before = client.call_tool(
        "find_records", model="shop.order", filters={"customer__country": "DE"}
    )
    decide("shop.customer", level=Level.HIDDEN)

    after = client.call_tool(
        "find_records", model="shop.order", filters={"customer__country": "DE"}
    )

    assert not before.is_error
    assert after.is_error
    assert "country" not in str(described(client, "shop.order"))


def test_staff_can_let_no_path_begin_at_a_model_or_pass_it(client):
    decide("shop.order", follow_relations=False)
    assert client.call_tool("find_records", **GERMAN).is_error
    assert "customer__country" not in str(described(client, "shop.order"))
    assert "relations" not in described(client, "shop.order")

    decide("shop.order", follow_relations=None)
    assert not client.call_tool("find_records", **GERMAN).is_error

    decide("shop.customer", follow_relations=False)
    assert client.call_tool("find_records", **GERMAN).is_error
    assert not client.call_tool("find_records", model="shop.customer").is_error
    assert not client.call_tool("find_records", model="shop.order", fields=["number"]).is_error


def test_of_a_definition_only_the_fields_are_told(client):
    Order.objects.bulk_create(Order(number=f"A{n}") for n in range(9))
    decide("shop.order", level=Level.DEFINITION)

    listed = client.call_tool("list_models").data["models"]
    answers = [
        client.call_tool("find_records", model="shop.order"),
        client.call_tool("get_record", model="shop.order", pk=1),
        client.call_tool("aggregate_records", model="shop.order"),
    ]

    assert {one["name"] for one in described(client, "shop.order")["fields"]} >= {"id", "status"}
    assert all("only the definition" in answer.text for answer in answers)
    assert next(one for one in listed if one["model"] == "shop.order").get("records") is None
    with pytest.raises(ProtocolFailure):
        client.request("resources/read", {"uri": "django://objects/shop.order/1"})
    uris = [one["uri"] for one in client.request("resources/list")["resources"]]
    assert "django://models/shop.order" in uris
    assert "django://objects/shop.order" not in uris


def test_of_aggregates_there_are_numbers_and_no_records(client):
    Order.objects.bulk_create(Order(number=f"A{n}") for n in range(9))
    decide("shop.order", level=Level.AGGREGATES)

    total = client.call_tool("aggregate_records", model="shop.order")

    assert not total.is_error
    assert client.call_tool("find_records", model="shop.order").is_error


def test_a_field_taken_out_of_records_leaves_every_other_use(client):
    Order.objects.create(number="A1", status="paid")
    decide("shop.order", fields=["id", "number"])

    record = client.call_tool("find_records", model="shop.order").records[0]
    about = described(client, "shop.order")

    assert set(record) == {"id", "number"}
    assert "status" not in str(about["fields"])
    assert client.call_tool(
        "find_records", model="shop.order", filters={"status": "paid"}
    ).is_error
    assert client.call_tool("find_records", model="shop.order", order_by=["status"]).is_error
    assert client.call_tool("aggregate_records", model="shop.order", group_by=["status"]).is_error


def test_a_field_taken_out_of_records_can_stay_a_filter(client):
    Order.objects.create(number="A1", status="paid")
    decide("shop.order", fields=["id", "number"], filter_fields=["status"])

    found = client.call_tool("find_records", model="shop.order", filters={"status": "paid"})

    assert [set(one) for one in found.records] == [{"id", "number"}]


def test_a_field_taken_out_of_a_model_is_on_no_path_of_others(client):
    decide("shop.customer", fields=["id", "name"])

    found = client.call_tool(
        "find_records", model="shop.order", filters={"customer__country": "DE"}
    )

    assert found.is_error
    assert "customer__country" not in str(described(client, "shop.order"))


def test_names_that_code_does_not_have_open_nothing(client):
    Customer.objects.create(name="Ann")
    decide("shop.customer", fields=["id", "name", "password", "user__password"])

    record = client.call_tool("find_records", model="shop.customer").records[0]

    assert set(record) <= {"id", "name"}


def test_notes_of_staff_are_told_with_the_definition(client):
    decide("shop.order", notes="State 7 means refunded.")

    assert "State 7 means refunded." in described(client, "shop.order")["description"]


def test_a_model_for_a_group_exists_for_its_members_only(client, staff):
    readers = Group.objects.create(name="readers")
    decide("shop.order").groups.add(readers)
    before = models_of(client)

    staff.groups.add(readers)

    assert "shop.order" not in before
    assert "shop.order" in models_of(client)


def test_a_model_that_only_the_admin_has_waits_for_staff(make_user):
    assert admin.site.is_registered(Group)
    client = Client(user=make_user("boss", is_superuser=True, is_staff=True))
    before = models_of(client)

    decide("auth.group", level=Level.READ)

    assert "auth.group" not in before
    assert "auth.group" in models_of(client)


def test_a_model_that_staff_opened_shows_nothing_that_looks_secret(make_user):
    client = Client(user=make_user("boss", is_superuser=True, is_staff=True))
    decide("auth.user", level=Level.READ)

    record = client.call_tool("find_records", model="auth.user").records[0]

    assert "username" in record
    assert "password" not in record


def test_tables_of_ours_cannot_be_opened(make_user):
    client = Client(user=make_user("boss", is_superuser=True, is_staff=True))
    decide("mcp_django.personaltoken", level=Level.READ)

    assert "mcp_django.personaltoken" not in models_of(client)


def test_staff_cannot_go_beyond_a_level_that_code_names():
    class Closed(ModelExposure):
        fields = ("id",)
        level = Level.AGGREGATES

    found = restricted(Closed(Ledger), ModelDecision(level=Level.WRITE))

    assert found.standard_level == Level.AGGREGATES


USES = {
    RETURN: "fields",
    FILTER: "filter_fields",
    ORDER: "order_fields",
    GROUP: "group_fields",
}
EXPOSURES = list(REGISTRY.exposures.values())
NAMES = sorted(
    {path.text for one in EXPOSURES for path in Declaration(one).everything}
    | {"password", "id", "pk", "customer", "customer__user__password", ""}
)
some_names = st.none() | st.lists(st.sampled_from(NAMES), max_size=6).map(tuple)
some_rows = st.builds(
    ModelDecision,
    level=st.none() | st.sampled_from(Level),
    **dict.fromkeys(USES.values(), some_names),
)


@given(rows=st.lists(some_rows, min_size=len(EXPOSURES), max_size=len(EXPOSURES)))
def test_no_row_ever_widens_what_code_allows(rows):
    decided = {one.label: row for one, row in zip(EXPOSURES, rows, strict=True)}

    found = Exposed(REGISTRY.candidates, Decisions(models=decided))

    for model, exposure in found.exposures.items():
        code, mine = Declaration(REGISTRY.exposures[model]), Declaration(exposure)
        assert exposure.standard_level <= REGISTRY.exposures[model].highest_level
        for use in (RETURN, FILTER, ORDER, GROUP, METRIC, SEARCH):
            allowed = {path.names for path in code.paths[use]}
            assert {path.names for path in mine.paths[use]} <= allowed
        assert {path.names for path in mine.labels} <= {path.names for path in code.labels}


def test_an_exposure_that_no_row_changed_is_the_same_object_as_before():
    decided = {"nasty.order": ModelDecision(notes="x"), "nasty.person": ModelDecision()}
    first = Exposed(REGISTRY.candidates, Decisions(models=decided))

    second = Exposed(
        REGISTRY.candidates,
        Decisions(models={**decided, "nasty.person": ModelDecision(notes="y")}),
        before=first,
    )

    by_label = second.by_label
    assert by_label["nasty.order"] is first.by_label["nasty.order"]
    assert by_label["nasty.person"] is not first.by_label["nasty.person"]


def test_a_row_counts_for_the_very_next_question():
    rights = caller()
    order = next(one for one in rights.exposures() if one.label == "nasty.order")
    assert allowed_paths(rights, order)

    ExposedModel.objects.create(label="nasty.order", level=Level.HIDDEN)

    with pytest.raises(NotFound):
        caller().exposure("nasty.order")


def test_a_label_in_capitals_is_the_same_model(client):
    decide("shop.Order", level=Level.HIDDEN)

    assert "shop.order" not in models_of(client)


def test_memos_stay_while_others_are_narrowed(client):
    decide("shop.order", level=Level.HIDDEN)
    Memo.objects.create(text="a", code="a")

    assert not client.call_tool("find_records", model="shop.memo").is_error


def test_what_was_taken_away_leaves_search_labels_order_and_time_of_change():
    code = exposure_with(
        fields=["id", "number", "status", "placed_at", "customer"],
        search_fields=["^number", "customer__name"],
        label_fields=["number"],
        ordering=["-placed_at", "number"],
        metric_fields=["total", "placed_at"],
        modified_field="placed_at",
    )

    found = restricted(code, ModelDecision(fields=("id", "status", "customer")))

    assert found.search_fields == ["customer__name"]
    assert (found.label_fields, found.ordering) == ([], [])
    assert (found.metric_fields, found.modified_field) == (["total"], "")


def test_another_spelling_of_a_field_is_taken_away_with_it():
    code = exposure_with(fields=["id", "customer_id"], filter_fields=["id", "customer__country"])

    found = restricted(code, ModelDecision(fields=("id",)))

    assert found.filter_fields == ["id"]


def test_a_path_that_does_not_exist_is_left_to_the_checks():
    code = exposure_with(fields=["id", "nothing"], filter_fields=["id", "nothing__else"])

    found = restricted(code, ModelDecision(fields=("id",)))

    assert found.filter_fields == ["id"]


def exposure_with(**options):
    return type("OrderExposure", (ModelExposure,), options)(Order)


def test_a_wrong_call_is_taught_with_what_staff_have_left(client):
    for label in ("shop.customer", "shop.memo"):
        decide(label, level=Level.HIDDEN)
    decide("shop.order", level=Level.AGGREGATES)

    answer = client.call_tool("describe_model")

    assert answer.is_error
    assert "shop.order" in answer.text


def test_a_wrong_call_teaches_no_filter_where_there_is_none(client):
    for label in ("shop.customer", "shop.memo"):
        decide(label, level=Level.HIDDEN)
    decide("shop.order", filter_fields=[])

    answer = client.call_tool("find_records", model="shop.order", limit="many")

    assert answer.is_error
    assert "filters" not in answer.text
