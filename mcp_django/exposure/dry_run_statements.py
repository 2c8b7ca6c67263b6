"""What a statement of SQL would do, as far as a dry run must know before it runs.

This is a guard against accidents and none against somebody who writes SQL to get past it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from mcp_django.exposure.dry_run_state import DryRun

#: All that a transaction takes back. MySQL and Oracle commit before and after most others.
ALLOWED_TEXT = """
SELECT INSERT UPDATE DELETE WITH VALUES TABLE MERGE REPLACE SAVEPOINT RELEASE SET SHOW EXPLAIN
PRAGMA DECLARE FETCH MOVE CLOSE NOTIFY LISTEN UNLISTEN
"""
ALLOWED = frozenset(ALLOWED_TEXT.split())
#: In PostgreSQL a lock is part of the transaction; in MySQL it ends one.
ALLOWED_IN = {"postgresql": frozenset({"LOCK"})}
ROLLBACK_TO = re.compile(r"\s*ROLLBACK\s+(?:WORK\s+|TRANSACTION\s+)?TO\b", re.IGNORECASE)
SETS_FOR_GOOD = re.compile(r"\s*SET\s+(?:@@)?(?:GLOBAL|PERSIST|\w*\.?AUTOCOMMIT)", re.IGNORECASE)
HEAD = re.compile(r"[\s(]*(\w+)")
# Only MySQL escapes quotes with a backslash in any text.
STRINGS = {
    "mysql": r"'(?:[^'\\]|''|\\.)*'|\"(?:[^\"\\]|\"\"|\\.)*\"",
    "": r"[eE]'(?:[^'\\]|''|\\.)*'|'(?:[^']|'')*'|\$(\w*)\$.*?\$\1\$",
}
COMMENTS = r"--[^\n]*|/\*.*?\*/"
TOKENS = {
    vendor: re.compile(f"{strings}|{COMMENTS}", re.DOTALL) for vendor, strings in STRINGS.items()
}
NAME = r"(?:[\w$]+|\"[^\"]+\"|`[^`]+`)"
WRITES = re.compile(
    # Not FOR UPDATE, DO UPDATE or ON DUPLICATE KEY UPDATE.
    r"(?<!FOR )(?<!DO )(?<!KEY )\b"
    r"(?:(INSERT|REPLACE|MERGE)(?:\s+OR\s+\w+|\s+IGNORE)?\s+INTO|(UPDATE)(?:\s+OR\s+\w+)?|"
    rf"(DELETE)\s+FROM)\s+(?:ONLY\s+)?({NAME}(?:\.{NAME})*)",
    re.IGNORECASE,
)
VALUES = re.compile(r"\)\s*,\s*\(")


class Statements:
    """Sees every statement of a dry run, stops some, and counts the rows that others wrote."""

    def __init__(self, run: DryRun) -> None:
        self.run = run
        #: Rows by alias, verb and table. What was written, and never with which values.
        self.written: Counter[tuple[str, str, str]] = Counter()
        #: Databases without a transaction of the dry run. They can be read.
        self.not_begun: set[str] = set()

    def watch(self, execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001
        """A wrapper as `connection.execute_wrapper` takes it."""
        connection = context["connection"]
        text = as_text(sql)
        self.run.check_time()
        plain = without_texts(text, vendor=connection.vendor)
        for one in plain.split(";"):
            if not is_taken_back(one, vendor=connection.vendor):
                self.run.refuse("it ends a transaction, or changes the database itself")
            if connection.alias in self.not_begun and word_of(one) not in ("", "SELECT"):
                self.run.refuse(f"it writes to {connection.alias}, which could not be prepared")
        answer = execute(sql, params, many, context)
        for verb, table in writes(plain):
            rows = getattr(context["cursor"], "rowcount", 0)
            # Before the rows of RETURNING are fetched, SQLite does not know how many.
            rows = rows if rows > 0 or verb != "INSERT" else 1 + len(VALUES.findall(plain))
            self.written[connection.alias, verb, table] += max(rows, 0)
        return answer

    def tables(self, alias: str) -> list[str]:
        return sorted({table for using, _, table in self.written if using == alias})


def as_text(sql: Any) -> str:
    if hasattr(sql, "as_string"):  # psycopg's own way to write SQL
        sql = sql.as_string(None)
    return sql.decode() if isinstance(sql, bytes) else str(sql)


def without_texts(sql: str, *, vendor: str) -> str:
    """The statement without literal texts and comments, as what is in them means nothing."""
    # MySQL runs what stands in a comment like this.
    return TOKENS.get(vendor, TOKENS[""]).sub(
        lambda found: found[0] if found[0].startswith("/*!") else " ", sql
    )


def word_of(statement: str) -> str:
    """What it begins with."""
    head = HEAD.match(statement)
    return head[1].upper() if head else ""


def is_taken_back(statement: str, *, vendor: str) -> bool:
    """Whether a rolled back transaction takes it back, or it does nothing."""
    word = word_of(statement)
    if word == "SET":
        return not SETS_FOR_GOOD.match(statement)
    if word == "ROLLBACK":
        return bool(ROLLBACK_TO.match(statement))
    return not statement.strip() or word in ALLOWED or word in ALLOWED_IN.get(vendor, ())


def writes(statement: str) -> Iterator[tuple[str, str]]:
    """The verbs and the tables of what it writes, with more than one only behind WITH."""
    word = word_of(statement)
    found = WRITES.finditer(statement) if word not in ("SELECT", "SAVEPOINT", "RELEASE") else ()
    for one in found:
        verb = (one[1] or one[2] or one[3]).upper()
        verb = "INSERT" if verb in ("REPLACE", "MERGE") else verb
        yield verb, one[4].rpartition(".")[2].strip('"`')
        if word != "WITH":
            return
