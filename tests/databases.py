"""The database of a test run. MCP_TEST_DB names it: sqlite (default), postgresql or mariadb."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import gettempdir
from typing import Any

VENDOR = os.environ.get("MCP_TEST_DB", "sqlite")


def database(name: str = "mcp_django") -> dict[str, Any]:
    """An entry of DATABASES, whose test database is this process's own."""
    own = f"test_{name}_{os.getpid()}"
    return KINDS[VENDOR](name, own)


def sqlite(name: str, own: str) -> dict[str, Any]:
    # A file, not memory: tests with two connections need the real thing.
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": Path(gettempdir()) / f"{name}.sqlite3",
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
        "TEST": {"NAME": Path(gettempdir()) / f"{own}.sqlite3"},
    }


def postgresql(name: str, own: str) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ.get("MCP_TEST_PG_NAME", "test"),
        "HOST": os.environ.get("MCP_TEST_PG_HOST", "127.0.0.1"),
        "PORT": os.environ.get("MCP_TEST_PG_PORT", "5432"),
        "USER": os.environ.get("MCP_TEST_PG_USER", "postgres"),
        "TEST": {"NAME": own},
    }


def mariadb(name: str, own: str) -> dict[str, Any]:
    import pymysql  # type: ignore[import-untyped]

    # mysqlclient has no wheels; this is the way that PyMySQL documents for Django.
    pymysql.install_as_MySQLdb()
    return {
        "ENGINE": "django.db.backends.mysql",
        "NAME": os.environ.get("MCP_TEST_MARIADB_NAME", "test"),
        "HOST": os.environ.get("MCP_TEST_MARIADB_HOST", "127.0.0.1"),
        "PORT": os.environ.get("MCP_TEST_MARIADB_PORT", "3306"),
        "USER": os.environ.get("MCP_TEST_MARIADB_USER", "root"),
        "PASSWORD": os.environ.get("MCP_TEST_MARIADB_PASSWORD", ""),
        "OPTIONS": {"charset": "utf8mb4"},
        "TEST": {"NAME": own, "CHARSET": "utf8mb4"},
    }


KINDS = {"sqlite": sqlite, "postgresql": postgresql, "mariadb": mariadb}


def caches() -> dict[str, Any]:
    """CACHES, with one of each kind in which sessions may be. Big enough for any test."""
    host = os.environ.get("MCP_TEST_REDIS_HOST", "127.0.0.1")
    port = os.environ.get("MCP_TEST_REDIS_PORT", "6379")
    backends = "django.core.cache.backends"
    big = {"MAX_ENTRIES": 100_000}
    return {
        "default": {"BACKEND": f"{backends}.locmem.LocMemCache", "OPTIONS": big},
        "database": {
            "BACKEND": f"{backends}.db.DatabaseCache",
            "LOCATION": "mcp_cache",
            "OPTIONS": big,
        },
        "redis": {
            "BACKEND": f"{backends}.redis.RedisCache",
            "LOCATION": f"redis://{host}:{port}/9",
            # Other runs may have the same Redis.
            "KEY_PREFIX": f"test_{os.getpid()}",
        },
    }


def failing_for(table: str, error: Exception) -> AbstractContextManager[None]:
    """While the statements of the default database that have this text in them fail."""
    # Not at the top: settings import this module.
    from django.db import connection

    def fail(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if table in sql:
            raise error
        return execute(sql, params, many, context)

    return connection.execute_wrapper(fail)
