from __future__ import annotations

import pytest

from mcp_django.exposure.dry_run_statements import (
    as_text,
    is_taken_back,
    without_texts,
    writes,
)


def is_allowed(sql, vendor="postgresql"):
    plain = without_texts(sql, vendor=vendor)
    return all(is_taken_back(one, vendor=vendor) for one in plain.split(";"))


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
        "rollback work to s1",
        "SET CONSTRAINTS ALL IMMEDIATE",
        "SET search_path = x",
        "LOCK TABLE a IN SHARE MODE",
        "SELECT 'a;COMMIT' -- ; COMMIT",
        "SELECT $$;COMMIT$$, $x$;COMMIT$x$ /* ; COMMIT */",
        "",
    ],
)
def test_what_a_transaction_takes_back_may_run(sql):
    assert is_allowed(sql)


@pytest.mark.parametrize(
    "sql",
    [
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
        "SET GLOBAL x = 1",
        "/*!50000 COMMIT */",
        "SELECT 'it''s'; COMMIT",
        r"SELECT 'a\'; COMMIT; --'",
        r"SELECT E'a\''; COMMIT; --'",
        "$",
    ],
)
def test_all_others_may_not(sql):
    assert not is_allowed(sql)


def test_mysql_has_words_and_quotes_of_its_own():
    assert is_allowed(r"SELECT 'a\'; COMMIT; --', " '"b\\"; COMMIT"', vendor="mysql")
    assert not is_allowed("LOCK TABLES a WRITE", vendor="mysql")
    assert not is_allowed("SELECT 1; COMMIT", vendor="mysql")


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ('INSERT INTO "shop_order" ("a") VALUES (%s)', [("INSERT", "shop_order")]),
        ("insert or ignore into a select 1", [("INSERT", "a")]),
        ("INSERT IGNORE INTO `a` VALUES (1)", [("INSERT", "a")]),
        ("INSERT INTO a VALUES (1) ON CONFLICT DO UPDATE SET b = 1", [("INSERT", "a")]),
        ("REPLACE INTO a VALUES (1)", [("INSERT", "a")]),
        ('UPDATE ONLY "x"."a" SET b = 1', [("UPDATE", "a")]),
        ('UPDATE "a" SET b = (SELECT 1 FROM c FOR UPDATE)', [("UPDATE", "a")]),
        ("DELETE FROM a WHERE b IN (SELECT 1 FROM c)", [("DELETE", "a")]),
        (
            "WITH x AS (DELETE FROM a RETURNING b), y AS (SELECT 1 FROM c FOR UPDATE OF c) "
            "INSERT INTO d SELECT 1",
            [("DELETE", "a"), ("INSERT", "d")],
        ),
        ("SELECT 1 FROM a FOR UPDATE", []),
        ("SELECT 1 FROM a FOR UPDATE OF a", []),
        ('SAVEPOINT "UPDATE a"', []),
    ],
)
def test_verbs_and_tables_of_what_is_written(sql, found):
    assert list(writes(sql)) == found


class Composed:
    def as_string(self, context):
        return "SELECT 1"


@pytest.mark.parametrize("sql", ["SELECT 1", b"SELECT 1", Composed()], ids=["str", "bytes", "own"])
def test_a_statement_is_a_text_however_a_driver_writes_it(sql):
    assert as_text(sql) == "SELECT 1"
