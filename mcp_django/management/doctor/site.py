"""The half of `mcp_doctor` that asks the site itself: its checks, services, tables and tokens."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

from asgiref.sync import async_to_sync
from django.apps import apps
from django.conf import settings
from django.core.checks import WARNING, run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections, router
from django.db import Error as DatabaseError
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from mcp_django.audit.entries import printable
from mcp_django.conf import get_config
from mcp_django.connections import apart, current_schemas
from mcp_django.exposure.decisions import decisions, exposed_by
from mcp_django.exposure.limits import is_timeout, set_deadline
from mcp_django.exposure.options import looks_secret
from mcp_django.exposure.paths import declaration_of
from mcp_django.exposure.registry import registry
from mcp_django.management.doctor import Finding, error, info, ok, warning
from mcp_django.models import PersonalToken
from mcp_django.principal import DEFAULT_SERVER
from mcp_django.stores.documents import PREFIX, make_cache, missing_table
from mcp_django.transports.layer import PATIENCE, get_layer, links_processes

#: The apps whose tables a call needs, of those that are installed.
APPS = ("mcp_django", "mcp_django_oauth", "oauth2_provider")
#: A statement that runs for seconds unless something ends it, by vendor.
SLOW_STATEMENTS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000000) "
    "SELECT COUNT(*) FROM n",
    "postgresql": "SELECT pg_sleep(3)",
    "mysql": "SELECT SLEEP(3)",
}
#: Days since its last use after which nobody misses an expired token.
RECENT_DAYS = 30
#: Things of one kind that a sentence names.
MOST_LISTED = 5


def diagnose_site() -> Iterator[Finding]:
    """Yield what can be said of the site without a request to its endpoint."""
    by_alias = {alias: list(diagnose_database(alias)) for alias in connections}
    working = [alias for alias, found in by_alias.items() if found[0].severity != "error"]
    messages = list(read_checks(working))
    yield from messages
    for found in by_alias.values():
        yield from found
    if any(message.check == "mcp_django.E003" for message in messages):
        # Nothing else can be asked while the settings cannot be read.
        return
    yield from diagnose_layer()
    yield from diagnose_cache(working)
    unapplied = list(diagnose_migrations(working))
    yield from unapplied
    has_tables = all(one.severity == "ok" for one in unapplied)
    if has_tables and router.db_for_read(PersonalToken) in working:
        for schema in current_schemas():
            yield info(
                f"Tokens and decisions are those of the schema {schema.name!r}. Each tenant has "
                "its own.",
                "python manage.py tenant_command mcp_doctor --schema SCHEMA",
            )
        yield from diagnose_switches()
        yield from diagnose_tokens()
        yield from diagnose_fields()


def read_checks(databases: Iterable[str]) -> Iterator[Finding]:
    """Yield the messages of the system checks. What matters for deployment alone is information
    while DEBUG is on.
    """
    usual = run_checks(tags=["mcp_django"], databases=list(databases))
    every = run_checks(
        tags=["mcp_django"], include_deployment_checks=True, databases=list(databases)
    )
    for message in every:
        if not message.is_silenced():
            is_info = message.level < WARNING or (settings.DEBUG and message not in usual)
            severity = "info" if is_info else "error" if message.is_serious() else "warning"
            hint, check = message.hint or "", message.id or ""
            yield Finding(severity, message.msg, hint, check)
    if not every:
        yield ok("The system checks find nothing.")


# Databases


def diagnose_database(alias: str) -> Iterator[Finding]:
    """Yield an error alone, or what is known of a database that answers."""
    try:
        connection: Any = connections[alias]
        connection.ensure_connection()
        is_limited = ends_slow_statements(connection)
        is_shared = False
        if connection.vendor == "postgresql":
            # Another process answers than PostgreSQL named on connecting.
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                is_shared = cursor.fetchone()[0] != connection.connection.info.backend_pid
    except (DatabaseError, ImproperlyConfigured) as problem:
        yield error(
            f"The database {alias!r} does not answer: {first_line(problem)}",
            f"python manage.py dbshell --database {alias}, and correct DATABASES[{alias!r}].",
        )
        return
    if is_limited:
        yield ok(f"The database {alias!r} answers, and ends statements that take too long.")
    else:
        yield warning(
            f"The database {alias!r} answers, and does not end statements that take too long: "
            "STATEMENT_TIMEOUT has no effect there.",
            "Use SQLite, PostgreSQL, MariaDB or MySQL without a pooler that drops SET.",
        )
    if is_shared and not connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS"):
        yield warning(
            f"A pooler such as PgBouncer stands in front of the database {alias!r}. If it pools "
            "transactions, cursors on the server are lost between two of them.",
            f'DATABASES[{alias!r}]["DISABLE_SERVER_SIDE_CURSORS"] = True',
        )
    elif is_shared:
        yield info(f"A pooler such as PgBouncer stands in front of the database {alias!r}.")


def first_line(problem: Exception) -> str:
    return f"{str(problem).strip().partition(chr(10))[0].rstrip('.') or type(problem).__name__}."


def ends_slow_statements(connection: Any) -> bool:
    """Return whether a deadline of this package ends a statement, after a trial of 0.1 seconds."""
    if connection.vendor not in SLOW_STATEMENTS:
        return False
    try:
        # The deadline is over when a savepoint is rolled back, which is a statement too.
        with apart(connection.alias), ExitStack() as stack:
            stack.callback(set_deadline(connection, 0.1))
            with connection.cursor() as cursor:
                cursor.execute(SLOW_STATEMENTS[connection.vendor])
                # MySQL ends SLEEP with this answer in place of an error.
                return bool(connection.vendor == "mysql" and cursor.fetchone() == (1,))
    except OperationalError as problem:
        return is_timeout(problem)


def diagnose_migrations(working: Iterable[str]) -> Iterator[Finding]:
    for alias in working:
        executor = MigrationExecutor(connections[alias])
        targets = [
            node
            for node in executor.loader.graph.leaf_nodes()
            if node[0] in APPS and database_of_app(node[0]) == alias
        ]
        plan = [one for one, _ in executor.migration_plan(targets) if one.app_label in APPS]
        names = [f"{one.app_label}.{one.name}" for one in plan[:MOST_LISTED]]
        more = f" and {len(plan) - len(names)} more" if len(plan) > len(names) else ""
        option = "" if alias == DEFAULT_DB_ALIAS else f" --database {alias}"
        if names:
            yield error(
                f"Tables are missing or old. Not applied: {', '.join(names)}{more}.",
                f"python manage.py migrate{option}",
            )
        elif targets:
            yield ok("All migrations of this package are applied.")


def database_of_app(label: str) -> str:
    return router.db_for_write(next(apps.get_app_config(label).get_models()))


# What links processes


def diagnose_layer() -> Iterator[Finding]:
    if not links_processes():
        # mcp_django.W002 says what that means.
        return
    try:
        async_to_sync(send_to_itself)()
    except Exception as problem:  # whatever a channel layer raises
        yield error(
            f"The channel layer does not bring a message back: {first_line(problem)}",
            "Start the Redis of CHANNEL_LAYERS, or correct its hosts.",
        )
    else:
        yield ok("The channel layer brings a message back.")


async def send_to_itself() -> None:
    layer: Any = get_layer()
    async with asyncio.timeout(PATIENCE):
        channel = await layer.new_channel()
        await layer.send(channel, {"type": "mcp.doctor"})
        await layer.receive(channel)
        if hasattr(layer, "close_pools"):
            await layer.close_pools()


def diagnose_cache(working: Iterable[str]) -> Iterator[Finding]:
    alias, key = get_config().session_cache, f"{PREFIX}doctor:{secrets.token_hex(8)}"
    try:
        cache = make_cache()
    except ImproperlyConfigured:  # mcp_django.E011 says so
        return
    if missing_table(cache, working):  # mcp_django.W015 says so
        return
    try:
        cache.set(key, key, 60)
        is_kept = cache.get(key) == key
        cache.delete(key)
    except Exception as problem:  # whatever a cache raises
        yield error(
            f"The cache of sessions, {alias!r}, does not answer: {first_line(problem)}",
            f"Start the server of CACHES[{alias!r}], or name another cache as SESSION_CACHE.",
        )
        return
    if is_kept:
        yield ok(f"The cache of sessions, {alias!r}, returns what is written to it.")
    else:
        yield error(
            f"The cache of sessions, {alias!r}, forgets at once what is written to it.",
            '"SESSION_CACHE": an alias of CACHES whose backend is RedisCache or DatabaseCache.',
        )


# Decisions, tokens and fields


def diagnose_switches() -> Iterator[Finding]:
    decided = decisions()
    if decided.closed:
        yield error(
            "Staff closed the server, so every call gets 503.",
            "Switch Closed off, in the admin under Server settings.",
        )
    if decided.read_only or get_config().read_only:
        yield info("The server is read-only, so no tool that writes exists.")
    if decided.blocked_users:
        yield info(
            f"Users whose assistants are blocked: {len(decided.blocked_users)}. Each call of "
            "theirs gets 401.",
            "See User restrictions in the admin.",
        )


def diagnose_tokens() -> Iterator[Finding]:
    now, days = timezone.now(), get_config().token_max_days
    valid = PersonalToken.objects.select_related("user").filter(revoked_at=None)
    expired = valid.filter(expires_at__lte=now, last_used_at__gt=now - timedelta(days=RECENT_DAYS))
    endless = valid.filter(expires_at__gt=now + timedelta(days=days))
    if names := names_of_tokens(expired):
        yield warning(
            f"These tokens expired and were in use until lately: {names}. Clients that still send "
            "them get 401.",
            "python manage.py mcp_token create USER, and put the new token into the client.",
        )
    if names := names_of_tokens(endless):
        yield warning(
            f"These tokens live longer than the {days} days of TOKEN_MAX_DAYS: {names}.",
            "python manage.py mcp_token revoke ID",
        )
    count = valid.filter(expires_at__gt=now).count()
    yield ok(f"Personal tokens that are valid: {count}.")


def names_of_tokens(tokens: Any) -> str:
    rows = list(tokens.order_by("-last_used_at", "-pk")[: MOST_LISTED + 1])
    names = [
        f"{token.pk} of {printable(token.user.get_username())} ({printable(str(token))})"
        for token in rows[:MOST_LISTED]
    ]
    return ", ".join([*names, *["and more"] * (len(rows) > MOST_LISTED)])


def diagnose_fields() -> Iterator[Finding]:
    try:
        exposures = exposed_by(registry, DEFAULT_SERVER).exposures.values()
    except ImproperlyConfigured:  # mcp_django.E005 says so
        return
    for exposure in exposures:
        paths = [one for one in declaration_of(exposure).everything if one.field is not None]
        names = [
            path.text
            for path in paths
            if not path.field.primary_key and looks_secret(*path.steps[-1])
        ]
        if names:
            yield warning(
                f"{exposure.label} opens fields that look secret: {', '.join(names)}.",
                f"exclude = {names!r}, in the exposure of {exposure.label}.",
            )
    if not exposures:
        yield warning(
            "No model is opened, so assistants see no records.",
            "Register one in an mcp.py: @mcp.register(Order), or open one in the admin.",
        )
