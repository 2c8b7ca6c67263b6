"""What a write changed in a record, and who changed it, when and how: the log of the admin, and
what packages keep besides.

The rule of the log is that of the admin's own history page: whoever may view the record there.
What an entry says of fields and of related records is cut to what this caller reads anyway.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from importlib import import_module
from itertools import zip_longest
from typing import Any

import msgspec
from django.apps import apps
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.admin.options import get_content_type_for_model
from django.contrib.admin.utils import flatten_fieldsets
from django.contrib.auth import get_user_model
from django.db.models import ManyToManyField, Model, Q, QuerySet
from django.forms.models import model_to_dict
from django.utils import translation
from django.utils.text import capfirst, get_text_list

from mcp_django.context import running_call
from mcp_django.exceptions import ToolError
from mcp_django.exposure.admin_bridge.forms import Saved
from mcp_django.exposure.admin_bridge.requests import NOTE, client_name
from mcp_django.exposure.admin_bridge.rights import CHANGE as CHANGES
from mcp_django.exposure.admin_bridge.rights import may, tolerant, viewing_admin
from mcp_django.exposure.limits import limited
from mcp_django.exposure.options import ModelExposure, is_secret
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import allowed_paths
from mcp_django.exposure.query.computed import computed_columns
from mcp_django.exposure.query.find import get_record
from mcp_django.exposure.query.guard import is_plain
from mcp_django.exposure.query.related import (
    fenced_labels_of,
    find_objects,
    shows_records,
    visible_labels,
)
from mcp_django.exposure.query.serializers import as_text, exact_integer, utc
from mcp_django.templating.fences import fenced, fenced_value, inside_fence

# What a write changed: each field before and after, as far as the caller reads it.

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
    key, fields = key_as_json(pk), {field.name for field in model._meta.get_fields()}
    is_computed = not fields.issuperset(names)
    # The caller may not see the record.
    with suppress(ToolError):
        encoded = get_record(rights, exposure, key, using=using, all_computed=is_computed)
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
    names = [*changed, *(() if before is None else moved_by_site(rights, model, before, after))]
    found: dict[str, Any] = {}
    for name in dict.fromkeys(names):
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


def moved_by_site(
    rights: Rights, model: type[Model], before: RecordState, after: RecordState
) -> list[str]:
    """Return what code of the site may have changed along with what was sent: not masked columns,
    and no time that each save sets.
    """
    masks = allowed_paths(rights, rights.exposed.exposures[model]).masks
    silent = {path.text for path in masks}
    silent |= {field.name for field in model._meta.fields if getattr(field, "auto_now", False)}
    old, new = before.record, after.record
    return [name for name in old if old[name] != new.get(name, old[name]) and name not in silent]


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


# Who changed it.

#: The newest entries that are read: those about hidden fields alone are left out.
MOST_READ = 200

LOGGED_ACTIONS = {ADDITION: "added", CHANGE: "changed", DELETION: "deleted"}


@dataclass(frozen=True, kw_only=True)
class HistoryEntry:
    at: datetime
    user: str | None
    action: str
    change: str
    #: The package that kept it. Empty: the log of the admin.
    source: str = ""
    #: The record, where a history is about several.
    pk: Any = None
    #: Values before and after, by the names of fields, where the log has kept them.
    values: Mapping[str, Any] = field(default_factory=dict)
    #: What `undo_change` calls the change. None: the caller cannot undo it.
    undo: int | None = None

    def as_json(self) -> dict[str, Any]:
        found = {
            "at": utc(self.at),
            "user": self.user,
            "action": self.action,
            "change": self.change,
        }
        others = ("pk", "values", "undo", "source")
        return found | {name: value for name in others if (value := getattr(self, name))}


class ReadableNames:
    """The fields of a model that this caller reads, by the words that logs have for them."""

    def __init__(self, rights: Rights, exposure: ModelExposure, labels: Mapping[str, str]) -> None:
        access = allowed_paths(rights, exposure)
        own = {names[0] for names in access.shown if len(names) == 1}
        self.fields = frozenset({*own, *access.many, *computed_columns(rights, exposure)})
        self._by_word: dict[str, set[str]] = defaultdict(set)
        for name, word in labels.items():
            self._by_word[word].add(name)
        # Logs are written without a translation.
        with translation.override(None):
            for field in exposure.model._meta.get_fields():
                word = as_text(getattr(field, "verbose_name", field.name))
                for one in (field.name, word, capfirst(word)):
                    self._by_word[one].add(field.name)

    def shows(self, word: object) -> bool:
        """Whether a word means fields that this caller reads, and no other."""
        names = self._by_word.get(word, set()) if isinstance(word, str) else set()
        return bool(names) and names <= self.fields


@dataclass(eq=False)
class RecordLog:
    """What this caller may read of the log of one record."""

    rights: Rights
    exposure: ModelExposure
    admin: Any
    obj: Model

    @cached_property
    def names(self) -> ReadableNames:
        labels = {}
        with tolerant(f"The form of {self.exposure.label} cannot be made."):
            form = self.admin.get_form(self.rights.request, self.obj)
            with translation.override(None):
                for name, field in form.base_fields.items():
                    labels[name] = as_text(field.label or name)
        return ReadableNames(self.rights, self.exposure, labels)

    @cached_property
    def inlines(self) -> list[type[Model]]:
        return [one.model for one in self.admin.get_inlines(self.rights.request, self.obj)]

    @cached_property
    def shows_page(self) -> bool:
        """Whether this caller reads every field and every row of the page in the admin. Texts that
        the site wrote into the log may speak of any of them.
        """
        asked, is_all = (self.rights.request, self.obj), False
        with tolerant(f"What {self.exposure.label} shows cannot be told."):
            names = {
                *flatten_fieldsets(self.admin.get_fieldsets(*asked)),
                *self.admin.get_readonly_fields(*asked),
            }
            is_all = names <= self.names.fields and all(map(self.shows_rows, self.inlines))
        return is_all

    def shows_rows(self, model: type[Model]) -> bool:
        """Whether this caller reads all rows of a model, so that none is hinted at."""
        return (
            shows_records(self.rights, model)
            and is_plain(self.rights.rows(model).query)
            and not self.rights.checks_rows_one_by_one(model)
        )

    def entry(self, row: LogEntry) -> HistoryEntry | None:
        """Return what this caller may read of a row, or None for one about other things alone."""
        text = self.text_of(row.change_message)
        if text is None:
            return None
        kept = kept_values(row.change_message)
        may_undo = self.undoable(kept) and may(self.rights, self.exposure.model, CHANGES)
        return HistoryEntry(
            at=row.action_time,
            user=self.name_of(row.user),
            action=LOGGED_ACTIONS.get(row.action_flag, "changed"),
            change=text,
            values={
                name: self.brief_values(name, pair)
                for name, pair in kept.items()
                if self.shows_values(name)
            },
            undo=row.pk if may_undo else None,
        )

    @cached_property
    def hidden_people(self) -> frozenset[str]:
        """What the columns of the record hold that code or staff took out of it: one may say who
        wrote it.
        """
        names = {path.split("__")[0] for path in self.exposure.exclude}
        names |= {path[0] for path in self.rights.exposed.withheld.get(self.exposure.model, ())}
        columns = [one for one in self.obj._meta.concrete_fields if one.name in names]
        return frozenset(as_text(getattr(self.obj, one.attname)).casefold() for one in columns)

    def name_of(self, user: Any) -> str | None:
        """Return the username of who did something, unless the record hides it."""
        if user is None:
            return None
        others = (getattr(user, name, str)() for name in ("get_full_name", "get_short_name"))
        names = [user.pk, user.get_username(), getattr(user, "email", ""), *others]
        is_hidden = any(str(name).casefold() in self.hidden_people for name in names if name)
        return None if is_hidden else str(user.get_username())

    def undoable(self, kept: Mapping[str, Any]) -> bool:
        """Return whether this caller reads all of a change: each member that a set gained or lost
        as well.
        """
        members = []
        for relation in relations_of(self.exposure.model, kept):
            before, after = kept[relation.name]
            moved = [key for key in [*before, *after] if (key in before) != (key in after)]
            members.append(self.seen_members(relation, [moved]) == [moved])
        return bool(kept) and all(members) and all(map(self.shows_values, kept))

    def seen_members(self, relation: Any, pair: Sequence[Any]) -> list[Any]:
        keys = {str(key) for members in pair for key in members}
        seen = {str(key) for key in visible_labels(self.rights, relation.related_model, keys)}
        return [[key for key in members if str(key) in seen] for members in pair]

    def shows_values(self, name: str) -> bool:
        masked = self.rights.masks(self.exposure.model)
        return name in self.names.fields and name not in masked

    def brief_values(self, name: str, pair: Sequence[Any]) -> list[Any]:
        """Return two values for an answer. Of sets of records only the members that are seen."""
        model, rights = self.exposure.model, self.rights
        for relation in relations_of(model, [name]):
            pair = self.seen_members(relation, pair)
        mark = rights.mark
        if name in rights.untrusted(model):
            pair = [fenced_value(value, mark) for value in pair]
        return [brief(value, mark=mark) for value in pair]

    def text_of(self, message: str) -> str | None:
        """What this caller may read of a message, or None where it is about other things alone."""
        parts = parts_of_message(message)
        if parts is None:
            return message if self.shows_page else ""
        notes = [capfirst(f"{what['object']}.") for _, what in parts if is_note(what)]
        others = [part for part in parts if not is_note(part[1])]
        texts = [text for verb, what in others if (text := self.text_of_part(verb, what))]
        return " ".join([*texts, *notes]) if texts or not others else None

    def text_of_part(self, verb: str, what: Mapping[str, Any]) -> str:
        name, fields = what.get("name"), what.get("fields")
        if name is not None:
            return self.text_of_related(verb, str(name), what)
        if verb == "changed" and isinstance(fields, list):
            shown = [word for word in fields if self.names.shows(word)]
            return words_of_change(shown) if shown else ""
        return message_of({"added": {}}) if verb == "added" else ""

    def text_of_related(self, verb: str, name: str, what: Mapping[str, Any]) -> str:
        """A row of the form, by the name of its model: its `str()` may tell more than it shows."""
        with translation.override(None):
            models = [one for one in self.inlines if as_text(one._meta.verbose_name) == name]
        if not models or not all(map(self.shows_rows, models)):
            return ""
        if verb != "changed":
            return f"{capfirst(verb)} {name}."
        exposures = self.rights.exposed.exposures
        readable = [ReadableNames(self.rights, exposures[model], {}) for model in models]
        fields = what.get("fields")
        words = fields if isinstance(fields, list) else []
        shown = [word for word in words if all(one.shows(word) for one in readable)]
        return f"Changed {get_text_list(shown, 'and')} of {name}." if shown else ""


def logged_rows(model: type[Model], *, user: str | None = None) -> QuerySet[LogEntry]:
    """Return the rows of the admin's log about a model, newest first: all, or those of a user."""
    content_type: Any = get_content_type_for_model(model)
    rows = LogEntry.objects.filter(content_type=content_type)
    if user is not None:
        name = f"user__{get_user_model().USERNAME_FIELD}"
        rows = rows.filter(**{name: user.replace("\x00", "?")})
    return rows.select_related("user").order_by("-action_time", "-pk")


def last_changes(
    rights: Rights, exposure: ModelExposure, *, user: str | None, most: int
) -> list[HistoryEntry]:
    """Return the newest entries about records of a model that this caller may see."""
    model = exposure.model
    rows, using = logged_rows(model, user=user), rights.rows(model).db
    with limited(rows.db):
        found = list(rows[:MOST_READ])
    keys = list({row.object_id: None for row in found})
    objects = find_objects(rights, exposure, keys, using=using)
    records = {str(obj.pk): obj for obj in objects}
    logs: dict[str, RecordLog | None] = {}
    entries: list[HistoryEntry] = []
    for row in found:
        key = str(row.object_id)
        if key in records and key not in logs:
            logs[key] = log_of(rights, exposure, records[key])
        if (log := logs.get(key)) is None or (entry := log.entry(row)) is None:
            continue
        if user in (None, entry.user):
            entries.append(replace(entry, pk=key_as_json(log.obj.pk)))
        # Code of the site may be asked about each record: of as many as the answer has.
        if len(entries) == most:
            break
    return entries


def log_of(rights: Rights, exposure: ModelExposure, obj: Model) -> RecordLog | None:
    """Return the log of a record, if the admin shows this caller its page."""
    model_admin = viewing_admin(rights, exposure, obj)
    return None if model_admin is None else RecordLog(rights, exposure, model_admin, obj)


# Values before and after a change. They are a part of our note, which the admin does not show.

#: Characters of the values of one change, in JSON.
MOST_KEPT_OF_CHANGE = 20_000


def keep_values(saved: Saved, row: Model | None, *, before: Mapping[str, Any]) -> None:
    """Write the values before and after a change into its entry of the log. `row` is the record
    now. Nothing is kept of a change of rows of inlines, of files or of what looks secret: no
    change is undone in part.
    """
    entry, names = saved.entry, [*saved.changed]
    parts = parts_of_message(entry.change_message) if isinstance(entry, LogEntry) else None
    if row is None or not (parts and names and is_note(parts[-1][1])):
        return
    after = fields_as_json(row, names)
    is_whole = {*names} == {*after} and {*names} <= {*before}
    if not is_whole or any(is_secret(type(row), name) for name in names):
        return
    values = {name: [before[name], after[name]] for name in names}
    parts[-1] = (parts[-1][0], {**parts[-1][1], "values": values})
    message = json.dumps([{verb: what} for verb, what in parts])
    if len(message) <= MOST_KEPT_OF_CHANGE:
        LogEntry.objects.filter(pk=entry.pk).update(change_message=message)


def kept_values(message: str) -> Mapping[str, Any]:
    for _, what in reversed(parts_of_message(message) or []):
        if is_note(what) and isinstance(what.get("values"), dict):
            kept: Mapping[str, Any] = what["values"]
            return kept
    return {}


def fields_as_json(row: Model, names: Iterable[str]) -> dict[str, Any]:
    """Return the stored values of fields of a form, by name, as `update_record` takes them. Files,
    and what JSON has no form for, are left out.
    """
    values = model_to_dict(row, fields=[*names])
    sets = {one.name for one in relations_of(type(row), values)}
    found = {}
    for name, value in values.items():
        with suppress(TypeError, ValueError):
            encoded = msgspec.json.encode(value, enc_hook=key_of)
            found[name] = msgspec.json.decode(encoded)
            if name in sets:
                found[name].sort(key=str)
    return found


def key_of(value: Any) -> Any:
    """Return the key of a record, for what encodes JSON. Raises TypeError for anything else."""
    if not isinstance(value, Model):
        raise TypeError
    return key_as_json(value.pk)


def sign_entry(*, instance: LogEntry, **kwargs: Any) -> None:
    """Before a deletion, or a function or an action of the site, writes an entry: note for the
    record of the call which record it is about, and in the entry which client acts. Entries that
    are written many together send no signal.
    """
    context, message = running_call(), instance.change_message
    if context is None or not instance._state.adding:
        return
    if instance.content_type is not None:
        label = f"{instance.content_type.app_label}.{instance.content_type.model}"
        context.logged.append((label, str(instance.object_id)))
    if NOTE in message.lower():
        return
    note, parts = f"{NOTE}{client_name(context)}", parts_of_message(message)
    if parts is None:
        instance.change_message = f"{message} ({note})"
    elif parts:
        parts.append(("added", {"name": "note", "object": note}))
        instance.change_message = json.dumps([{verb: what} for verb, what in parts])
    else:
        instance.change_message = note[0].upper() + note[1:]


def is_note(what: Mapping[str, Any]) -> bool:
    """Whether we wrote it: which client acted."""
    return what.get("name") == "note" and str(what.get("object")).startswith(NOTE)


def parts_of_message(message: str) -> list[tuple[str, Mapping[str, Any]]] | None:
    """What the admin itself wrote into the log, part by part. None: a text of the site."""
    if not message:
        return []
    try:
        parts = json.loads(message)
    except (ValueError, RecursionError):
        return None
    found: list[tuple[str, Mapping[str, Any]]] = []
    for part in parts if isinstance(parts, list) else [None]:
        if not isinstance(part, dict) or len(part) != 1:
            return None
        ((verb, what),) = part.items()
        if verb not in LOGGED_ACTIONS.values() or not isinstance(what, dict):
            return None
        found.append((verb, what))
    return found


def message_of(part: Mapping[str, Any]) -> str:
    """In the words, and in the language, of the admin."""
    return LogEntry(change_message=json.dumps([part])).get_change_message()


def words_of_change(names: Iterable[str]) -> str:
    """What the admin says of a change of these fields."""
    return message_of({"changed": {"fields": list(names)}})


# What two packages keep. Nothing else knows django-simple-history and django-reversion here.

#: What simple-history calls it.
TYPES = {"+": "added", "~": "changed", "-": "deleted"}


def rows_of_simple_history(log: RecordLog) -> list[HistoryEntry]:
    """A change of fields that the caller does not read is left out."""
    manager = getattr(log.obj._meta, "simple_history_manager_attribute", None)
    if manager is None:
        return []
    rows = getattr(log.obj, manager).order_by("-history_date", "-history_id")
    # A site may keep users in another way.
    users = [field.name for field in rows.model._meta.fields if field.name == "history_user"]
    rows = rows.select_related(*users) if users else rows
    with limited(rows.db):
        found = list(rows[: MOST_READ + 1])
    entries = []
    # Each but the oldest is compared with the one before it.
    for row, before in zip_longest(found[:MOST_READ], found[1:]):
        action = TYPES.get(row.history_type, "changed")
        names: list[str] = []
        if action == "changed" and before is not None:
            changed = row.diff_against(before).changed_fields
            names = [name for name in changed if name in log.names.fields]
        if names or action != "changed":
            entries.append(
                HistoryEntry(
                    at=row.history_date,
                    user=log.name_of(row.history_user),
                    action=action,
                    change=words_of_change(names) if names else "",
                    source="django-simple-history",
                )
            )
    return entries


def versions_of_reversion(log: RecordLog) -> list[HistoryEntry]:
    is_installed = apps.is_installed("reversion")
    if not (is_installed and import_module("reversion").is_registered(type(log.obj))):
        return []
    versions: Any = import_module("reversion.models").Version
    rows = versions.objects.get_for_object(log.obj).select_related("revision__user")
    with limited(rows.db):
        found = [one.revision for one in rows[:MOST_READ]]
    return [
        HistoryEntry(
            at=revision.date_created,
            user=log.name_of(revision.user),
            action="saved",
            # The admin's own message is a text here, and names fields.
            change=revision.get_comment() if log.shows_page else "",
            source="django-reversion",
        )
        for revision in found
    ]


def history_of(log: RecordLog, *, user: str | None, most: int) -> list[HistoryEntry]:
    """The newest entries about a record, from wherever a site keeps them."""
    rows = logged_rows(log.exposure.model, user=user).filter(object_id=str(log.obj.pk))
    with limited(rows.db):
        logged = [log.entry(row) for row in rows[:MOST_READ]]
    entries = [*logged, *rows_of_simple_history(log), *versions_of_reversion(log)]
    found = [one for one in entries if one is not None and user in (None, one.user)]
    return sorted(found, key=lambda one: one.at, reverse=True)[:most]
