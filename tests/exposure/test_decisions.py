"""What staff decided narrows what code allows, in every use and on every path."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from django.db import OperationalError, connection, models
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.exposure.decisions import (
    NOTHING_DECIDED,
    Decisions,
    Exposed,
    ModelDecision,
    has_table,
    read_decisions,
    restricted,
)
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import FILTER, GROUP, METRIC, ORDER, RETURN, SEARCH, Declaration
from mcp_django.levels import Level
from mcp_django.models import ExposedModel, ExposedTool
from tests.databases import failing_for
from tests.decisions import decide
from tests.nasty.site import REGISTRY
from tests.shop.models import Order

pytestmark = pytest.mark.django_db


GERMAN = {"model": "shop.order", "filters": {"customer__country": "DE"}}


def described(client, model="shop.order"):
    return client.data("describe_model", model=model)


def first_record(client, model="shop.order", **arguments):
    return client.call_tool("find_records", model=model, **arguments).records[0]


@pytest.fixture
def root(make_client):
    return make_client(is_superuser=True)


def test_a_hidden_model_does_not_exist(client):
    Order.objects.create(number="A1")
    before = client.models()
    decide("shop.Order", level=Level.HIDDEN)

    missing = client.refusal("find_records", model="shop.orders")
    hidden = client.refusal("find_records", model="shop.order")

    assert before == ["shop.customer", "shop.memo", "shop.order"]
    assert client.models() == ["shop.customer", "shop.memo"]
    assert hidden.replace("shop.order", "X") == missing.replace("shop.orders", "X")
    assert not any("shop.order" in one["uri"] for one in client.list_resources())


def test_staff_can_let_no_path_begin_at_a_model_or_pass_it(client):
    assert client.data("find_records", **GERMAN)["rows"] == []

    for label in ("shop.order", "shop.customer"):
        decide(label, follow_relations=False)
        assert client.refusal("find_records", **GERMAN)
        assert "customer__country" not in str(described(client))
        assert client.data("find_records", model="shop.customer")["rows"] == []
        decide(label, follow_relations=None)


def test_of_a_definition_only_the_fields_are_told(client):
    Order.objects.bulk_create(Order(number=f"A{n}") for n in range(9))
    decide("shop.order", level=Level.DEFINITION)

    listed = client.data("list_models")["models"]
    answers = [
        client.refusal("find_records", model="shop.order"),
        client.refusal("get_record", model="shop.order", pk=1),
        client.refusal("aggregate_records", model="shop.order"),
    ]

    assert {one["name"] for one in described(client)["fields"]} >= {"id", "status"}
    assert all("only the definition" in answer for answer in answers)
    assert next(one for one in listed if one["model"] == "shop.order").get("records") is None
    assert client.failure("resources/read", uri="django://objects/shop.order/1")
    uris = [one["uri"] for one in client.list_resources()]
    assert "django://models/shop.order" in uris
    assert "django://objects/shop.order" not in uris


def test_a_field_taken_out_of_records_leaves_every_other_use(client):
    Order.objects.create(number="A1", status="paid")
    decide("shop.order", fields=["id", "number", "password", "customer__nothing"])

    assert set(first_record(client)) == {"id", "number"}
    assert "status" not in str(described(client)["fields"])
    assert client.refusal("find_records", model="shop.order", filters={"status": "paid"})
    assert client.refusal("find_records", model="shop.order", order_by=["status"])
    assert client.refusal("aggregate_records", model="shop.order", group_by=["status"])
    decide("shop.order", filter_fields=["status"], notes="State 7 means refunded.")
    assert set(first_record(client, filters={"status": "paid"})) == {"id", "number"}
    assert "State 7 means refunded." in described(client)["description"]


def test_a_model_for_a_group_exists_for_its_members_only(client, staff):
    readers = Group.objects.create(name="readers")
    staff.groups.add(Group.objects.create(name="others"))
    decide("shop.order").groups.add(readers)
    before = client.models()

    staff.groups.add(readers)

    assert "shop.order" not in before
    assert "shop.order" in client.models()


def test_a_model_that_only_the_admin_has_waits_for_staff(root):
    before = root.models()

    decide("auth.user", level=Level.READ)
    decide("mcp_django.personaltoken", level=Level.READ)

    assert "auth.user" not in before
    assert "auth.user" in root.models()
    assert "password" not in first_record(root, "auth.user")
    # Tables of ours cannot be opened.
    assert "mcp_django.personaltoken" not in root.models()


USES = {RETURN: "fields", FILTER: "filter_fields", ORDER: "order_fields", GROUP: "group_fields"}
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


def test_what_was_taken_away_is_no_time_of_change_either():
    fields = {"fields": ["id", "placed_at"], "modified_field": "placed_at"}
    code = type("OrderExposure", (ModelExposure,), fields)(Order)

    assert restricted(code, ModelDecision(fields=("id",))).modified_field == ""


# Where the database has trouble with it


def drop(table):
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {connection.ops.quote_name(table)}")


@pytest.mark.skipif(
    not connection.features.can_rollback_ddl, reason="it commits before it drops a table"
)
def test_before_its_tables_are_made_nothing_is_decided_and_the_transaction_goes_on():
    drop(ExposedModel.groups.through._meta.db_table)
    drop(ExposedModel._meta.db_table)

    assert read_decisions("default") == NOTHING_DECIDED
    assert ExposedTool.objects.count() == 0


def test_any_other_trouble_is_no_reason_to_open_what_was_closed():
    ExposedModel.objects.create(label="shop.order", level=Level.HIDDEN)

    fire = OperationalError("The disk is on fire.")

    with (
        failing_for("mcp_django_exposedmodel", fire),
        pytest.raises(OperationalError, match="fire"),
    ):
        read_decisions("default")


class Ghost(models.Model):
    name = models.CharField(max_length=5)

    class Meta:
        managed = False
        app_label = "nasty"


def test_a_table_of_a_database_that_does_not_answer_is_taken_for_granted(shop):
    """Reading it is an error then, and no shorter list."""

    assert not has_table(Ghost)
    with failing_for("", OperationalError("The database is gone.")):
        assert has_table(Ghost)
