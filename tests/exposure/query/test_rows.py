"""Slow and refused statements, what is kept from call to call, and the rows of the admin."""

from __future__ import annotations

import time
from contextlib import nullcontext

import pytest
from django.contrib.admin import AdminSite, ModelAdmin
from django.db import DataError, InternalError, OperationalError, connection, transaction
from django.db.models import Q
from django.db.models.sql import Query
from django.test import override_settings

from mcp_django.exceptions import NotFound, QueryError
from mcp_django.exposure import limits
from mcp_django.exposure.limits import limited
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.query.access import allowed_paths
from mcp_django.exposure.query.guard import is_mergeable, is_plain
from tests.nasty.models import Order, Region, Seat
from tests.nasty.site import EXPOSED, ORDER, REGISTRY, caller, numbers, record, records, registry

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


def deadlines(calls):
    """How many statements set a deadline while the calls run."""
    seen = []
    original = limits.SETTINGS["postgresql"]

    def counted(seconds):
        seen.append(seconds)
        return original.unit(seconds)

    limits.SETTINGS["postgresql"] = original._replace(unit=counted)
    try:
        for call in calls:
            call()
    finally:
        limits.SETTINGS["postgresql"] = original
    return len(seen)


def one_read():
    with limited("default"):
        run("SELECT 1")


@pytest.mark.skipif(connection.vendor != "postgresql", reason="others set it otherwise")
def test_the_deadline_is_set_once_per_connection_and_again_after_a_rollback(transactional_db):
    connection.close()

    assert deadlines([one_read] * 3) == 1
    connection.close()
    with transaction.atomic():
        assert deadlines([one_read] * 3) == 1
        transaction.set_rollback(True)
    assert run("SHOW statement_timeout") == [("0",)]
    assert deadlines([one_read] * 3) == 1
    assert run("SHOW statement_timeout") == [("10s",)]
    with transaction.atomic():
        assert deadlines([one_read]) == 0


class FakeMySQL:
    """The words for servers that these tests do not have."""

    vendor = "mysql"

    def __init__(self, *, is_mariadb):
        self.mysql_is_mariadb = is_mariadb


def test_mysql_and_mariadb_count_the_deadline_in_their_own_units():
    mariadb = limits.setting_of(FakeMySQL(is_mariadb=True))
    mysql = limits.setting_of(FakeMySQL(is_mariadb=False))

    assert (mariadb.statement, mariadb.unit(0.5)) == ("SET SESSION max_statement_time = %s", 0.5)
    assert (mysql.statement, mysql.unit(0.5)) == ("SET SESSION max_execution_time = %s", 500)


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


def test_the_same_condition_written_twice_runs_again_with_other_values(shop):
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


def test_bases_are_plain_merged_or_sealed():
    plain = Region.objects.all()

    assert is_plain(plain.query)
    assert is_plain(plain.order_by("budget").query)
    assert not is_plain(plain.filter(budget=1).query)
    assert is_mergeable(plain.filter(budget=1).query)
    for sealed in (
        plain.distinct(),
        plain[:5],
        plain[5:],
        plain.union(plain),
        plain.filter(customer__name="x"),
        plain.extra(select={"x": "1"}),
        plain.extra(tables=["nasty_order"]),
    ):
        assert not is_mergeable(sealed.query)


class OrderAdmin(ModelAdmin):  # type: ignore[type-arg]
    """Shows paid orders, and to most people only their numbers."""

    def get_queryset(self, request):
        return super().get_queryset(request).filter(status="paid")

    def get_fields(self, request, obj=None):
        return ["number"] if request.user.pk == 1 else ["number", "quantity"]

    def get_list_display(self, request):
        return ["number"]


@pytest.fixture
def nasty_admin():
    site = AdminSite(name="nasty")
    site.register(Order, OrderAdmin)
    with override_settings(MCP_DJANGO={"ADMIN_SITES": ["nasty"]}):
        yield site


def test_the_admins_rows_and_fields_hold_for_an_exposure_that_does_not_decide(shop, nasty_admin):
    tables = registry({Order: ORDER, Seat: EXPOSED[Seat]}, base=ModelExposure)
    few, more = caller(tables=tables), caller(tables=tables, pk=2)

    assert numbers(few) == ["A1", "A3"]
    assert records(few, Order, order_by=["number"])[0] == {"id": shop.a1.pk, "number": "A1"}
    assert "quantity" in records(more, Order)[0]
    with pytest.raises(QueryError):
        numbers(few, filters={"quantity": 1})
    assert numbers(more, filters={"quantity": 1}) == ["A1"]
    with pytest.raises(NotFound):
        record(more, Order, shop.a2.pk)


def test_a_deadline_of_a_connection_that_is_gone_is_forgotten(db):
    # As after `close()`: the driver's connection is another one now.
    setattr(connection, limits.MARK, (object(), None, 1.0, None))

    limits.lift_deadlines()

    assert not hasattr(connection, limits.MARK)
