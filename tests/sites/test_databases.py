from __future__ import annotations

from contextlib import suppress

import pytest
from django.db import Error, connections, transaction
from django.test.utils import CaptureQueriesContext

import mcp_django as mcp
from mcp_django.auth.authenticate import cache
from mcp_django.exceptions import ToolError
from mcp_django.exposure.admin_bridge.dry_runs import dry_run
from mcp_django.models import PersonalToken
from mcp_django.protocol.revisions import LATEST_LEGACY
from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient
from tests.databases import VENDOR
from tests.nasty.models import Customer as ArchivedCustomer
from tests.nasty.models import Order as ArchivedOrder
from tests.nasty.models import Person, Tag, Tenant
from tests.nasty.site import caller, count, numbers, record
from tests.shop.models import Customer, Order

pytestmark = pytest.mark.django_db(transaction=True, databases="__all__")
READERS = ("left", "right")


@pytest.fixture
def archived():
    tenant = Tenant.objects.create(name="a")
    anne = ArchivedCustomer.objects.create(tenant=tenant, name="Anne", country="FR")
    boss = Person.objects.create(username="boss", password="x")
    for number in ("A1", "A2", "A3"):
        order = ArchivedOrder.objects.create(owner=boss, customer=anne, number=number)
    order.tags.add(Tag.objects.create(slug="red"))
    return order


@pytest.fixture
def many():
    """Five orders, which the replicas hold as well."""
    anne = Customer.objects.create(name="Anne", country="FR")
    for number in range(5):
        Order.objects.create(number=f"A{number}", customer=anne, total=number)


def test_models_of_another_database_are_asked_there(archived):
    assert numbers() == ["A1", "A2", "A3"]
    assert numbers(filters={"tags__slug": "red"}) == ["A3"]
    assert numbers(exclude={"tags__slug": "red"}) == ["A1", "A2"]
    assert numbers(filters={"customer__country": "FR"}, search="A2") == ["A2"]
    assert count(caller(), ArchivedOrder) == 3
    assert record(caller(), ArchivedOrder, archived.pk)["number"] == "A3"


def test_calls_over_the_wire_read_from_replicas_in_turn(client, many):
    seen = {alias: CaptureQueriesContext(connections[alias]) for alias in READERS}

    with seen["left"], seen["right"]:
        for _ in range(4):
            answer = client.call_tool(
                "find_records",
                model="shop.order",
                filters={"total__gte": 1, "customer__country": "FR"},
                order_by=["-total"],
                limit=2,
            )
            assert [one["number"] for one in answer.records] == ["A4", "A3"]
            assert client.call_tool("get_record", model="shop.order", pk=1).text
            assert client.read_resource("django://site")

    assert all(len(context) for context in seen.values())


def test_a_call_is_under_a_deadline_on_the_database_that_it_reads(client, many, settings):
    """SQLite's handler belongs to a connection: on another one it would never stop this."""
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "STATEMENT_TIMEOUT": 0.000001}
    Order.objects.bulk_create(Order(number=f"B{number}") for number in range(20_000))

    for _ in range(3):
        slow = client.call_tool(
            "find_records", model="shop.order", filters={"number__icontains": "zz"}
        )
        counted = client.call_tool(
            "aggregate_records", model="shop.order", metrics={"sum": {"sum": "total"}}
        )

        assert "took too long" in slow.text
        assert "took too long" in counted.text


def test_a_token_that_was_revoked_is_refused_though_a_replica_lags(staff, many):
    token, secret = PersonalToken.create(user=staff, name="laptop")
    client = CheckedClient(token=secret)
    assert client.call_tool("echo", text="x").data["user"] == "staff"

    token.revoke()
    seen = [CaptureQueriesContext(connections[alias]) for alias in READERS]
    cache.clear()
    with seen[0], seen[1], pytest.raises(ProtocolFailure) as refused:
        client.call_tool("echo", text="x")

    assert refused.value.status == 401
    asked = [one["sql"] for context in seen for one in context]
    assert not [sql for sql in asked if "mcp_django_personaltoken" in sql]


def test_an_archive_without_our_tables_needs_none(client, many):
    assert "mcp_django_personaltoken" in connections["default"].introspection.table_names()
    assert "mcp_django_personaltoken" not in connections["archive"].introspection.table_names()
    assert client.list_tools()


def test_a_dry_run_takes_back_what_it_did_in_both_databases(archived, many, client):
    with dry_run(Order):
        ArchivedOrder.objects.get(pk=archived.pk).delete()
        Order.objects.all().delete()

    assert (ArchivedOrder.objects.count(), Order.objects.count()) == (3, 5)


@pytest.mark.skipif(VENDOR != "sqlite", reason="others have room for two who write")
def test_an_alias_of_a_database_that_is_locked_already_can_only_be_read_in_a_dry_run(many):
    with dry_run(Order):
        assert Order.objects.using("left").count() == 5

    with pytest.raises(ToolError, match="it writes to left"), dry_run(Order):
        Order.objects.using("left").update(total=0)


def test_a_connection_that_is_gone_and_not_needed_does_not_matter_to_a_dry_run(many):
    connections["archive"].ensure_connection()
    connections["archive"].connection.close()  # as a server does that was restarted

    with dry_run(Order):
        Order.objects.all().delete()

    with suppress(Error):  # the driver of MariaDB does not close twice
        connections["archive"].close()
    connections["archive"].connection = None
    assert (Order.objects.count(), ArchivedOrder.objects.count()) == (5, 0)


def test_a_change_is_announced_when_its_own_database_commits(heard):
    mcp.register(ArchivedOrder, fields=["number"])
    try:
        boss = Person.objects.create(username="boss", password="x")
        with transaction.atomic(using="archive"):
            order = ArchivedOrder.objects.create(owner=boss, number="A1")
            with transaction.atomic(using="default"):
                customer = Customer.objects.create(name="Anne", country="FR")
            assert f"django://objects/nasty.order/{order.pk}" not in heard.topics
            mcp.touch(customer, ArchivedOrder.objects.all())
            assert f"django://objects/shop.customer/{customer.pk}" in heard.topics
        assert f"django://objects/nasty.order/{order.pk}" in heard.topics

        with transaction.atomic(using="archive"):
            with transaction.atomic(using="default"):
                order.save()
            transaction.set_rollback(True, using="archive")
        assert "django://objects/nasty.order" not in heard.topics
    finally:
        mcp.unregister(ArchivedOrder)


def test_sessions_are_read_where_they_are_written(staff, configure):
    configure(SESSION_CACHE="database")
    client = CheckedClient(user=staff, revision=LATEST_LEGACY)
    seen = [CaptureQueriesContext(connections[alias]) for alias in READERS]

    with seen[0], seen[1]:
        client.initialize()
        client.request("resources/subscribe", {"uri": "django://site"})
        client.request("ping")
        client.end_session()

    asked = [one["sql"] for context in seen for one in context]
    assert not [sql for sql in asked if "mcp_cache" in sql]
