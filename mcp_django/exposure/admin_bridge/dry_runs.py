"""Dry runs: records are written to see what would change, and all of it is rolled back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cache, partial, wraps
from typing import Any, NoReturn

from django.apps import apps
from django.core.files.storage import InMemoryStorage
from django.core.mail import EmailMessage
from django.db import Error, IntegrityError, connections, transaction
from django.db.models import signals
from django.db.models.fields.files import FieldFile

from mcp_django.exceptions import ToolError

#: Seconds. Whatever it has written stays locked for all others until it ends.
LONGEST = 10.0
#: Bytes of files that are held in memory.
MOST_BYTES = 32 * 2**20


class CannotBeTried(ToolError):
    """It would do something that cannot be rolled back."""


class DryRun:
    """What one dry run writes to and holds back. A refusal is kept as well, since code of the site
    may swallow the exception.
    """

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.ends = time.monotonic() + LONGEST
        self.refusal: CannotBeTried | None = None
        #: What files would hold.
        self.storage = InMemoryStorage()
        self.bytes = 0
        #: Aliases and tables that SQL wrote to.
        self.written: set[tuple[str, str]] = set()
        #: Databases without a transaction of the dry run. They can be read.
        self.not_begun: set[str] = set()
        models = apps.get_models(include_auto_created=True)
        self._tables = {unquoted(one._meta.db_table): one._meta.db_table for one in models}

    def refuse(self, reason: str) -> NoReturn:
        self.refusal = CannotBeTried(f"This cannot be tried: {reason}. Nothing was changed.")
        raise self.refusal

    def check_thread(self) -> None:
        """Another thread has another connection, whose changes nobody takes back."""
        if threading.get_ident() != self.thread:
            self.refuse("it writes to the database from another thread")

    def execute(self, execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001
        """A wrapper as `connection.execute_wrapper` takes it. Sees every statement, stops some,
        and notes the tables that others write to.
        """
        alias = context["connection"].alias
        text = as_text(sql)
        verb, *names = first_words(text)
        if time.monotonic() > self.ends:
            self.refuse(f"it takes more than {LONGEST:.0f} seconds")
        if not is_taken_back(text):
            self.refuse(
                "it ends a transaction, changes the database itself, or executes SQL of its own "
                "that is not a single SELECT, INSERT, UPDATE or DELETE"
            )
        if alias in self.not_begun and verb != "SELECT":
            self.refuse(f"it writes to {alias}, which could not be prepared")
        answer = execute(sql, params, many, context)
        tables = [self._tables[name] for name in map(unquoted, names) if name in self._tables]
        if verb in WRITING_VERBS and tables:
            self.written.add((alias, tables[0]))
        return answer


#: The dry run that the current code is part of. Threads of others have none.
current: ContextVar[DryRun | None] = ContextVar("mcp_django_dry_run", default=None)


@contextmanager
def watching(run: DryRun) -> Iterator[None]:
    """Have a dry run see the SQL of its own code until the block ends."""

    def check_thread(sender: Any, **kwargs: Any) -> None:
        if current.get() is run:
            run.check_thread()

    with ExitStack() as stack:
        for signal in (signals.pre_save, signals.pre_delete, signals.m2m_changed):
            signal.connect(check_thread, weak=False)
            stack.callback(signal.disconnect, check_thread)
        for alias in connections:
            stack.enter_context(connections[alias].execute_wrapper(run.execute))
        yield


#: What Django says of a transaction that begins or ends inside of another.
OWN_TRANSACTION = ("durable atomic block cannot be nested", "forbidden when an 'atomic' block")
#: A savepoint that is there for as long as the transaction is that the dry run began.
MARK = "mcp_django_dry_run"
NO_DATABASE = "django.db.backends.dummy"
NO_TRANSACTIONS = "Nothing can be tried: the database of this site has no transactions."
NOT_TAKEN_BACK = (
    "This could not be taken back: it ended a transaction by itself, past Django. What it did "
    "until then is done. Look at the records before you do anything else."
)


@contextmanager
def dry_run() -> Iterator[None]:
    """Do everything in the block, and roll it back on every database.

    Raises ToolError where something cannot be taken back, before it is done. What the block
    itself raises passes through.
    """
    if current.get() is not None:
        raise RuntimeError("There is a dry run inside of a dry run.")
    run = DryRun()
    install()
    with Transactions(run) as transactions:
        token = current.set(run)
        try:
            with watching(run):
                with refused(run):
                    yield
                if run.refusal is None:
                    transactions.check()
        finally:
            current.reset(token)
    if run.refusal is not None:
        raise run.refusal


@contextmanager
def refused(run: DryRun) -> Iterator[None]:
    """Say of code with transactions of its own that it cannot be tried."""
    try:
        yield
    except Exception as error:
        if run.refusal is not None and error is not run.refusal:
            raise run.refusal from error
        if any(text in str(error) for text in OWN_TRANSACTION):
            run.refuse("it manages its own transaction")
        raise


class Transactions:
    """One transaction on every database, rolled back in the end whatever happens."""

    def __init__(self, run: DryRun) -> None:
        self.run = run
        self._blocks = ExitStack()
        self._begun: list[str] = []
        self._places: set[Any] = set()

    def __enter__(self) -> Transactions:
        with ExitStack() as blocks:
            for alias in connections:
                connection = connections[alias]
                if connection.settings_dict["ENGINE"] == NO_DATABASE:
                    continue
                if self._begin(blocks, alias):
                    self._begun.append(alias)
                else:
                    self.run.not_begun.add(alias)
            self._blocks = blocks.pop_all()
        return self

    def _begin(self, blocks: ExitStack, alias: str) -> bool:
        """Begin one if that is possible. A database that is down must not stop the others, and
        two aliases of one SQLite file would wait for each other forever.
        """
        connection = connections[alias]
        place = (connection.vendor, connection.settings_dict["NAME"])
        if connection.vendor == "sqlite" and place in self._places:
            return False
        self._places.add(place)
        try:
            with ExitStack() as block:
                block.enter_context(transaction.atomic(using=alias))
                execute(alias, f"SAVEPOINT {MARK}")
                blocks.enter_context(block.pop_all())
        except Error:
            return False
        # MySQL with tables of MyISAM. Other databases would make a table to find out.
        if connection.vendor == "mysql" and not connection.features.supports_transactions:
            raise ToolError(NO_TRANSACTIONS)
        return True

    def __exit__(self, *error: Any) -> None:
        lost = [alias for alias in self._begun if not self._take_back(alias)]
        self._blocks.close()
        if lost:
            raise ToolError(NOT_TAKEN_BACK) from error[1]

    def _take_back(self, alias: str) -> bool:
        """Whether the transaction that was begun was still there to be rolled back."""
        connection = connections[alias]
        if connection.closed_in_transaction:  # which rolls back, too
            return True
        try:
            transaction.set_rollback(False, using=alias)
            execute(alias, f"ROLLBACK TO SAVEPOINT {MARK}")
        except Error:
            return False
        finally:
            transaction.set_rollback(True, using=alias)
        return True

    def check(self) -> None:
        """Check the constraints that are checked only at a commit. Raises ToolError."""
        for alias in self._begun:
            connection: Any = connections[alias]
            tables = sorted({table for using, table in self.run.written if using == alias})
            if tables and connection.features.can_defer_constraint_checks:
                try:
                    connection.check_constraints(table_names=tables)
                except IntegrityError:
                    raise ToolError(
                        "This cannot be done: records would be left that refer to others that "
                        "are not there. Nothing was changed."
                    ) from None


def execute(alias: str, sql: str) -> None:
    with connections[alias].cursor() as cursor:
        cursor.execute(sql)


# Statements of SQL, by the words that they begin with.
#
# This is a guard against accidents, not against somebody who writes SQL to circumvent it. Other
# SQL may be harmless as well, but only the database could tell, so it is refused.

WRITING_VERBS = frozenset({"INSERT", "UPDATE", "DELETE"})
#: Beginnings of what a transaction takes back on every database.
ALLOWED = WRITING_VERBS | {"SELECT", "WITH", "EXPLAIN", "SAVEPOINT", "RELEASE", "SET", "PRAGMA"}
#: In what begins with SET: it commits, or outlives the transaction.
SETS_FOR_GOOD = ("AUTOCOMMIT", "GLOBAL", "PERSIST")


def as_text(sql: Any) -> str:
    if hasattr(sql, "as_string"):  # psycopg's own way to write SQL
        sql = sql.as_string(None)
    return sql.decode() if isinstance(sql, bytes) else str(sql)


def first_words(text: str) -> list[str]:
    """The verb in capitals, and four words, among which Django's compilers write the table."""
    verb, *others = text.lstrip("( \t\r\n").split(None, 5)[:5] or [""]
    return [verb.upper(), *others]


def unquoted(name: str) -> str:
    return name.strip('"`')


def is_taken_back(text: str) -> bool:
    """Whether it is one statement that a transaction takes back when it is rolled back."""
    verb, *others = first_words(text)
    if ";" in text.rstrip("; \t\r\n"):
        return False
    if verb == "SET":
        return not any(name in text.upper() for name in SETS_FOR_GOOD)
    return verb in ALLOWED or (verb == "ROLLBACK" and others[:1] == ["TO"])


# Mail that is not sent and files that are not stored, as long as there is a dry run.
#
# Three methods of Django, through which nearly all mail and all files of records pass, ask whether
# the code that calls them is part of a dry run. What goes past them is not held back, and the
# answer of a dry run says so.


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
        run = current.get()
        if run is None:
            return own(self, *args, **kwargs)
        return hold(run, partial(own, self), self, *args, **kwargs)

    setattr(owner, name, method)


# In place of the methods: the dry run, the method itself, and what the method is called with.


def hold_mail(run: DryRun, own: Any, message: EmailMessage, *args: Any, **kwargs: Any) -> int:
    return 1 if message.recipients() else 0


def hold_save(
    run: DryRun,
    own: Any,
    file: Any,
    name: str,
    content: Any,
    save: bool = True,  # noqa: FBT001, FBT002  as Django has it
) -> None:
    longest = file.field.max_length
    name = file.field.generate_filename(file.instance, name)
    name = file.storage.get_available_name(name, max_length=longest)
    file.storage = run.storage
    file.name = run.storage.save(name, content, max_length=longest)
    file.file, file._committed = None, True
    # Not its name: the instance would make another object of that, which asks the real storage.
    setattr(file.instance, file.field.attname, file)
    run.bytes += file.size
    if run.bytes > MOST_BYTES:
        run.refuse("it stores files that are too large to be held back")
    if save:
        file.instance.save()


def hold_delete(run: DryRun, own: Any, file: Any, *args: Any, **kwargs: Any) -> None:
    file.storage = run.storage
    own(*args, **kwargs)
