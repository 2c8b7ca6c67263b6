"""Models as resources, and the same through tools."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
import pytest
from django.db import OperationalError
from django.test import override_settings
from django.utils import timezone

from mcp_django.exposure.resources import models as resources
from mcp_django.models import ExposedModel
from mcp_django.testing import Client, ProtocolFailure
from mcp_django.testing.client import rows_as_objects
from tests.clients import browser_of
from tests.databases import failing_for
from tests.shop.models import Customer, Memo, Order
from tests.spec import requirement

pytestmark = pytest.mark.django_db


@pytest.fixture
def order():
    customer = Customer.objects.create(name="Ada", country="FR", credit_rating=7)
    return Order.objects.create(number="A/1", customer=customer, total=5)


def test_the_overview_counts_what_this_caller_may_see_as_far_as_that_tells_something(
    client, order, monkeypatch, caplog
):
    def counts():
        return {
            one["model"]: one["records"] for one in client.read_resource("django://site")["models"]
        }

    assert counts() == {"shop.customer": 1, "shop.memo": 0, "shop.order": 1}
    assert client.read_resource("django://site")["site"] == "Test shop"

    monkeypatch.setattr(resources, "MOST_COUNTED", 2)
    Memo.objects.bulk_create(Memo(text="x", code=f"c{n}") for n in range(4))
    assert counts()["shop.memo"] == "more than 2"

    with failing_for("shop_memo", OperationalError("no such table: shop_memo")):
        assert counts()["shop.memo"] is None
    assert "shop.memo cannot be counted." in caplog.text


def test_definitions_collections_and_objects_are_read_by_uri(client, order):
    definition = client.read_resource("django://models/shop.order")
    collection = client.read_resource("django://objects/shop.order?number=A%2F1")
    record = client.read_resource(f"django://objects/shop.order/{order.pk}")

    assert definition["name"] == "shop.order"
    assert [one["number"] for one in rows_as_objects(collection)] == ["A/1"]
    assert record["number"] == "A/1"
    assert record["total"] == "5.00"


def test_a_collection_follows_its_cursor(client):
    Memo.objects.bulk_create(Memo(text="x", code=f"c{n}") for n in range(30))

    first = client.read_resource("django://objects/shop.memo?fields=code")
    second = client.read_resource(f"django://objects/shop.memo?fields=code&cursor={first['next']}")

    assert len(first["rows"]) == 25
    assert [one["code"] for one in rows_as_objects(second)] == [f"c{n}" for n in range(25, 30)]
    assert "next" not in second


@requirement(
    "resources:not-found-legacy",
    "resources:not-found",
    "resources:never-empty",
    "resources:hidden",
    "resources:uris",
)
@pytest.mark.parametrize(
    "uri",
    [
        *(
            "django://site/more",
            "django://nothing",
            "file:///etc/passwd",
            "http://169.254.169.254/",
        ),
        *(f"django://models/shop.{rest}" for rest in ("ledger", "nothing", "order/1")),
        *(f"django://objects/shop.order/{rest}" for rest in ("999", "1/2", "x%00")),
        "django://objects/auth.user/1",
        *(f"django://files/shop.order{rest}" for rest in ("", "/1/number", "/1/nothing")),
    ],
)
def test_missing_and_forbidden_are_not_found_in_the_revisions_own_code(client, revision, uri):
    failure = client.error("resources/read", uri=uri)

    code = -32602 if revision.features.missing_resource_is_invalid_params else -32002
    assert (failure.status, failure.code, failure.data) == (200, code, {"uri": uri})
    assert failure.message == "Resource not found."


@requirement("definitions:described")
def test_resources_and_templates_are_listed_with_descriptions(client):
    listed = client.list_resources()
    templates = client.list_all("resources/templates/list", "resourceTemplates")

    assert [one["uri"] for one in listed] == sorted(one["uri"] for one in listed)
    assert {one["uriTemplate"] for one in templates} == {
        "django://models/{model}",
        "django://objects/{model}{?filters*,search,order_by,fields,cursor}",
        "django://objects/{model}/{pk}",
        "django://files/{model}/{pk}/{field}",
    }
    assert all(one["description"] for one in [*listed, *templates])
    # What a client should see first.
    priorities = {one["uri"]: one.get("annotations", {}).get("priority") for one in listed}
    assert priorities["django://site"] == 1.0
    assert priorities["django://models/shop.order"] == 0.8
    assert priorities["django://objects/shop.order"] is None


def test_who_sees_no_model_is_told_of_no_template(make_user):
    client = Client(user=make_user("bob"))

    assert client.list_all("resources/templates/list", "resourceTemplates") == []
    assert [one["uri"] for one in client.list_resources()] == ["django://site"]


def test_every_listed_resource_can_be_read_also_through_tools(client, order):
    listed = [one["uri"] for one in client.list_resources()]

    through_tools = client.call_tool("list_resources").data

    assert sorted(one["uri"] for one in through_tools["resources"]) == sorted(listed)
    assert len(through_tools["resourceTemplates"]) == 4
    for uri in listed:
        read = client.call_tool("read_resource", uri=uri).data["contents"][0]["text"]
        assert msgspec.json.decode(read) == client.read_resource(uri)


@pytest.mark.thorough
@requirement("resources:access")
def test_without_the_scope_to_read_no_resource_exists(staff):
    client = Client(user=staff, scopes=["mcp:action"])

    assert client.list_resources() == []
    with pytest.raises(ProtocolFailure):
        client.read_resource("django://site")


def test_the_list_of_models_says_the_time_in_the_zone_of_the_site(client, settings):
    settings.TIME_ZONE = "Asia/Kolkata"
    earliest = timezone.now().replace(second=0, microsecond=0)

    answer = client.call_tool("list_models").data

    now = datetime.fromisoformat(answer["now"])
    assert earliest <= now <= timezone.now()
    assert (now.utcoffset(), answer["time_zone"]) == (timedelta(hours=5.5), "Asia/Kolkata")


# The note for those who see no model

NOTHING = "No models are available to you."


def note_for(user, **options):
    answer = Client(user=user, **options).call_tool("list_models")
    assert not answer.is_error, answer.text
    assert answer.data["models"] == []
    return answer.data["note"]


@pytest.mark.parametrize("public_url", ["", "https://shop.example.com"])
def test_who_may_open_models_is_told_where_as_long_as_they_may(make_user, settings, public_url):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "PUBLIC_URL": public_url}
    opener = make_user("opener", "change_exposedmodel", is_staff=True)
    # As `migrate` makes them, which tests do not.
    ExposedModel.objects.create(label="shop.order")

    note = note_for(opener)
    with override_settings(ROOT_URLCONF="tests.sites.plain_urls"):
        without = note_for(opener)
    status = browser_of(opener).get("/admin/mcp_django/exposedmodel/").status_code
    opener.user_permissions.clear()
    later = note_for(type(opener).objects.get(pk=opener.pk))

    page = f"{public_url}/admin/mcp_django/exposedmodel/"
    assert note == f"{NOTHING} Open models in the admin: Exposed models ({page})."
    # The URLs have no admin there.
    assert without == f"{NOTHING} Open models in the admin: Exposed models."
    assert status == 200
    assert later == NOTHING


ROOT = {"is_staff": True, "is_superuser": True}


@pytest.mark.parametrize(
    ("codename", "attributes", "options"),
    [
        ("view_exposedmodel", {"is_staff": True}, {}),
        ("change_exposedmodel", {}, {}),
        ("change_exposedtool", {"is_staff": True}, {}),
        ("change_exposedmodel", ROOT, {"models": ["shop.ledger"]}),
    ],
    ids=["may only look", "not staff", "may decide on tools", "a token for other models"],
)
def test_who_may_not_open_models_is_not_told_where(make_user, codename, attributes, options):
    assert note_for(make_user("bob", codename, **attributes), **options) == NOTHING
