"""Which records a dry run touches, as the signals of models tell it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from django.db.models import Model, signals

from mcp_django.exposure.dry_run_state import DryRun, current

#: Model, database and primary key.
Key: TypeAlias = tuple[type[Model], str, Any]
#: Model, primary key and name of the relation.
Relation: TypeAlias = tuple[type[Model], Any, str]

#: Records that one dry run remembers.
MOST = 1_000


class Changes:
    def __init__(self, run: DryRun) -> None:
        self.run = run
        #: In the order in which they were touched first.
        self.touched: dict[Key, None] = {}
        self.is_complete = True
        #: Rows that signals have told of, by alias, verb and table.
        self.told: Counter[tuple[str, str, str]] = Counter()
        #: The other model, and keys that were added and removed in the end.
        self.relations: dict[Relation, tuple[type[Model], set[Any], set[Any]]] = {}

    def touch(self, model: type[Model], using: str, pk: Any) -> None:
        if len(self.touched) < MOST:
            self.touched[model, using, pk] = None
        else:
            self.is_complete = False

    # Receivers of signals

    def before(self, sender: Any, **kwargs: Any) -> None:
        self.run.check_thread()

    def saved(self, sender: Any, instance: Any, created: bool, using: str, **kwargs: Any) -> None:  # noqa: FBT001
        self.touch(sender, using, instance.pk)
        for table in tables_of(sender):
            self.told[using, "INSERT" if created else "UPDATE", table] += 1

    def deleted(self, sender: Any, instance: Any, using: str, **kwargs: Any) -> None:
        self.touch(sender, using, instance.pk)
        self.told[using, "DELETE", sender._meta.db_table] += 1

    def related(self, sender: Any, instance: Any, action: str, using: str, **kwargs: Any) -> None:
        self.run.check_thread()
        if action not in ("pre_clear", "pre_remove", "post_add"):
            return
        try:
            field = relation_of(type(instance), sender, is_reverse=kwargs["reverse"])
            is_added = action == "post_add"
            pks = kwargs["pk_set"] if is_added else related_keys(field, instance, using)
            if action == "pre_remove":  # it names those too that are not there
                pks = pks & kwargs["pk_set"]
        except Exception:
            # Relations that are none of Django's send this signal, too.
            self.is_complete = False
            return
        key = (type(instance), instance.pk, field.name)
        _, added, removed = self.relations.setdefault(key, (kwargs["model"], set(), set()))
        now, before = (added, removed) if is_added else (removed, added)
        now |= pks - before
        before -= pks
        verb = "INSERT" if is_added else "DELETE"
        self.told[using, verb, sender._meta.db_table] += len(pks)


def tables_of(model: type[Model]) -> list[str]:
    """The table of a model and those that it inherits from."""
    concrete: Any = model._meta.concrete_model
    return [one._meta.db_table for one in (concrete, *concrete._meta.all_parents)]


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


def related_keys(field: Any, instance: Any, using: str) -> set[Any]:
    """The keys of all that are related now, whoever may see them."""
    forward = field.remote_field if field.auto_created else field
    ours, theirs = forward.m2m_field_name(), forward.m2m_reverse_field_name()
    if field.auto_created:
        ours, theirs = theirs, ours
    through = forward.remote_field.through._base_manager.using(using)
    return set(through.filter(**{ours: instance}).values_list(f"{theirs}__pk", flat=True))


@contextmanager
def recorded(run: DryRun) -> Iterator[Changes]:
    """The changes that are made until the block ends, by this dry run and by nobody else."""
    changes = Changes(run)
    receivers = (
        (signals.pre_save, changes.before),
        (signals.post_save, changes.saved),
        # Whoever listens to it makes Django delete rows one by one, and tell of each.
        (signals.pre_delete, changes.before),
        (signals.post_delete, changes.deleted),
        (signals.m2m_changed, changes.related),
    )

    def only_here(receive: Callable[..., None]) -> Callable[..., None]:
        def receiver(**kwargs: Any) -> None:
            if current.get() is run:
                receive(**kwargs)

        return receiver

    connected = [(signal, only_here(receive)) for signal, receive in receivers]
    for signal, receiver in connected:
        signal.connect(receiver, weak=False)
    try:
        yield changes
    finally:
        for signal, receiver in connected:
            signal.disconnect(receiver)
