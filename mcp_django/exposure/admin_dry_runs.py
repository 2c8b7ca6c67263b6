"""Doing something to see what it would change, and taking all of it back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from django.db import Error, IntegrityError, connections, transaction
from django.db.models import Model

from mcp_django.exceptions import ToolError
from mcp_django.exposure.dry_run_changes import recorded
from mcp_django.exposure.dry_run_differences import Difference
from mcp_django.exposure.dry_run_state import DryRun, current
from mcp_django.exposure.dry_run_statements import Statements
from mcp_django.exposure.held_back import install
from mcp_django.exposure.permissions import Rights

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
def dry_run(
    rights: Rights, *, watch: Iterable[tuple[type[Model], Any]] = ()
) -> Iterator[Difference]:
    """Everything in the block is done and taken back, on every database.

    Yields the Difference, complete once the block has ended. `watch` are records, by model and
    primary key, that are compared also where no signal tells of a change: those that an action
    is given.

    Raises ToolError where something cannot be taken back, before it is done. What the block
    itself raises passes through.
    """
    if current.get() is not None:
        raise RuntimeError("There is a dry run inside of a dry run.")
    run = DryRun()
    statements = Statements(run)
    install()
    with Transactions(statements) as transactions:
        token = current.set(run)
        try:
            with ExitStack() as watching:
                changes = watching.enter_context(recorded(run))
                for alias in connections:
                    connection = connections[alias]
                    watching.enter_context(connection.execute_wrapper(statements.watch))
                difference = Difference(rights, run, changes, statements, watch)
                with refused(run):
                    yield difference
                if run.refusal is None:
                    difference.after_commit = transactions.hooks()
                    transactions.check()
                    difference.read_after()
        finally:
            current.reset(token)
    if run.refusal is not None:
        raise run.refusal
    difference.read_before()


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
    """One on every database, rolled back in the end whatever happens."""

    def __init__(self, statements: Statements) -> None:
        self.statements = statements
        self._blocks = ExitStack()
        #: By alias: the functions that waited for a commit before.
        self._hooks: dict[str, int] = {}
        self._places: set[Any] = set()

    def __enter__(self) -> Transactions:
        with ExitStack() as blocks:
            for alias in connections:
                connection = connections[alias]
                if connection.settings_dict["ENGINE"] == NO_DATABASE:
                    continue
                if not self._begin(blocks, alias):
                    self.statements.not_begun.add(alias)
                    continue
                self._hooks[alias] = len(connection.run_on_commit)
            self._blocks = blocks.pop_all()
        return self

    def _begin(self, blocks: ExitStack, alias: str) -> bool:
        """Whether there is a transaction now. Nothing else may be lost by a database that is
        down, and one alias would wait for another of the same file of SQLite for ever."""
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
        lost = [alias for alias in self._hooks if not self._take_back(alias)]
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

    def hooks(self) -> int:
        """How many functions of the site wait for the commit that does not come."""
        return sum(
            not is_ours(function)
            for alias, before in self._hooks.items()
            for _, function, *_ in connections[alias].run_on_commit[before:]
        )

    def check(self) -> None:
        """Ask for constraints that are looked at in the end only. Raises ToolError."""
        for alias in self._hooks:
            connection: Any = connections[alias]
            tables = self.statements.tables(alias)
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


def is_ours(function: Any) -> bool:
    """Not of the site. Ours announce changes, also of models that the caller may not see."""
    package = getattr(function, "__module__", "").partition(".")[0]
    return package == __name__.partition(".")[0]
