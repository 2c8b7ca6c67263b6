from __future__ import annotations

import pytest

from mcp_django.exposure.admin_bridge.dry_run_watch import as_text, is_taken_back


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "(SELECT 1) UNION (SELECT 2);",
        "  insert into a values (%s)",
        "WITH x AS (SELECT 1) UPDATE a SET b = 1",
        'SAVEPOINT "s1"',
        'RELEASE SAVEPOINT "s1"',
        'ROLLBACK TO SAVEPOINT "s1"',
        "ROLLBACK TO s1",
        "SET CONSTRAINTS ALL IMMEDIATE",
        "SET search_path = x",
        "PRAGMA foreign_key_check",
        "SELECT 1 -- note",
        "DELETE FROM `a`; \n",
    ],
)
def test_what_a_transaction_takes_back_may_run(sql):
    assert is_taken_back(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "$",
        "COMMIT",
        "END",
        "BEGIN",
        "ROLLBACK",
        "ROLLBACK; SELECT 'TO'",
        "select 1 ; commit",
        "CREATE TABLE a (b int)",
        "ALTER TABLE a ADD b int",
        "DROP TABLE a",
        "TRUNCATE a",
        "VACUUM",
        "CALL p()",
        "DO $$ BEGIN END $$",
        "COPY a TO PROGRAM 'x'",
        "SET AUTOCOMMIT = 1",
        "SET @@session.autocommit = 1",
        "set global x = 1",
        "/*!50000 COMMIT */",
        "SELECT 'it''s'; COMMIT",
        r"SELECT 'a\'; COMMIT; --'",
        r"SELECT E'a\''; COMMIT; --'",
        "LOCK TABLES a WRITE",
    ],
)
def test_all_others_may_not(sql):
    assert not is_taken_back(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'a;b'",
        "SELECT $$;COMMIT$$",
        "/* note */ SELECT 1",
        "LOCK TABLE a IN SHARE MODE",
        "REPLACE INTO a VALUES (1)",
    ],
)
def test_sql_that_only_the_database_could_tell_from_these_may_not_either(sql):
    assert not is_taken_back(sql)


class Composed:
    def as_string(self, context):
        return "SELECT 1"


@pytest.mark.parametrize("sql", ["SELECT 1", b"SELECT 1", Composed()], ids=["str", "bytes", "own"])
def test_a_statement_is_a_text_however_a_driver_writes_it(sql):
    assert as_text(sql) == "SELECT 1"
