"""Dry runs: something is done to see what it would change, and all of it is rolled back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec
from django.apps import apps
from django.db import Error, IntegrityError, connections, router, transaction
from django.db.models import Model, QuerySet

from mcp_django.exceptions import ToolError
from mcp_django.exposure.admin_bridge.dry_run_watch import DryRun, current, install, watching
from mcp_django.exposure.paths import FILTER, spell_key, stored_key
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import allowed_paths
from mcp_django.exposure.query.find import get_record
from mcp_django.exposure.query.related import fenced_labels_of, shows_records, visible_keys
from mcp_django.exposure.query.serializers import exact_integer

# What a dry run would change, as far as its caller may know.
#
# Nothing is taken from the objects of the site: each record that was touched is read as the
# caller would read it, once before anything is taken back and once after. So no column, no row
# and no model can be in the answer that is not in the answers of other tools.

#: Records that are compared.
MOST_COMPARED = 50
OPERATIONS = {"INSERT": "created", "UPDATE": "changed", "DELETE": "deleted"}

Record = dict[str, Any]


class Difference:
    """What a dry run would change. Complete when the dry run has ended."""

    def __init__(self, rights: Rights, run: DryRun) -> None:
        self.rights = WritersRights(rights)
        self.run = run
        #: Whether all that was touched was compared.
        self.is_complete = True
        self._keys: list[tuple[type[Model], Any]] = []
        self._visible_after: set[tuple[type[Model], Any]] = set()
        self._after: dict[tuple[type[Model], Any], Record | None] = {}
        self._before: dict[tuple[type[Model], Any], Record | None] = {}
        self._labels: dict[type[Model], dict[Any, str]] = {}

    def read_after(self) -> None:
        """Read the records that were touched, before the changes are rolled back."""
        keys = ((self._exposed(model), pk) for model, _, pk in self.run.touched)
        self._keys = [key for key in dict.fromkeys(keys) if shows_records(self.rights, key[0])]
        visible = self._visible()
        # Those that are compared in the end are among these, or cannot be seen now.
        self._after = {key: record_of(self.rights, *key) for key in visible[:MOST_COMPARED]}
        self._visible_after = set(visible)
        self._read_labels()

    def _visible(self) -> list[tuple[type[Model], Any]]:
        """Those of the records that this caller can see now."""
        by_model: dict[type[Model], list[Any]] = {}
        for model, pk in self._keys:
            by_model.setdefault(model, []).append(pk)
        seen: set[tuple[type[Model], Any]] = set()
        for model, pks in by_model.items():
            keys = {pk: stored_key(model, pk if isinstance(pk, tuple) else (pk,)) for pk in pks}
            exposure, using = self.rights.exposed.exposures[model], router.db_for_write(model)
            visible = visible_keys(self.rights, exposure, keys.values(), using=using)
            seen |= {(model, pk) for pk, key in keys.items() if spell_key(key) in visible}
        return [key for key in self._keys if key in seen]

    def _exposed(self, model: type[Model]) -> type[Model]:
        """The model itself, or what it is a proxy of."""
        concrete: Any = model._meta.concrete_model
        return model if model in self.rights.exposed.exposures else concrete

    def read_before(self) -> None:
        """Read them again, after the changes were rolled back."""
        seen = self._visible_after.union(self._visible())
        visible = [key for key in self._keys if key in seen]
        self.is_complete = self.run.is_complete and len(visible) <= MOST_COMPARED
        self._keys = visible[:MOST_COMPARED]
        self._before = {key: record_of(self.rights, *key) for key in self._keys}
        self._read_labels()

    def _read_labels(self) -> None:
        for model, added, removed in self.run.relations.values():
            labels = self._labels.setdefault(model, {})
            labels |= fenced_labels_of(self.rights, model, added | removed)

    def as_json(self) -> dict[str, Any]:
        """All of it, without what this caller may not see, and without how much that is."""
        found: dict[str, Any] = {"created": [], "changed": [], "deleted": []}
        for key in self._keys:
            (model, pk), before, after = key, self._before[key], self._after.get(key)
            label = model._meta.label_lower
            if before is None and after is not None:
                found["created"].append({"model": label, "record": after})
            elif after is None and before is not None:
                found["deleted"].append({"model": label, "pk": key_as_json(pk), "record": before})
            elif before is not None and after is not None and before != after:
                fields = {
                    name: {"before": before.get(name), "after": after.get(name)}
                    for name in {**before, **after}
                    if before.get(name) != after.get(name)
                }
                found["changed"].append({"model": label, "pk": key_as_json(pk), "fields": fields})
        return {
            **found,
            "relations": list(self._relations()),
            "in_bulk": self._in_bulk(),
            "is_complete": self.is_complete,
        }

    def _relations(self) -> Iterable[Record]:
        known = {
            key
            for key in self._keys
            if self._before[key] is not None or self._after.get(key) is not None
        }
        for (touched, pk, name), (other, added, removed) in self.run.relations.items():
            model = self._exposed(touched)
            if not names_relation(self.rights, model, name):
                continue
            if (model, pk) not in known and record_of(self.rights, model, pk) is None:
                continue
            labels = self._labels[other]
            shown = {
                what: [
                    {"pk": key_as_json(one), "label": text}
                    for one, text in labels.items()
                    if one in keys
                ]
                for what, keys in (("added", added), ("removed", removed))
            }
            if any(shown.values()):
                label = model._meta.label_lower
                yield {"model": label, "pk": key_as_json(pk), "field": name, **shown}

    def _in_bulk(self) -> list[Record]:
        """What was written without a signal for each record, so that the records are unknown."""
        models = {one._meta.db_table: one for one in apps.get_models()}
        found = []
        for (alias, verb, table), rows in self.run.written.items():
            model = models.get(table)
            if rows <= self.run.told[alias, verb, table] or model is None:
                continue
            if shows_records(self.rights, model):
                found.append({"model": model._meta.label_lower, "operation": OPERATIONS[verb]})
        return found


class WritersRights(Rights):
    """The same rights, with rows read where they are written: a replica knows of nothing yet."""

    def __init__(self, rights: Rights) -> None:
        super().__init__(rights.request, rights.principal, registry=rights.registry)
        self.mark = rights.mark

    def rows(self, model: type[Model]) -> QuerySet[Any]:
        return super().rows(model).using(router.db_for_write(model))


def names_relation(rights: Rights, model: type[Model], name: str) -> bool:
    if not shows_records(rights, model):
        return False
    access = allowed_paths(rights, rights.exposed.exposures[model])
    return name in access.tables[FILTER]


def shows_relation(rights: Rights, field: Any) -> bool:
    """Whether a Difference can show which records a relation gains and loses."""
    is_named = names_relation(rights, field.model, field.name)
    return is_named and shows_records(rights, field.related_model)


def record_of(
    rights: Rights, model: type[Model], pk: Any, *, using: str | None = None
) -> Record | None:
    """A record as get_record shows it to this caller. None: it does not, since the caller may not
    see the record, or since it is too long for an answer.
    """
    try:
        found = get_record(rights, rights.exposed.exposures[model], key_as_json(pk), using=using)
    except ToolError:
        return None
    record: Record = msgspec.json.decode(found)
    return record


def key_as_json(pk: Any) -> Any:
    """None: the site has removed the record at once."""
    if isinstance(pk, tuple):
        return [key_as_json(part) for part in pk]
    if isinstance(pk, int):
        return exact_integer(pk)
    return None if pk is None else str(pk)


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
def dry_run(rights: Rights) -> Iterator[Difference]:
    """Do everything in the block, and roll it back on every database.

    Yields the Difference, complete once the block has ended.

    Raises ToolError where something cannot be taken back, before it is done. What the block
    itself raises passes through.
    """
    if current.get() is not None:
        raise RuntimeError("There is a dry run inside of a dry run.")
    run = DryRun()
    install()
    difference = Difference(rights, run)
    with Transactions(run) as transactions:
        token = current.set(run)
        try:
            with watching(run):
                with refused(run):
                    yield difference
                if run.refusal is None:
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
            tables = sorted({table for using, _, table in self.run.written if using == alias})
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
