"""What one dry run sees and holds back, and how other code asks whether it is part of one."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cache, partial, wraps
from typing import Any, NoReturn

from django.apps import apps
from django.core.files.storage import InMemoryStorage
from django.core.mail import EmailMessage
from django.db import connections
from django.db.models import Model, signals
from django.db.models.fields.files import FieldFile

from mcp_django.exceptions import ToolError

#: Seconds. Whatever it has written stays locked for all others until it ends.
LONGEST = 10.0
#: Records that one dry run remembers.
MOST = 1_000
#: Bytes of files that are held in memory.
MOST_BYTES = 32 * 2**20


class CannotBeTried(ToolError):
    """It would do something that cannot be rolled back."""


class DryRun:
    """Collects what one dry run does, from the signals of models and from SQL, and what is held
    back. A refusal is kept as well, since code of the site may swallow the exception.
    """

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.ends = time.monotonic() + LONGEST
        self.refusal: CannotBeTried | None = None
        #: What files would hold.
        self.storage = InMemoryStorage()
        self.bytes = 0
        #: Model, database and primary key of records, in the order in which they were touched
        #: first.
        self.touched: dict[tuple[type[Model], str, Any], None] = {}
        #: By model, primary key and name of the relation: the other model, and the keys that were
        #: added and removed in the end.
        self.relations: dict[
            tuple[type[Model], Any, str], tuple[type[Model], set[Any], set[Any]]
        ] = {}
        #: Rows by alias, verb and table: those that signals told of, and those that SQL wrote.
        #: Never with which values.
        self.told: Counter[tuple[str, str, str]] = Counter()
        self.written: Counter[tuple[str, str, str]] = Counter()
        #: False if more was touched, or SQL may have written to a table that it does not begin
        #: with.
        self.is_complete = True
        #: Databases without a transaction of the dry run. They can be read.
        self.not_begun: set[str] = set()
        models = apps.get_models(include_auto_created=True)
        self._tables = {unquoted(one._meta.db_table): one._meta.db_table for one in models}

    def refuse(self, reason: str) -> NoReturn:
        self.refusal = CannotBeTried(f"This cannot be tried: {reason}. Nothing was changed.")
        raise self.refusal

    # Receivers of signals

    def check_thread(self, sender: Any, **kwargs: Any) -> None:
        """Another thread has another connection, whose changes nobody takes back."""
        if threading.get_ident() != self.thread:
            self.refuse("it writes to the database from another thread")

    def saved(self, sender: Any, instance: Any, created: bool, using: str, **kwargs: Any) -> None:  # noqa: FBT001
        self._touch(sender, using, instance.pk)
        # The table of a model and those that it inherits from.
        concrete: Any = sender._meta.concrete_model
        for model in (concrete, *concrete._meta.all_parents):
            self.told[using, "INSERT" if created else "UPDATE", model._meta.db_table] += 1

    def deleted(self, sender: Any, instance: Any, using: str, **kwargs: Any) -> None:
        self._touch(sender, using, instance.pk)
        self.told[using, "DELETE", sender._meta.db_table] += 1

    def related(self, sender: Any, instance: Any, action: str, using: str, **kwargs: Any) -> None:
        self.check_thread(sender)
        if action not in ("pre_clear", "pre_remove", "post_add"):
            return
        try:
            field = relation_of(type(instance), sender, is_reverse=kwargs["reverse"])
            is_added = action == "post_add"
            pks = kwargs["pk_set"] if is_added else keys_in_relation(field, instance, using)
            if action == "pre_remove":  # it names those too that are not there
                pks = pks & kwargs["pk_set"]
        except Exception:
            # Relations that are not Django's send this signal, too.
            self.is_complete = False
            return
        key = (type(instance), instance.pk, field.name)
        _, added, removed = self.relations.setdefault(key, (kwargs["model"], set(), set()))
        now, before = (added, removed) if is_added else (removed, added)
        now |= pks - before
        before -= pks
        self.told[using, "INSERT" if is_added else "DELETE", sender._meta.db_table] += len(pks)

    def _touch(self, model: type[Model], using: str, pk: Any) -> None:
        if len(self.touched) < MOST:
            self.touched[model, using, pk] = None
        else:
            self.is_complete = False

    def execute(self, execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001
        """A wrapper as `connection.execute_wrapper` takes it. Sees every statement, stops some,
        and counts the rows that others write.
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
            rows = getattr(context["cursor"], "rowcount", 0)
            # Before the rows of RETURNING are fetched, SQLite does not know how many.
            rows = max(rows, 1 if verb == "INSERT" else 0)
            self.written[alias, verb, tables[0]] += rows
        elif verb in WRITING_VERBS or (
            verb == "WITH" and any(one in text.upper() for one in WRITING_VERBS)
        ):
            self.is_complete = False
        return answer


#: The dry run that the current code is part of. Threads of others have none.
current: ContextVar[DryRun | None] = ContextVar("mcp_django_dry_run", default=None)


def relation_of(model: type[Model], through: Any, *, is_reverse: bool) -> Any:
    """The many-to-many relation of a model that keeps its pairs in `through`."""
    fields: Any = model._meta.get_fields(include_hidden=True)
    return next(
        field
        for field in fields
        if field.many_to_many
        and field.auto_created == is_reverse
        and (field if is_reverse else field.remote_field).through is through
    )


def keys_in_relation(field: Any, instance: Any, using: str) -> set[Any]:
    """The keys of all that are related now, whoever may see them."""
    forward = field.remote_field if field.auto_created else field
    ours, theirs = forward.m2m_field_name(), forward.m2m_reverse_field_name()
    if field.auto_created:
        ours, theirs = theirs, ours
    through = forward.remote_field.through._base_manager.using(using)
    return set(through.filter(**{ours: instance}).values_list(f"{theirs}__pk", flat=True))


@contextmanager
def watching(run: DryRun) -> Iterator[None]:
    """Have a dry run see the changes and the SQL of its own code until the block ends."""
    receivers = (
        (signals.pre_save, run.check_thread),
        (signals.post_save, run.saved),
        # Whoever listens to it makes Django delete rows one by one, and tell of each.
        (signals.pre_delete, run.check_thread),
        (signals.post_delete, run.deleted),
        (signals.m2m_changed, run.related),
    )

    def only_here(receive: Callable[..., None]) -> Callable[..., None]:
        def receiver(**kwargs: Any) -> None:
            if current.get() is run:
                receive(**kwargs)

        return receiver

    with ExitStack() as stack:
        for signal, receive in receivers:
            receiver = only_here(receive)
            signal.connect(receiver, weak=False)
            stack.callback(signal.disconnect, receiver)
        for alias in connections:
            stack.enter_context(connections[alias].execute_wrapper(run.execute))
        yield


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
