"""Reading what staff decided, where the database has trouble with it."""

from __future__ import annotations

import pytest
from django.db import OperationalError, connection, models

from mcp_django.exposure.decisions import NOTHING_DECIDED, has_table, read_decisions
from mcp_django.levels import Level
from mcp_django.models import ExposedModel, ExposedTool

pytestmark = pytest.mark.django_db


def drop(table):
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {connection.ops.quote_name(table)}")


@pytest.mark.skipif(
    not connection.features.can_rollback_ddl,
    reason="it commits before it drops a table",
)
def test_before_its_tables_are_made_nothing_is_decided_and_the_transaction_goes_on():
    drop(ExposedModel.groups.through._meta.db_table)
    drop(ExposedModel._meta.db_table)

    assert read_decisions("default") == NOTHING_DECIDED
    assert ExposedTool.objects.count() == 0


def test_any_other_trouble_is_no_reason_to_open_what_was_closed():
    ExposedModel.objects.create(label="shop.order", level=Level.HIDDEN)

    def fail(execute, sql, params, many, context):
        if ExposedModel._meta.db_table in sql and sql.startswith("SELECT"):
            raise OperationalError("The disk is on fire.")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(fail), pytest.raises(OperationalError, match="on fire"):
        read_decisions("default")


class Ghost(models.Model):
    name = models.CharField(max_length=5)

    class Meta:
        managed = False
        app_label = "nasty"


def test_a_table_of_a_database_that_does_not_answer_is_taken_for_granted(shop):
    """Reading it is an error then, and no shorter list."""

    def refuse(execute, sql, params, many, context):
        raise OperationalError("The database is gone.")

    assert not has_table(Ghost)
    with connection.execute_wrapper(refuse):
        assert has_table(Ghost)
