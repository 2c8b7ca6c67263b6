"""What a dry run would change, as far as its caller may know.

Nothing is taken from the objects of the site: each record that was touched is read as the caller
would read it, once before anything is taken back and once after. So no column, no row and no
model can be in the answer that is not in the answers of other tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from django.apps import apps
from django.db import router
from django.db.models import Model, QuerySet

from mcp_django.exceptions import ToolError
from mcp_django.exposure.dry_run_changes import Changes
from mcp_django.exposure.dry_run_state import DryRun
from mcp_django.exposure.dry_run_statements import Statements
from mcp_django.exposure.find import get_record
from mcp_django.exposure.guard import FILTER
from mcp_django.exposure.labels import shows_records, visible_labels
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.reach import reach_of

#: Records that are compared.
MOST_COMPARED = 50
OPERATIONS = {"INSERT": "created", "UPDATE": "changed", "DELETE": "deleted"}
NOT_HELD_BACK = (
    "jobs that were queued at once, and threads that were started",
    "caches, and Django sessions outside of the database",
    "requests to other systems, and mail and files past the backends and storages of Django",
    "numbers of sequences: a new record will have another key than the one shown here",
)

Record = dict[str, Any]


class Difference:
    """Filled when the dry run ends."""

    def __init__(
        self,
        rights: Rights,
        run: DryRun,
        changes: Changes,
        statements: Statements,
        watch: Iterable[tuple[type[Model], Any]],
    ) -> None:
        self.rights = WritersRights(rights)
        self.run = run
        self.changes = changes
        self.statements = statements
        self.watched = list(watch)
        #: Functions that waited for the commit.
        self.after_commit = 0
        #: Whether all that was touched was compared.
        self.is_complete = True
        self._keys: list[tuple[type[Model], Any]] = []
        self._after: list[Record | None] = []
        self._before: list[Record | None] = []
        self._labels: dict[type[Model], dict[Any, str]] = {}

    def read_after(self) -> None:
        """To be called while everything is still done."""
        touched = ((model, pk) for model, _, pk in self.changes.touched)
        keys = ((self._exposed(model), pk) for model, pk in (*self.watched, *touched))
        shown = [key for key in dict.fromkeys(keys) if shows_records(self.rights, key[0])]
        self._keys = shown[:MOST_COMPARED]
        self.is_complete = self.changes.is_complete and len(shown) <= MOST_COMPARED
        self._after = [record_of(self.rights, *key) for key in self._keys]
        self._read_labels()

    def _exposed(self, model: type[Model]) -> type[Model]:
        """The model itself, or what it is a proxy of."""
        concrete: Any = model._meta.concrete_model
        return model if model in self.rights.exposed.exposures else concrete

    def read_before(self) -> None:
        """To be called when all is as it was."""
        self._before = [record_of(self.rights, *key) for key in self._keys]
        self._read_labels()

    def _read_labels(self) -> None:
        for model, added, removed in self.changes.relations.values():
            labels = self._labels.setdefault(model, {})
            labels |= visible_labels(self.rights, model, added | removed)

    def as_json(self) -> dict[str, Any]:
        """The whole of it, without what this caller may not see: not even how much that is."""
        found: dict[str, Any] = {"created": [], "changed": [], "deleted": []}
        for (model, pk), before, after in zip(self._keys, self._before, self._after, strict=True):
            label = model._meta.label_lower
            if before is None and after is not None:
                found["created"].append({"model": label, "record": after})
            elif after is None and before is not None:
                found["deleted"].append({"model": label, "pk": as_key(pk), "record": before})
            elif before is not None and after is not None and before != after:
                fields = changed_fields(before, after)
                found["changed"].append({"model": label, "pk": as_key(pk), "fields": fields})
        return {
            **found,
            "relations": list(self._relations()),
            "in_bulk": self._in_bulk(),
            "is_complete": self.is_complete,
            "held_back": {
                "mails": len(self.run.mails),
                "files": len(self.run.files),
                "functions_after_commit": self.after_commit,
            },
            "not_held_back": list(NOT_HELD_BACK),
        }

    def _relations(self) -> Iterable[Record]:
        known = {
            key
            for key, before, after in zip(self._keys, self._before, self._after, strict=True)
            if before is not None or after is not None
        }
        for (touched, pk, name), (other, added, removed) in self.changes.relations.items():
            model = self._exposed(touched)
            if not self._shows_relation(model, name):
                continue
            if (model, pk) not in known and record_of(self.rights, model, pk) is None:
                continue
            labels = self._labels[other]
            shown = {
                what: [
                    {"pk": as_key(one), "label": text}
                    for one, text in labels.items()
                    if one in keys
                ]
                for what, keys in (("added", added), ("removed", removed))
            }
            if any(shown.values()):
                label = model._meta.label_lower
                yield {"model": label, "pk": as_key(pk), "field": name, **shown}

    def _shows_relation(self, model: type[Model], name: str) -> bool:
        if not shows_records(self.rights, model):
            return False
        reach = reach_of(self.rights, self.rights.exposed.exposures[model])
        return name in reach.tables[FILTER]

    def _in_bulk(self) -> list[Record]:
        """What was written without a signal for each record, so that records cannot be told."""
        models = {one._meta.db_table: one for one in apps.get_models()}
        found = []
        for (alias, verb, table), rows in self.statements.written.items():
            model = models.get(table)
            if rows <= self.changes.told[alias, verb, table] or model is None:
                continue
            if shows_records(self.rights, model):
                found.append({"model": model._meta.label_lower, "operation": OPERATIONS[verb]})
        return found


class WritersRights(Rights):
    """The same rights, with rows read where they are written: a replica knows of nothing yet."""

    def __init__(self, rights: Rights) -> None:
        super().__init__(rights.request, rights.principal, registry=rights.registry)

    def rows(self, model: type[Model]) -> QuerySet[Any]:
        return super().rows(model).using(router.db_for_write(model))


def record_of(rights: Rights, model: type[Model], pk: Any) -> Record | None:
    """A record as get_record shows it to this caller, or None where it does not."""
    try:
        found = get_record(rights, rights.exposed.exposures[model], as_key(pk))
    except ToolError:
        return None
    record: Record = msgspec.json.decode(found)
    return record


def as_key(pk: Any) -> Any:
    if isinstance(pk, tuple):
        return [as_key(part) for part in pk]
    return pk if isinstance(pk, int) else str(pk)


def changed_fields(before: Record, after: Record) -> Mapping[str, Any]:
    """By name, each with its value before and after."""
    return {
        name: {"before": before.get(name), "after": after.get(name)}
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    }
