"""Dry runs: records are written to see what would change, and all of it is rolled back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from functools import cache, partial, wraps
from threading import get_ident
from typing import Any

from django.core.cache import caches
from django.core.cache.backends.locmem import LocMemCache
from django.core.files.storage import InMemoryStorage
from django.core.mail import EmailMessage
from django.db import Error, IntegrityError, connections, router, transaction
from django.db.models import Model
from django.db.models.fields.files import FieldFile

from mcp_django.exceptions import ToolError

#: What Django says of a transaction that begins or ends inside of another.
OWN_TRANSACTION = ("durable atomic block cannot be nested", "forbidden when an 'atomic' block")
#: A savepoint that is there for as long as the transaction is that the dry run began.
MARK = "mcp_django_dry_run"
NO_DATABASE = "django.db.backends.dummy"
NOT_TAKEN_BACK = (
    "This could not be taken back: it ended a transaction by itself, past Django. What it did "
    "until then is done. Look at the records before you do anything else."
)
#: The storage of files in the dry run that the current code is part of. Other threads have none.
current: ContextVar[InMemoryStorage | None] = ContextVar("mcp_django_dry_run", default=None)


@contextmanager
def dry_run(model: type[Model]) -> Iterator[None]:
    """Write records of a model in the block, and roll it all back on every database.

    Raises ToolError where code of the site has a transaction of its own, or where records would
    refer to others that are not there. What the block itself raises passes through.
    """
    if current.get() is not None:
        raise RuntimeError("There is a dry run inside of a dry run.")
    install()
    with ExitStack() as blocks:
        begun = []
        for alias in writable_aliases():
            # A database that is down must not stop the others.
            with suppress(Error):
                blocks.enter_context(rolled_back(alias))
                begun.append(alias)
        for alias in set(connections).difference(begun):
            blocks.enter_context(connections[alias].execute_wrapper(only_reads))
        for alias in caches:
            # Some packages put there at once what they save. One for each thread and alias, as
            # Django never forgets a name.
            blocks.callback(caches.__setitem__, alias, caches[alias])
            caches[alias] = LocMemCache(f"{MARK} {get_ident()} {alias}", {})
            caches[alias].clear()
        token = current.set(InMemoryStorage())
        try:
            yield
            for alias in begun:
                check_constraints(alias, model)
        except Exception as error:
            if any(text in str(error) for text in OWN_TRANSACTION):
                raise ToolError(
                    "This cannot be tried: it manages its own transaction. Nothing was changed."
                ) from error
            raise
        finally:
            current.reset(token)


def writable_aliases() -> Iterator[str]:
    """Yield the databases that can have a transaction of the dry run.

    Two aliases of one SQLite file would wait for each other forever, so only the first is taken.
    """
    files = set()
    for alias in connections:
        connection = connections[alias]
        name = connection.settings_dict["NAME"]
        if connection.settings_dict["ENGINE"] == NO_DATABASE or name in files:
            continue
        if connection.vendor == "sqlite":
            files.add(name)
        yield alias


def only_reads(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001
    """Refuse what nobody would take back: a wrapper as `connection.execute_wrapper` takes it."""
    if not str(sql).lstrip("( ").upper().startswith("SELECT"):
        alias = context["connection"].alias
        raise ToolError(
            f"This cannot be tried: it writes to {alias}, which could not be prepared."
        )
    return execute(sql, params, many, context)


@contextmanager
def rolled_back(alias: str) -> Iterator[None]:
    """Roll back whatever the block does on a database. Raises ToolError if code in it has ended
    the transaction already.
    """
    connection = connections[alias]
    with transaction.atomic(using=alias):
        execute(alias, f"SAVEPOINT {MARK}")
        # MySQL with tables of MyISAM. Other databases would make a table to find out.
        if connection.vendor == "mysql" and not connection.features.supports_transactions:
            raise ToolError("Nothing can be tried: the database of this site has no transactions.")
        try:
            yield
        finally:
            if not connection.closed_in_transaction:  # which rolls back, too
                try:
                    transaction.set_rollback(False, using=alias)
                    execute(alias, f"ROLLBACK TO SAVEPOINT {MARK}")
                except Error:
                    raise ToolError(NOT_TAKEN_BACK) from None
                finally:
                    transaction.set_rollback(True, using=alias)


def check_constraints(alias: str, model: type[Model]) -> None:
    """Check what the database checks only at a commit. Raises ToolError."""
    connection: Any = connections[alias]
    if not connection.features.can_defer_constraint_checks:
        return
    related: Any = [relation.related_model for relation in model._meta.related_objects]
    tables = {
        one._meta.db_table
        for one in (model, *model._meta.all_parents, *related)
        if one._meta.can_migrate(connection) and router.allow_migrate_model(alias, one)
    }
    try:
        connection.check_constraints(table_names=sorted(tables))
    except IntegrityError:
        raise ToolError(
            "This cannot be done: records would be left that refer to others that are not there. "
            "Nothing was changed."
        ) from None


def execute(alias: str, sql: str) -> None:
    with connections[alias].cursor() as cursor:
        cursor.execute(sql)


# Mail that is not sent and files that are not stored, as long as there is a dry run.
#
# Three methods of Django, through which nearly all mail and all files of records pass, ask whether
# the code that calls them is part of a dry run. What goes past them is not held back: see
# docs/topics/writing.md.


@cache
def install() -> None:
    """Have the three methods ask from now on. Outside of a dry run they do what they did."""
    ask_in(EmailMessage, "send", hold_mail)
    ask_in(FieldFile, "save", hold_save)
    ask_in(FieldFile, "delete", hold_delete)


def ask_in(owner: type, name: str, hold: Callable[..., Any]) -> None:
    own = getattr(owner, name)

    @wraps(own)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        storage = current.get()
        if storage is None:
            return own(self, *args, **kwargs)
        return hold(storage, partial(own, self), self, *args, **kwargs)

    setattr(owner, name, method)


# In place of the methods: the storage of the dry run, the method itself, and its arguments.


def hold_mail(
    storage: InMemoryStorage, own: Any, message: EmailMessage, *args: Any, **kwargs: Any
) -> int:
    return 1 if message.recipients() else 0


def hold_save(
    storage: InMemoryStorage,
    own: Any,
    file: Any,
    name: str,
    content: Any,
    save: bool = True,  # noqa: FBT001, FBT002  as Django has it
) -> None:
    longest = file.field.max_length
    name = file.field.generate_filename(file.instance, name)
    name = file.storage.get_available_name(name, max_length=longest)
    file.storage = storage
    file.name = storage.save(name, content, max_length=longest)
    file.file, file._committed = None, True
    # Not its name: the instance would make another object of that, which asks the real storage.
    setattr(file.instance, file.field.attname, file)
    if save:
        file.instance.save()


def hold_delete(storage: InMemoryStorage, own: Any, file: Any, *args: Any, **kwargs: Any) -> None:
    file.storage = storage
    own(*args, **kwargs)
