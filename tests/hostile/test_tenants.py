"""Two tenants in one process, as packages with a schema for each have them: nothing of the other.

A token of one tenant has the same text and the same key everywhere. What this process keeps in
memory must not.
"""

from __future__ import annotations

import re
from contextlib import contextmanager

import pytest
from django.db import connection

from mcp_django.levels import Level
from mcp_django.models import ExposedModel, PersonalToken
from mcp_django.principal import SCOPES
from mcp_django.testing import Client, ProtocolFailure
from tests.shop.models import Customer

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="Others have schemas of their own."),
]
NORTH, SOUTH = "north", "south"


@pytest.fixture
def schema():
    """Enter a schema, as the middleware of django-tenants does by `connection.set_schema()`.

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
        if getattr(connection, "schema_name", NORTH) == SOUTH:
            sql = southern(sql)
        return execute(sql, params, many, context)

    @contextmanager
    def enter(name):
        connection.schema_name = name
        try:
            yield
        finally:
            del connection.schema_name

    with connection.execute_wrapper(execute):
        yield enter


@pytest.fixture
def tokens(schema, make_user):
    """By tenant, a token of its superuser, who is the only user there and has the key 1."""
    secrets = {}
    for name in (NORTH, SOUTH):
        with schema(name):
            user = make_user(name, pk=1, is_staff=True, is_superuser=True)
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
