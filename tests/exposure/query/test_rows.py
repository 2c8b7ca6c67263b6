"""Slow and refused statements, what is kept from call to call, and the rows of the admin."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
from django.db import (
    DataError,
    InternalError,
    OperationalError,
    connection,
    connections,
    transaction,
)
from django.db.models import Q
from django.db.models.sql import Query
from django.test import override_settings

from mcp_django.exceptions import QueryError
from mcp_django.exposure import limits
from mcp_django.exposure.limits import limited
from mcp_django.exposure.query.access import allowed_paths
from tests.children import start
from tests.nasty.models import Order
from tests.nasty.site import REGISTRY, caller, numbers
from tests.services import path_of
from tests.transports.live_servers import free_port, wait_for

pytestmark = pytest.mark.database


SLOW = {
    "sqlite": "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 1e9) "
    "SELECT count(*) FROM c",
    "postgresql": "SELECT pg_sleep(5)",
    "mysql": "SELECT SLEEP(5)",
}


def run(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


@pytest.mark.thorough
@pytest.mark.parametrize("is_atomic", [True, False])
def test_a_slow_statement_is_an_answer_and_the_connection_lives(transactional_db, is_atomic):
    start = time.monotonic()
    soon = override_settings(MCP_DJANGO={"STATEMENT_TIMEOUT": 0.2})

    block = transaction.atomic() if is_atomic else nullcontext()
    with soon, pytest.raises(QueryError, match="too long"), block, limited("default"):
        run(SLOW[connection.vendor])

    assert time.monotonic() - start < 3
    assert run("SELECT 1") == [(1,)]
    connection.close()  # and with it the short deadline


SHOWN = {
    "postgresql": ("SHOW statement_timeout", "5s"),
    "mysql": ("SELECT @@max_execution_time", 5_000),
    "mariadb": ("SELECT @@max_statement_time", 5),
}


@pytest.mark.skipif(connection.vendor == "sqlite", reason="the others keep it in the session")
@pytest.mark.parametrize("end", ["nothing", "transaction", "rollback", "error"])
def test_the_deadline_is_not_left_on_the_connection(transactional_db, end):
    is_mariadb = connection.vendor == "mysql" and connection.mysql_is_mariadb
    statement, value = SHOWN["mariadb" if is_mariadb else connection.vendor]
    before = run(statement)

    block = nullcontext() if end == "nothing" else transaction.atomic()
    with suppress(QueryError), block:
        with limited("default"):
            with limited("default"):
                run("SELECT 1")
            # The block within has taken nothing away.
            assert run(statement) == [(value,)]
            if end == "error":
                raise DataError("out of range")
        if end != "nothing":
            assert run(statement) == before
        if end == "rollback":
            transaction.set_rollback(True)

    assert run(statement) == before != [(value,)]


@pytest.mark.parametrize(
    ("name", "value"), [("max_statement_time", 0.5), ("max_execution_time", 500)]
)
def test_mysql_and_mariadb_count_the_deadline_in_their_own_units(name, value):
    statements = []
    cursor = SimpleNamespace(execute=lambda *statement: statements.append(statement))
    connection = SimpleNamespace(
        vendor="mysql",
        mysql_is_mariadb=name == "max_statement_time",
        wrap_database_errors=nullcontext(),
        connection=SimpleNamespace(cursor=lambda: nullcontext(cursor)),
    )

    end = limits.set_deadline(connection, 0.5)
    end()

    assert statements == [
        (f"SET SESSION {name} = %s", [value]),
        (f"SET SESSION {name} = DEFAULT", None),
    ]


@pytest.fixture
def pooled(transactional_db):
    """The database behind PgBouncer, which gives its two sessions to whoever begins a
    transaction."""
    port, own = free_port(), connection.settings_dict
    folder = TemporaryDirectory()
    config = Path(folder.name) / "pgbouncer.ini"
    config.write_text(f"""
[databases]
* = host={own["HOST"]} port={own["PORT"]} user={own["USER"]}
[pgbouncer]
auth_type = any
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
pool_mode = transaction
default_pool_size = 2
""")
    # It does not run as root, and who it runs as must find the file.
    user = ["-u", "nobody"] if os.getuid() == 0 else []
    config.parent.chmod(0o755)
    process = start([path_of("pgbouncer"), "-q", str(config), *user])
    wait_for(port)
    direct, connections.settings["default"] = connections["default"], {**own, "PORT": str(port)}
    connections["default"] = connections.create_connection("default")
    yield
    connection.close()
    connections["default"], connections.settings["default"] = direct, own
    process.terminate()
    process.wait()
    folder.cleanup()


@pytest.mark.thorough
@pytest.mark.needs("pgbouncer")
@pytest.mark.skipif(connection.vendor != "postgresql", reason="it is for PostgreSQL only")
def test_behind_a_pooler_nobody_else_gets_the_deadline(pooled):
    statement, value = SHOWN["postgresql"]

    for _ in range(5):
        with limited("default"):
            assert run(statement) == [(value,)]

    assert [run(statement) for _ in range(10)] == [[("0",)]] * 10


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OperationalError(1267, "Illegal mix of collations"), "characters that the column"),
        (OperationalError(1969, "max_statement_time exceeded"), "took too long"),
        (DataError("out of range"), "cannot compare these values"),
        (InternalError("overflow"), "cannot compare these values"),
    ],
)
def test_what_databases_refuse_becomes_a_sentence(db, error, sentence):
    with pytest.raises(QueryError, match=sentence), limited("default"):
        raise error


def plans():
    return allowed_paths(caller(), REGISTRY.exposures[Order]).plans


def test_a_plain_read_keeps_its_sql_and_new_values_run_it(shop, django_assert_num_queries):
    plans().clear()
    for number in ("A1", "A2", "zzz"):
        for _ in range(2):
            found = numbers(filters={"number": number, "customer__country__in": ["FR", "DE"]})
            assert found == ([number] if number != "zzz" else [])

    assert len(plans()) == 1
    for exact, expected in (("A1", ["A1"]), ("A1", ["A1"]), ("A2", [])):
        assert numbers(filters={"number": "A1", "number__exact": exact}) == expected


def test_values_that_need_other_sql_do_not_get_the_kept_one(shop):
    plans().clear()
    Order.objects.filter(pk=shop.a1.pk).update(gift=True)
    Order.objects.filter(pk=shop.a2.pk).update(gift=False)

    for filters, expected in (
        ({"gift": True}, "A1"),
        ({"gift": False}, "A2"),
        ({"gift": True}, "A1"),
        ({"quantity__in": [1, 2]}, "A1 A2"),
        ({"quantity__in": [1, 1]}, "A1"),
        ({"quantity__in": [3]}, "A3"),
        ({"customer__isnull": True}, "A3 R1"),
        ({"customer__isnull": False}, "A1 A2"),
    ):
        assert numbers(filters=filters) == expected.split()


def test_no_plan_is_kept_where_rows_or_labels_are_narrowed_or_a_page_goes_on(shop):
    plans().clear()
    narrow = {Order: lambda rows: rows.filter(status="paid")}

    assert numbers(caller(narrow=narrow)) == ["A1", "A3"]
    assert numbers(exclude={"number": "A1"}) == ["A2", "A3", "R1"]
    assert numbers(filters={"placed_at__year": 2026}) == ["A1"]
    assert numbers(filters={"tags__slug": "red"}) == ["A1"]
    assert plans() == {}


def test_a_query_of_the_sites_own_class_keeps_its_class(shop):
    class TenantQuery(Query):
        """Adds its condition while it compiles."""

        tenant = Q(api_token="t1")

        def get_compiler(self, *args, **kwargs):
            compiler = super().get_compiler(*args, **kwargs)
            compiler.query.add_q(self.tenant)
            return compiler

    def narrow(rows):
        rows = rows.all()
        rows.query = rows.query.chain(klass=TenantQuery)
        return rows

    assert numbers(caller(narrow={Order: narrow})) == ["A1"]
