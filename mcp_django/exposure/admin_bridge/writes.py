"""Create, update, delete and undo: rights, the transaction, the admin, and the answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from django.contrib.admin.models import LogEntry
from django.contrib.admin.options import get_content_type_for_model
from django.db import DataError, IntegrityError, OperationalError, router, transaction
from django.db.models import Model, QuerySet

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import Limited, NotDone, NotFound, QueryError, ToolError, ValuesRefused
from mcp_django.exposure.admin_bridge import history
from mcp_django.exposure.admin_bridge.deletes import Deletion, check_within, deletion_words
from mcp_django.exposure.admin_bridge.dry_runs import dry_run
from mcp_django.exposure.admin_bridge.forms import RecordForm, Saved, version_in_form
from mcp_django.exposure.admin_bridge.history import key_as_json
from mcp_django.exposure.admin_bridge.relations import (
    COMBINED,
    FORMS,
    AdminDescriber,
    related_words,
)
from mcp_django.exposure.admin_bridge.requests import messages_as_json, open_list, site_code
from mcp_django.exposure.admin_bridge.rights import (
    ADD,
    CHANGE,
    REMOVE,
    check_unmodified,
    check_version,
    find_locked,
    makes_own_records,
    may,
    model_admin_for,
    stored_row,
    viewing_admin,
)
from mcp_django.exposure.limits import contended, is_timeout, limited
from mcp_django.exposure.options import ModelExposure, is_named_in
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.arguments import (
    CreateRecord,
    DeleteRecord,
    Filters,
    UndoChange,
    UpdateRecord,
    UpdateRecords,
    or_default,
)
from mcp_django.exposure.query.filters import parse
from mcp_django.exposure.query.paths_by_rule import paths_of_call
from mcp_django.exposure.query.related import find_all, find_keys, find_object
from mcp_django.exposure.questions.conversation import approve
from mcp_django.exposure.questions.words import (
    LONGEST_LINES,
    counted_names,
    cut_short,
    field_line,
    question,
    record_labels,
    value_lines,
)
from mcp_django.signing import digest_of_json

# What a caller can set of the records of a model: the forms of the admin as schemas.

#: Records that are looked at for one that the caller may change.
MOST_TRIED = 25
#: Said of an update where its form has the fields of the add form.
AS_FOR_CREATE = "The fields of create_record, each of them optional."
#: Said of an update where the pages of the admin make the record that they show.
NO_RECORD_YET = "update_record with the key {key} makes the record, as its page in the admin does."


def describe_writing(
    context: CallContext, rights: Rights, exposure: ModelExposure
) -> dict[str, Any]:
    """What can be set, by tool. Empty for those who may only read."""
    found: dict[str, Any] = {}
    model = exposure.model
    if may(rights, model, ADD):
        found["create_record"] = described(context, rights, exposure, verb=ADD)
    if may(rights, model, CHANGE):
        changed = described(context, rights, exposure, verb=CHANGE)
        forms = (found.get("create_record", {}), changed)
        created, stored = [one.get("values", {}).get("properties") for one in forms]
        if stored is not None and created is not None and stored.keys() == created.keys():
            sets = [name for name, schema in stored.items() if "propertyNames" in schema]
            verb = "takes" if len(sets) == 1 else "take"
            in_place = f" In place of a list, {', '.join(sets)} {verb} {FORMS}. {COMBINED}"
            changed = {"values": AS_FOR_CREATE + in_place * bool(sets)}
        found["update_record"] = changed
    if may(rights, model, REMOVE):
        found["delete_record"] = True
    return found


def described(
    context: CallContext, rights: Rights, exposure: ModelExposure, *, verb: str
) -> dict[str, Any]:
    """What the form takes to add a record, or to change the first one that this caller may change:
    the form of another may differ.
    """
    model_admin, rows, note = rights.model_admin(exposure.model), {}, ""
    try:
        with site_code(model_admin), ExitStack() as trial:
            record = None if verb == ADD else first_changeable(rights, exposure)
            if record is None and makes_own_records(rights, exposure.model):
                trial.enter_context(trying(exposure.model))
                open_list(context, rights, model_admin)
                if (record := first_changeable(rights, exposure)) is not None:
                    note = NO_RECORD_YET.format(key=key_as_json(record.pk))
            if record is None and verb == CHANGE:
                raise ToolError("There is no record that you can change.")
            form = RecordForm(context, rights, exposure, model_admin, obj=record)
            if form.obstacle:
                raise ToolError(form.obstacle)
            describer = AdminDescriber(rights, partial=verb == CHANGE)
            values = describer.form(form.form, names=form.names)
            if verb == ADD:
                describer = AdminDescriber(rights, partial=True)
                rows = {
                    one.prefix: describer.formset(one.formset, names=one.names)
                    for one in form.inlines
                    if one.is_offered
                }
    except ToolError as error:
        # The rest of the description holds.
        return {"unavailable": str(error)}
    # A slug that the page makes of a title need not be sent.
    if required := [name for name in values.pop("required", ()) if name not in form.prepopulated]:
        values["required"] = required
    parts = {"inlines": rows, "only_in_a_browser": form.browser_only, "no_record_yet": note}
    return {"values": values, **{name: part for name, part in parts.items() if part}}


def first_changeable(rights: Rights, exposure: ModelExposure) -> Any:
    """A record whose page this caller sees and may change. None: there is none among the first."""
    model, rows = exposure.model, rights.rows(exposure.model)
    with limited(rows.db):
        for record in rows[:MOST_TRIED]:
            is_seen = rights.may_view_object(model, record) and viewing_admin(
                rights, exposure, record
            )
            if is_seen and may(rights, model, CHANGE, record):
                return record
    return None


#: Keys that the answer of a deletion names.
MOST_KEYS = 100
#: Records of which the answer of `update_records` shows what changed.
MOST_CHANGES = 20
#: Members of answers that are true only of what was done.
ONLY_DONE = ("pk", "version", "record", "messages")


def save(
    context: CallContext, rights: Rights, given: CreateRecord | UpdateRecord
) -> dict[str, Any]:
    """The answer of `create_record` or `update_record`. Raises ToolError if nothing was saved."""
    exposure = rights.exposure(given.model)
    using = router.db_for_write(exposure.model)

    def work() -> dict[str, Any]:
        change = save_one(context, rights, given, using=using)
        return answer_of(rights, change, is_new=isinstance(given, CreateRecord))

    return perform(work, model=exposure.model, dry_run=given.dry_run)


@dataclass(frozen=True, kw_only=True)
class RecordChange:
    """One record as it was saved."""

    saved: Saved
    #: As the database has it. None: the site has removed it at once.
    row: Model | None
    #: As the caller reads it, and what changed in it.
    record: Mapping[str, Any]
    changed: Mapping[str, Any]


def save_one(
    context: CallContext, rights: Rights, given: CreateRecord | UpdateRecord, *, using: str
) -> RecordChange:
    """Save a record, in the transaction of the call."""
    # Whoever writes second reads what the first has written, and keeps it.
    form = open_form(context, rights, given, find=find_locked)
    model, before, values = form.exposure.model, None, given.values or {}
    is_kept = isinstance(given, UpdateRecord) and is_named_in(get_config().keep_changes, model)
    kept = history.fields_as_json(form.obj, values) if is_kept else {}
    state = partial(history.state_of_record, rights, model, names=values, using=using)
    if isinstance(given, UpdateRecord):
        if given.version:
            row = stored_row(form.obj, model)
            check_version(version_in_form(rights, row), given.version)
        if given.if_unmodified_since:
            check_unmodified(form.exposure, form.obj, given.if_unmodified_since)
        before = state(form.obj.pk)
    saved = form.save(values, given.inlines or {})
    after = state(saved.obj.pk)
    row = model._base_manager.using(using).filter(pk=saved.obj.pk).first()
    if is_kept:
        history.keep_values(saved, row, before=kept)
    changed = history.before_and_after(rights, model, saved.changed, before=before, after=after)
    return RecordChange(saved=saved, row=row, record=after.record, changed=changed)


def save_each(
    context: CallContext, rights: Rights, given: UpdateRecords, keys: Sequence[Any]
) -> dict[str, Any]:
    """The answer of `update_records`: these records are changed in the same way, each as
    `update_record` does, and all of them or none, once the person has agreed.
    """
    exposure = rights.exposure(given.model)
    model, using = exposure.model, router.db_for_write(exposure.model)
    changes = [
        UpdateRecord(model=exposure.label, pk=key_as_json(key), values=given.values)
        for key in keys
    ]

    def work() -> dict[str, Any]:
        for one in find_all(rights, exposure, keys, using=using):
            check_changeable(rights, exposure, one)
        if not given.dry_run:
            approve(
                context,
                rights,
                tool="update_records",
                arguments=msgspec.to_builtins(given),
                question=question_about(context, rights, changes[0], keys=keys),
                digest=digest_of_json(*map(str, keys)),
                preview=lambda: {"records": len(keys)},
            )
        made: list[dict[str, Any]] = []
        began = time.monotonic()
        for done, change in enumerate(changes, start=1):
            check_time(context, began, done=len(made), total=len(changes))
            context.progress(done, total=len(changes))
            try:
                with writing(using):
                    changed = save_one(context, rights, change, using=using).changed
            except ToolError as error:
                raise ToolError(
                    "None of these records was changed, because of the one with the key "
                    f"{change.pk}:\n{error}"
                ) from error
            made.append({"pk": change.pk, "changed": changed})
        return {
            "records": len(made),
            "keys": [one["pk"] for one in made],
            "changes": made[:MOST_CHANGES],
        }

    return perform(work, model=model, dry_run=given.dry_run)


def check_time(context: CallContext, began: float, *, done: int, total: int) -> None:
    """Raise Limited where a dry run of so many records will not end in the time that is left,
    since others wait for its locks. It says how many would.
    """
    if context.dry_run_ends is None or not done:
        return
    now = time.monotonic()
    each, left = (now - began) / done, context.dry_run_ends - now
    if each * (total - done) > left:
        fitting = int(left / each)
        raise Limited(
            f"A dry run of {total} records takes too long. Nothing was changed. "
            + (f"Name at most {fitting} records." if fitting > 0 else "Try again in a minute.")
        )


def open_form(
    context: CallContext,
    rights: Rights,
    given: CreateRecord | UpdateRecord,
    *,
    find: Callable[..., Any] = find_object,
) -> RecordForm:
    """The form that a call fills in. Raises ToolError where rights are missing."""
    exposure, obj = rights.exposure(given.model), None
    verb = CHANGE if isinstance(given, UpdateRecord) else ADD
    # Nobody locks what they could not change.
    model_admin = model_admin_for(rights, exposure, verb)
    if isinstance(given, UpdateRecord):
        using = router.db_for_write(exposure.model)
        try:
            obj = find(rights, exposure, given.pk, using=using)
        except NotFound:
            if not makes_own_records(rights, exposure.model):
                raise
            open_list(context, rights, model_admin)
            obj = find(rights, exposure, given.pk, using=using)
        check_changeable(rights, exposure, obj)
    return RecordForm(context, rights, exposure, model_admin, obj=obj)


def check_changeable(rights: Rights, exposure: ModelExposure, obj: Any) -> None:
    if not may(rights, exposure.model, CHANGE, obj):
        raise ToolError(f"The record with the key {obj.pk} is read-only for you.")


def delete(context: CallContext, rights: Rights, given: DeleteRecord) -> dict[str, Any]:
    """The answer of `delete_record`: what was deleted, once the person has agreed to it. A client
    that cannot ask is shown what would be, and comes back with a confirmation.
    """
    exposure = rights.exposure(given.model)
    model_admin = model_admin_for(rights, exposure, REMOVE)
    using = router.db_for_write(exposure.model)

    def work() -> dict[str, Any]:
        objects = selected(rights, exposure, given, using=using)
        check_within(rights, exposure.model, objects, using=using)
        deletion = Deletion(context, rights, exposure, model_admin, objects)
        preview = deletion.preview()
        keys = [key_as_json(one.pk) for one in objects][:MOST_KEYS]
        told = {"records": len(objects), "keys": keys, **preview.visible}
        if not preview.is_possible:
            sentence = "These records cannot be deleted. Nothing was done."
            raise NotDone(msgspec.json.encode({**told, "next": sentence}).decode())
        if not given.dry_run:
            opts, is_one = exposure.model._meta, len(objects) == 1
            what = f"this {opts.verbose_name}" if is_one else opts.verbose_name_plural
            labels = record_labels(rights, exposure.model, [one.pk for one in objects])
            words = deletion_words(preview.visible, exposure.model, len(objects))
            approve(
                context,
                rights,
                tool="delete_record",
                arguments=msgspec.to_builtins(given),
                question=question(
                    f"Delete {what}", labels=labels, count=len(objects), parts=[words]
                ),
                digest=preview.digest,
                preview=lambda: told,
            )
        messages = deletion.execute()
        visible = dict(preview.visible)
        found = {"deleted": visible.pop("would_delete", {}), "keys": keys, **visible}
        if messages:
            found["messages"] = messages_as_json(rights, messages)
        return found

    return perform(work, model=exposure.model, dry_run=given.dry_run)


NOTHING_TO_UNDO = (
    "There is no such change that can be undone. Where get_history can tell you one, its entry "
    "has undo."
)


def undo(context: CallContext, rights: Rights, given: UndoChange) -> dict[str, Any]:
    """The answer of `undo_change`, once the person has agreed: that of the update which it is.

    Raises ToolError where the change cannot be undone, and where a field has another value since.
    """
    exposure = rights.exposure(given.model)
    model, using = exposure.model, router.db_for_write(exposure.model)
    model_admin_for(rights, exposure, CHANGE)

    def work() -> dict[str, Any]:
        obj = find_locked(rights, exposure, given.pk, using=using)
        check_changeable(rights, exposure, obj)
        log = history.log_of(rights, exposure, obj)
        entries: QuerySet[Any] = LogEntry.objects.filter(
            pk=given.change, content_type=get_content_type_for_model(model), object_id=str(obj.pk)
        )
        entry = entries.first() if -(2**31) < given.change < 2**31 else None
        values = {} if entry is None else history.kept_values(entry.change_message)
        if log is None or not log.undoable(values):
            raise ToolError(NOTHING_TO_UNDO)
        row = stored_row(obj, model)
        now = {} if row is None else history.fields_as_json(row, values)
        others = [name for name, (_, after) in values.items() if now.get(name) != after]
        if others:
            raise ToolError(
                f"Nothing was undone: {', '.join(others)} changed since then. Read the record, "
                "and set with update_record what is wrong."
            )
        sent: dict[str, Any] = {name: before for name, (before, _) in values.items()}
        for relation in history.relations_of(model, values):
            # Others may have members that the caller does not see.
            before, after = values[relation.name]
            sent[relation.name] = {
                "add": [key for key in before if key not in after],
                "remove": [key for key in after if key not in before],
            }
        update = UpdateRecord(model=exposure.label, pk=given.pk, values=sent)
        approve(
            context,
            rights,
            tool="undo_change",
            arguments=msgspec.to_builtins(given),
            question=question_about(context, rights, update),
            preview=lambda: {"records": 1},
        )
        return answer_of(rights, save_one(context, rights, update, using=using))

    return perform(work, model=model, dry_run=False)


def perform(
    work: Callable[[], dict[str, Any]], *, model: type[Model], dry_run: bool
) -> dict[str, Any]:
    """Do the work in one transaction, or try it and roll it back."""
    using = router.db_for_write(model)
    with trying(model) if dry_run else writing(using):
        answer = work()
    if not dry_run:
        return answer
    return {"dry_run": True, **{name: answer[name] for name in answer if name not in ONLY_DONE}}


def selected(
    rights: Rights, exposure: ModelExposure, given: DeleteRecord, *, using: str
) -> list[Any]:
    pk = or_default(given.pk)
    filters = Filters(filters=given.filters, exclude=given.exclude, any_of=given.any_of)
    # Empty filters would be all records, which nobody asks for by saying nothing.
    narrows = bool(filters.filters or filters.exclude or filters.any_of)
    narrows = narrows and all(filters.any_of or ())
    if (pk is None) != narrows or (filters != Filters() and not narrows):
        raise QueryError('Name the records by "pk", one key or a list, or by "filters".')
    if pk is not None and not isinstance(pk, list):
        return [find_object(rights, exposure, pk, using=using)]
    if pk is None:
        access = paths_of_call(rights, exposure, filters)
        wanted = parse(rights, access, filters, using=using)
        keys = find_keys(rights, access, wanted, using=using)
    else:
        # Repeated keys are one record.
        keys = list({str(key): key for key in pk}.values())
    if not keys:
        raise QueryError(f"No {exposure.label} matches. Nothing was done.")
    return find_all(rights, exposure, keys, using=using)


def question_about(
    context: CallContext,
    rights: Rights,
    given: CreateRecord | UpdateRecord,
    *,
    keys: Sequence[Any] = (),
) -> str:
    """Return what a person is asked before a record is created or changed in this way, or before
    each of these `keys` is. Raises ToolError where the form refuses the call. Nothing is saved.
    """
    model = rights.exposure(given.model).model
    values, inlines = given.values or {}, given.inlines or {}
    # Should the page not save through `save_model`, it is taken back.
    with trying(model):
        form = open_form(context, rights, given)
        form.check(values, inlines)
    kept = {
        prefix: [row for row in rows if not row.get("delete")] for prefix, rows in inlines.items()
    }
    related = partial(related_words, rights)
    sent = [field_line(form.form[name], value, related=related) for name, value in values.items()]
    lines = [
        cut_short("\n".join(sent), LONGEST_LINES),
        value_lines({prefix: rows for prefix, rows in kept.items() if rows}),
        said_of_deleted_rows(rights, form, inlines),
    ]
    if form.obj is None:
        return question(f"Create this {model._meta.verbose_name}", parts=lines)
    keys = keys or [form.obj.pk]
    named = f"this {model._meta.verbose_name}"
    if len(keys) > 1:
        named = f"these {model._meta.verbose_name_plural}"
    labels = record_labels(rights, model, keys)
    return question(f"Change {named}", labels=labels, count=len(keys), parts=lines)


def said_of_deleted_rows(
    rights: Rights, form: RecordForm, inlines: Mapping[str, Sequence[Mapping[str, Any]]]
) -> str:
    """How many rows of which kind would be deleted, and the labels of the first."""
    lines = []
    for one in form.inlines:
        gone = {str(row.get("pk")) for row in inlines.get(one.prefix, ()) if row.get("delete")}
        stored = [row.instance.pk for row in one.formset.initial_forms] if gone else []
        keys = [key for key in stored if str(key) in gone]
        if keys:
            model = one.formset.model
            numbers = counted_names({model._meta.label: len(keys)})
            lines.append(f"Delete {numbers}: {', '.join(record_labels(rights, model, keys))}")
    return "\n".join(lines)


#: Why the database did not take what was written.
REASONS: dict[type[Exception], str] = {
    IntegrityError: "the database refuses this because of other records. They may depend on it, "
    "or have the same values.",
    DataError: "the database cannot hold one of the values.",
    OperationalError: "the database took too long.",
}


@contextmanager
def trying(model: type[Model]) -> Iterator[None]:
    """A transaction that is rolled back. Raises ToolError as `writing` does."""
    with dry_run(model), writing(router.db_for_write(model)):
        yield


@contextmanager
def writing(using: str) -> Iterator[None]:
    """A transaction. Raises ToolError for what the database refuses."""
    try:
        with contended(), transaction.atomic(using=using):
            yield
    except (IntegrityError, DataError, OperationalError) as error:
        if isinstance(error, OperationalError) and not is_timeout(error):
            raise
        reason = next(text for kind, text in REASONS.items() if isinstance(error, kind))
        refusal = ValuesRefused if isinstance(error, IntegrityError) else ToolError
        raise refusal(f"Nothing was saved: {reason}") from error


def answer_of(rights: Rights, change: RecordChange, *, is_new: bool = False) -> dict[str, Any]:
    """Return what changed, and a new record as this caller reads it."""
    found: dict[str, Any] = {"pk": key_as_json(change.saved.obj.pk), "changed": change.changed}
    if version := version_in_form(rights, change.row):
        found["version"] = version
    if is_new:
        record: Any = change.record or None
        if len(msgspec.json.encode(record)) > get_config().answer_budget:
            mark = rights.mark
            record = {name: history.brief(value, mark=mark) for name, value in record.items()}
        found["record"] = record
    if change.saved.messages:
        found["messages"] = messages_as_json(rights, change.saved.messages)
    return found
