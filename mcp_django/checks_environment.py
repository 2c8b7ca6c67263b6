"""What a site's databases, middleware and store mean for calls, told before the first one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.core.checks import CheckMessage, Error, Info, Warning
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.utils.module_loading import import_string

from mcp_django.conf import get_config
from mcp_django.exposure.zones import knows_zones
from mcp_django.stores.chosen import make_store
from mcp_django.transports.layer import links_processes
from mcp_django.transports.middleware import chosen

WAL = "PRAGMA journal_mode=WAL;"


def check_databases(**kwargs: Any) -> Iterator[CheckMessage]:
    """W003, W004."""
    for alias in connections:
        settings = connections.settings[alias]
        options = settings.get("OPTIONS", {})
        if connections[alias].vendor == "sqlite":
            yield from check_sqlite(alias, options)
        if settings.get("CONN_MAX_AGE") == 0 and not options.get("pool"):
            yield Warning(
                f"The database {alias!r} is connected to anew for every call, which costs more "
                "than the call.",
                hint=f'DATABASES[{alias!r}]["CONN_MAX_AGE"] = 60, or OPTIONS["pool"]',
                id="mcp_django.W004",
            )


def check_sqlite(alias: str, options: dict[str, Any]) -> Iterator[CheckMessage]:
    missing: dict[str, object] = {}
    if options.get("transaction_mode", "").upper() != "IMMEDIATE":
        missing["transaction_mode"] = "IMMEDIATE"
    if "wal" not in options.get("init_command", "").lower():
        missing["init_command"] = f"{WAL} {options.get('init_command', '')}".strip()
    if options.get("timeout", 5) < 20:
        missing["timeout"] = 20
    if missing:
        yield Warning(
            f"The SQLite database {alias!r} will answer 'database is locked' when assistants "
            "and people write at the same time.",
            hint=f'DATABASES[{alias!r}]["OPTIONS"] = {options | missing!r}',
            id="mcp_django.W003",
        )


def check_time_zones(
    *, databases: Iterable[str] | None = None, **kwargs: Any
) -> Iterator[Warning]:
    """W006. Asks the databases, so it runs on migrate and on check --database only."""
    for alias in databases or ():
        if not knows_zones(alias):
            yield Warning(
                f"The database {alias!r} has no time zone tables, so assistants cannot filter or "
                "group by parts of points in time.",
                hint="mariadb-tzinfo-to-sql /usr/share/zoneinfo | mariadb -u root mysql",
                id="mcp_django.W006",
            )


def check_layer(**kwargs: Any) -> Iterator[CheckMessage]:
    """W002, when a site is checked for deployment."""
    if not links_processes():
        yield Warning(
            "No channel layer links the processes of this site: changes that one of them makes do "
            "not reach clients that are connected to another.",
            hint="Set CHANNEL_LAYERS to channels_redis, or silence this check if the site is one "
            "process.",
            id="mcp_django.W002",
        )


def check_middleware(**kwargs: Any) -> Iterator[CheckMessage]:
    """E006, I001: what runs round a call is never a surprise."""
    choice = get_config().run_middleware
    if isinstance(choice, str) and choice not in ("auto", "project", "none"):
        yield Error(
            f"MCP_DJANGO['RUN_MIDDLEWARE'] is {choice!r}.",
            hint='"RUN_MIDDLEWARE": "auto", "project", "none", or a list of dotted paths',
            id="mcp_django.E006",
        )
        return
    try:
        paths = chosen()
        for path in paths:
            import_string(path)
    except ImportError as error:
        yield Error(f"Middleware cannot be imported: {error}.", id="mcp_django.E006")
        return
    if paths:
        yield Info(
            f"This middleware runs round every call of an assistant: {', '.join(paths)}.",
            hint='To choose yourself, set "RUN_MIDDLEWARE" to a list of dotted paths.',
            id="mcp_django.I001",
        )


def check_store(**kwargs: Any) -> Iterator[CheckMessage]:
    """E011. Asks nothing of the store."""
    try:
        make_store()
    except ImproperlyConfigured as error:
        yield Error(
            str(error),
            hint='"STORE": "database", or "redis" with "STORE_URL": "redis://127.0.0.1:6379/1"',
            id="mcp_django.E011",
        )
