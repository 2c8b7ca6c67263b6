"""What a write changed: each field before and after, as far as the caller reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec
from django.db.models import ManyToManyField, Model, Q

from mcp_django.exceptions import ToolError
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import allowed_paths
from mcp_django.exposure.query.find import get_record
from mcp_django.exposure.query.related import fenced_labels_of, shows_records, visible_labels
from mcp_django.exposure.query.serializers import exact_integer
from mcp_django.templating.fences import fenced, inside_fence

#: Characters of a text, before it and after it.
LONGEST_VALUE = 200
#: In place of values that the caller can set and not read.
UNREAD_CHANGE = "Set. You cannot read it."


def shows_relation(rights: Rights, field: Any) -> bool:
    """Return whether the caller may read which records a relation gains and loses."""
    if not (shows_records(rights, field.model) and shows_records(rights, field.related_model)):
        return False
    access = allowed_paths(rights, rights.exposed.exposures[field.model])
    return field.name in access.many


def key_as_json(pk: Any) -> Any:
    """None: the site has removed the record at once."""
    if isinstance(pk, tuple):
        return [key_as_json(part) for part in pk]
    if isinstance(pk, int):
        return exact_integer(pk)
    return None if pk is None else str(pk)


@dataclass(frozen=True, kw_only=True)
class RecordState:
    """One record at one moment. It is empty where the caller does not see the record."""

    #: As get_record shows it to the caller.
    record: Mapping[str, Any] = field(default_factory=dict)
    #: The primary keys of all members, by the name of the relation.
    members: Mapping[str, frozenset[Any]] = field(default_factory=dict)


def relations_of(model: type[Model], names: Iterable[str]) -> list[Any]:
    """The sets of related records among these names. Some packages have relations of their own
    kind, without rows between.
    """
    wanted = set(names)
    fields: Iterable[Any] = model._meta.many_to_many
    return [one for one in fields if one.name in wanted and isinstance(one, ManyToManyField)]


def state_of_record(
    rights: Rights, model: type[Model], pk: Any, *, names: Iterable[str], using: str
) -> RecordState:
    """What the record is now. `names` are those of the fields that a call sends."""
    members = {}
    for relation in relations_of(model, names):
        through: Any = relation.remote_field.through
        rows = through._base_manager.using(using).filter(Q((relation.m2m_field_name(), pk)))
        theirs = rows.values_list(f"{relation.m2m_reverse_field_name()}__pk", flat=True)
        members[relation.name] = frozenset(theirs)
    exposure, encoded = rights.exposed.exposures[model], b"{}"
    # The caller may not see the record.
    with suppress(ToolError):
        encoded = get_record(rights, exposure, key_as_json(pk), using=using, is_answer=False)
    return RecordState(record=msgspec.json.decode(encoded), members=members)


def before_and_after(
    rights: Rights,
    model: type[Model],
    changed: Mapping[str, Mapping[str, int] | None],
    *,
    before: RecordState | None,
    after: RecordState,
) -> dict[str, Any]:
    """Return for each name that changed the two values, the members that a set gained and lost, or
    the numbers of rows, which `changed` has. Without `before` the record is new.
    """
    relations = {one.name: one for one in relations_of(model, after.members)}
    found: dict[str, Any] = {}
    for name in changed:
        if name in relations:
            found[name] = members_moved(rights, relations[name], before, after)
        elif name in after.record and (before is None or name in before.record):
            old = None if before is None else before.record[name]
            pair = (old, after.record[name])
            if before is None or old != after.record[name]:
                found[name] = [brief(value, mark=rights.mark) for value in pair]
        else:
            found[name] = changed[name] or UNREAD_CHANGE
    return found


def members_moved(
    rights: Rights, relation: Any, before: RecordState | None, after: RecordState
) -> dict[str, Any] | str:
    """Return the visible members that a set gained and lost, where the caller sees the set."""
    if not (after.record and shows_relation(rights, relation)):
        return UNREAD_CHANGE
    old = frozenset() if before is None else before.members[relation.name]
    new = after.members[relation.name]
    labels = fenced_labels_of(rights, relation.related_model, old ^ new)
    return {
        what: [
            {"pk": key_as_json(pk), **({"label": label} if label else {})}
            for pk, label in labels.items()
            if pk in keys
        ]
        for what, keys in (("added", new), ("removed", old))
    }


def brief(value: Any, *, mark: str) -> Any:
    """A value of a record: of a long one its beginning. `mark` is that of the fences in it."""
    inner = inside_fence(value, mark) if isinstance(value, str) else None
    if inner is not None:
        return fenced(brief(inner, mark=mark), mark)
    if isinstance(value, (dict, list)):
        text = msgspec.json.encode(value).decode()
        return value if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
    is_long = isinstance(value, str) and len(value) > LONGEST_VALUE
    return f"{value[:LONGEST_VALUE]}…" if is_long else value


def shows_members(rights: Rights, model: type[Model], changed: Mapping[str, Any]) -> bool:
    """Whether the caller sees each member now that the answer of a write names."""
    relations = {one.name: one for one in relations_of(model, changed)}
    for name, moved in changed.items():
        if name not in relations or moved == UNREAD_CHANGE:
            continue
        named = {str(one["pk"]) for members in moved.values() for one in members}
        related = relations[name].related_model
        labels = visible_labels(rights, related, named)
        if not shows_relation(rights, relations[name]) or len(labels) < len(named):
            return False
    return True
