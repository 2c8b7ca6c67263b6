"""Two tenants in one process, as packages with a schema for each have them: nothing of the other.

A token of one tenant has the same text and the same key everywhere. What this process keeps in
memory must not.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from pkgutil import resolve_name
from queue import Queue

import pytest
from django.contrib.auth import get_user_model
from django.db import DEFAULT_DB_ALIAS, connection, connections

from mcp_django.audit.records import Writer
from mcp_django.connections import has_tenants
from mcp_django.levels import Level
from mcp_django.models import ExposedModel, PersonalToken
from mcp_django.principal import SCOPES, Principal
from mcp_django.stores.last_used import Uses
from mcp_django.subscriptions.outbox import Outbox
from mcp_django.subscriptions.topics import Change
from mcp_django.testing import Client, ProtocolFailure
from mcp_django.transports.requests import own_copy
from tests.shop.models import Customer
from tests.test_memory import BY_PLACE
from tests.waiting import PATIENCE

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="Others have schemas of their own."),
]
NORTH, SOUTH = "north", "south"


@pytest.fixture
def schema(monkeypatch):
    """Enter a schema, as the middleware of django-tenants does by `connection.set_tenant()`.

    SQLite has no search path, so the tables of the south have names of their own.
    """
    names = connection.introspection.django_table_names(only_existing=True)
    tables = re.compile(f'"({"|".join(names)})"')

    def southern(sql):
        return tables.sub(rf'"{SOUTH}_\1"', sql)

    with connection.cursor() as cursor:
        cursor.execute("SELECT sql FROM sqlite_master WHERE type = 'table'")
        for (sql,) in cursor.fetchall():
            if southern(sql) != sql:
                cursor.execute(southern(sql))

    def execute(execute, sql, params, many, context):
        if connection.schema_name == SOUTH:
            sql = southern(sql)
        return execute(sql, params, many, context)

    @contextmanager
    def enter(name):
        connection.set_tenant(name)
        try:
            yield
        finally:
            connection.set_schema_to_public()

    for attribute, value in vars(Schemas).items():
        if not attribute.startswith("__"):
            monkeypatch.setattr(
                type(connections[DEFAULT_DB_ALIAS]), attribute, value, raising=False
            )
    has_tenants.cache_clear()
    with connection.execute_wrapper(execute):
        yield enter
    has_tenants.cache_clear()
    for attribute in ("schema_name", "tenant"):
        vars(connections[DEFAULT_DB_ALIAS]).pop(attribute, None)


class Schemas:
    """What django-tenants adds to the connections of all threads."""

    schema_name = tenant = "public"

    def set_tenant(self, tenant):
        self.schema_name = self.tenant = tenant

    def set_schema_to_public(self):
        self.set_tenant("public")


@pytest.fixture
def tokens(schema, make_user):
    """By tenant, a token of its superuser, who is the only user there and has the key 1."""
    secrets = {}
    for name in (NORTH, SOUTH):
        with schema(name):
            user = make_user("boss", pk=1, is_staff=True, is_superuser=True)
            Customer.objects.create(pk=1, name=f"of the {name}")
            _, secrets[name] = PersonalToken.create(user=user, name="t", scopes=SCOPES)
    return secrets


def customers(token):
    return Client(token=token).call_tool("find_records", model="shop.customer", fields=["name"])


@pytest.mark.parametrize("home", [NORTH, SOUTH])
def test_a_token_is_of_no_use_at_another_tenant_right_after_it_was_of_use_at_home(
    schema, tokens, home
):
    other = {NORTH: SOUTH, SOUTH: NORTH}[home]
    for _ in range(3):
        with schema(home):
            rows = customers(tokens[home]).data["rows"]
        with schema(other), pytest.raises(ProtocolFailure) as refused:
            customers(tokens[home])

        assert rows == [[f"of the {home}"]]
        assert refused.value.status == 401


def test_what_staff_of_a_tenant_decide_holds_there_and_nowhere_else(schema, tokens):
    with schema(NORTH):
        ExposedModel.objects.create(pk=1, label="shop.customer", level=Level.HIDDEN)

    for _ in range(3):
        with schema(NORTH):
            hidden = customers(tokens[NORTH])
        with schema(SOUTH):
            shown = customers(tokens[SOUTH])

        assert hidden.is_error
        assert shown.data["rows"] == [["of the south"]]


def test_calls_of_a_tenant_are_not_counted_for_the_user_of_the_same_key_elsewhere(
    schema, tokens, settings
):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "CALLS_PER_MINUTE": 1}
    northern, southern = Client(token=tokens[NORTH]), Client(token=tokens[SOUTH])
    with schema(NORTH):
        northern.list_tools()
        with pytest.raises(ProtocolFailure) as refused:
            northern.list_tools()
    with schema(SOUTH):
        tools = southern.list_tools()

    assert refused.value.status == 429
    assert tools


def test_what_changes_at_a_tenant_concerns_nobody_of_another(schema, tokens):
    published, callers = [], {}
    outbox = Outbox()
    outbox.add_sink(published.extend)
    for name in (NORTH, SOUTH):
        with schema(name):
            user = get_user_model().objects.get(pk=1)
            callers[name] = own_copy(Principal(user=user, scopes=SCOPES, method="x"))
            outbox.publish({Change(topic=name)})
    outbox.publish({Change(topic="all")})
    outbox.flush()

    concerned = {
        name: sorted(change.topic for change in published if change.concerns(caller, user="1"))
        for name, caller in callers.items()
    }

    assert concerned == {NORTH: ["all", NORTH], SOUTH: ["all", SOUTH]}


def write_by_writer(job):
    writer = Writer(write=lambda rows, using: job(), gather=0.0)
    writer.put({})
    writer.close()


@pytest.mark.parametrize("write", [write_by_writer, Uses(quiet=0).note], ids=["record", "use"])
def test_a_thread_of_ours_writes_where_the_call_was(schema, write):
    schemas = Queue()

    def job():
        schemas.put(connection.schema_name)

    with schema(SOUTH):
        write(*([] if write is write_by_writer else ["a"]), job)

    assert schemas.get(timeout=PATIENCE) == SOUTH


def entries(name):
    """The keys of something that this process keeps, each with what is kept under it."""
    memory = resolve_name(f"mcp_django.{name}")
    return {repr(entry) for entry in (memory.items() if isinstance(memory, dict) else memory)}


def test_whatever_is_kept_of_a_call_names_its_tenant(schema, tokens):
    clients = {tenant: Client(token=secret) for tenant, secret in tokens.items()}
    before = {name: entries(name) for name in BY_PLACE}
    for tenant, client in clients.items():
        with schema(tenant):
            ExposedModel.objects.create(label="shop.customer", level=Level.WRITE)
            client.list_prompts()
            client.list_tools()
            client.call_tool("find_records", model="no such model")
            values = {"name": "x", "country": "DE"}
            client.call_tool("create_record", model="shop.customer", values=values, dry_run=True)
            client.complete("django://models/{model}", "model", "shop")

    kept = {name: entries(name) - before[name] for name in BY_PLACE}
    assert [
        entry
        for entry in set().union(*kept.values())
        if not ("'north'" in entry or "'south'" in entry or "/north" in entry or "/south" in entry)
    ] == []
    assert sum(map(bool, kept.values())) > 7
