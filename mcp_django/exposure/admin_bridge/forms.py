"""One record through the admin's own add or change view: the form it shows, and what is posted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import KW_ONLY, dataclass
from types import SimpleNamespace
from typing import Any

from django.contrib.admin.utils import quote
from django.core.exceptions import EmptyResultSet
from django.db import DEFAULT_DB_ALIAS, router
from django.db.models import Model
from django.forms.models import BaseModelForm
from django.http import HttpRequest

from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.admin_bridge.deletes import check_within
from mcp_django.exposure.admin_bridge.posts import (
    SubmittedForm,
    disable_unshown,
    fill_in_forms,
    nested_formsets,
    own_fields,
    watch_forms,
)
from mcp_django.exposure.admin_bridge.requests import (
    CapturedMessage,
    admin_request,
    path_of,
    signed_copy,
    site_code,
    without_reports,
)
from mcp_django.exposure.admin_bridge.rights import (
    ADD,
    REMOVE,
    is_writer,
    may,
    settable,
    tolerant,
    version_of,
)
from mcp_django.exposure.admin_sites import of_parents, overrides
from mcp_django.exposure.forms.schemas import needed_fields, shown_fields
from mcp_django.exposure.forms.values import pairs_of, shown_value, takes_json
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import allowed_paths
from mcp_django.exposure.query.computed import ComputedCells, page_columns
from mcp_django.exposure.query.related import can_find_out, visible_objects
from mcp_django.exposure.query.serializers import plain_text
from mcp_django.levels import Level

#: Rows that one call names.
MOST_ROWS = 200
#: Rows of one inline that count for the version of a record, the first by their keys.
MOST_VERSIONED = 1000


class InlineForms:
    """One formset as the admin shows it to this caller.

    A model that the caller cannot write has no rows here either, and the formset does not have
    the rows that the rules for their own model hide from the caller.
    """

    def __init__(self, rights: Rights, shown: Any, *, prefix: str | None = None) -> None:
        self.rights = rights
        self.shown = shown
        self.formset = shown.formset
        self.fieldsets = getattr(shown, "fieldsets", None)
        self.nested = nested_by_row(self.formset)
        if prefix is not None:
            # The row that it is nested in may have another place now.
            self.formset.prefix = prefix
            vars(self.formset).pop("forms", None)
        self.prefix: str = self.formset.prefix
        self.own = own_fields(self.formset)
        self.names: list[str] = []
        model = self.formset.model
        self.is_offered = rights.level(model) >= Level.WRITE
        if self.is_offered:
            self.formset.can_delete &= is_writer(rights, REMOVE)
            exposure = rights.exposure(model._meta.label_lower)
            row = self.formset.empty_form
            disable_unshown(row, self.fieldsets)
            names = settable(rights, exposure, shown_fields(row))
            self.names = [
                name for name in names if name not in self.own and takes_json(row.fields[name])
            ]
            leave_out_hidden_rows(rights, exposure, self.formset)

    def submit(self, post: SubmittedForm, wanted: Sequence[Mapping[str, Any]]) -> None:
        """Post the rows that are stored, with the changes that are wanted, and the new rows."""
        post.names[self.prefix] = self.names
        stored = self.formset.initial_forms
        changes = self._changes(post, wanted, stored)
        count = max([len(stored), *(at + 1 for at in changes)])
        for at in range(count):
            is_new = at >= len(stored)
            form = self.formset.empty_form if is_new else stored[at]
            form.prefix = self.formset.add_prefix(at)
            number, row = changes.get(at, (0, {}))
            which = "new" if is_new else f"key {form.instance.pk}"
            which = f"your row {number} ({which})" if number else f"the row with the {which}"
            post.rows[form.prefix] = f"{self.prefix}, {which}"
            self._submit_row(post, form, row, is_new=is_new)
        post.pairs += management_pairs(self.prefix, count, stored=len(stored))

    def _submit_row(
        self, post: SubmittedForm, form: Any, row: Mapping[str, Any], *, is_new: bool
    ) -> None:
        disable_unshown(form, self.fieldsets)
        values = {name: value for name, value in row.items() if name not in ("pk", "delete")}
        sources = self.shown.prepopulated_fields if is_new else {}
        post.add_form(form, values, sources=sources, path=form.prefix)
        for name in self.own & form.fields.keys() - {"DELETE"}:
            bound = form[name]
            post.pairs += pairs_of(bound.field.widget, bound.html_name, bound.value())
        if row.get("delete"):
            post.pairs.append((form.add_prefix("DELETE"), "on"))
        nested = self.nested.get(None if is_new else form.instance.pk, {})
        for suffix, formset in nested.items():
            prefix = f"{form.prefix}-{suffix}"
            if row.get("delete"):
                # The database deletes them along with it. Some packages would save them anew.
                post.pairs += management_pairs(prefix, 0)
                continue
            shown = SimpleNamespace(formset=formset)
            InlineForms(self.rights, shown, prefix=prefix).submit(post, [])

    def _changes(
        self, post: SubmittedForm, wanted: Sequence[Mapping[str, Any]], stored: Any
    ) -> dict[int, tuple[int, Mapping[str, Any]]]:
        """What is wanted, with its number in the call, by the place of the row in the form; new
        rows come after those that are stored.
        """
        if len(wanted) > MOST_ROWS:
            post.refuse(self.prefix, f"At most {MOST_ROWS} rows can be named in one call.")
            return {}
        places = {str(form.instance.pk): at for at, form in enumerate(stored)}
        found: dict[int, tuple[int, Mapping[str, Any]]] = {}
        new = len(stored)
        for number, row in enumerate(wanted, start=1):
            at = new if row.get("pk") is None else places.get(str(row["pk"]), -1)
            if refusal := self._refusal(row, at, is_repeated=at in found):
                post.refuse(self.prefix, refusal)
                continue
            if row.get("delete"):
                model = self.formset.model
                using = router.db_for_write(model)
                check_within(self.rights, model, [stored[at].instance], using=using)
            # The admin does not look at the values of a row that goes.
            found[at] = number, ({"delete": True} if row.get("delete") else row)
            new = max(new, at + 1)
        return found

    def _refusal(self, row: Mapping[str, Any], at: int, *, is_repeated: bool) -> str:
        """Why the row at a place cannot be added or changed like this. Empty: it can."""
        is_deleted = row.get("delete", False)
        if row.get("pk") is None:
            if is_deleted:
                return "Name the key of the row to delete."
            if not self.shown.has_add_permission:
                return "You may not add rows here."
            is_full = at >= (self.formset.max_num or 0)
            return f"There can be at most {self.formset.max_num} rows." if is_full else ""
        if at == -1 or is_repeated:
            what = "There are two changes of the row" if is_repeated else "There is no row"
            return f"{what} with the key {shown_value(row['pk'])}."
        if not isinstance(is_deleted, bool):
            return "delete is true or false."
        if is_deleted and not (self.formset.can_delete and self.shown.has_delete_permission):
            return "You may not delete rows here."
        if row.keys() - {"pk", "delete"} and not self.shown.has_change_permission:
            return "The rows here are read-only for you."
        return ""


def nested_by_row(formset: Any) -> dict[Any, dict[str, Any]]:
    """The formsets within the rows of a formset that is shown, by the key of the row, and with
    None those within a new row. Each has the suffix by which its prefix is longer than that of the
    row: "dishes" of "courses-0-dishes".
    """
    rows = {one.instance.pk: nested_formsets(one) for one in vars(formset).get("forms", ())}
    # Where packages keep them for the row that a script adds, as "courses-empty-dishes".
    rows[None] = nested_formsets(formset) or nested_formsets(formset.form)
    start = f"{formset.prefix}-"
    return {
        key: {one.prefix.removeprefix(start).partition("-")[2]: one for one in nested}
        for key, nested in rows.items()
    }


def management_pairs(prefix: str, count: int, *, stored: int = 0) -> list[tuple[str, str]]:
    """What a formset posts about itself."""
    totals = {"TOTAL": count, "INITIAL": stored, "MIN_NUM": 0, "MAX_NUM": 1000}
    return [(f"{prefix}-{name}_FORMS", str(total)) for name, total in totals.items()]


def leave_out_hidden_rows(rights: Rights, exposure: ModelExposure, formset: Any) -> None:
    """Take the rows that this caller may not see out of a formset that was not posted.

    The POST then names the other rows, so that Django looks at no hidden ones.
    """
    rows = list(formset.get_queryset())
    if not rows:
        return
    left = visible_objects(rights, exposure, rows, using=rows[0]._state.db)
    formset.get_queryset = lambda: left
    # They were made from all rows, if something has asked for them.
    vars(formset).pop("forms", None)


def version_in_form(rights: Rights, obj: Model | None) -> str:
    """Return the version of a record with the rows in its form that this caller may see and could
    change there. Empty: there is no such record.
    """
    if obj is None:
        return ""
    model_admin = rights.model_admin(type(obj))
    using, inlines = obj._state.db or DEFAULT_DB_ALIAS, []
    # The record counts without its rows where they cannot be told.
    with tolerant(f"The inlines of {obj._meta.label} cannot be listed."):
        records = type(obj)._base_manager.using(using).filter(pk=obj.pk)
        inlines = [
            (one.model, of_parents(one, records))
            for one in model_admin.get_inlines(rights.request, obj)
            if rights.level(one.model) >= Level.WRITE
        ]
    found: list[Model] = []
    for model, condition in inlines:
        if condition is not None:
            rows = model._base_manager.using(using).filter(condition).order_by("pk")
            exposure = rights.exposed.exposures[model]
            found += visible_objects(rights, exposure, rows[:MOST_VERSIONED], using=using)
    values: list[Any] = []
    if columns := page_columns(rights, model_admin):
        access = allowed_paths(rights, rights.exposed.exposures[type(obj)])
        cells = ComputedCells(rights, access, whole=True, using=using)
        values = [cells.of(one, {cells.key: [obj.pk]}) for one in columns.values()]
    return version_of(obj, rows=found, values=values)


#: Where a formset keeps the rows that it has saved.
ROWS_SAVED = {"added": "new_objects", "changed": "changed_objects", "deleted": "deleted_objects"}
#: The button that a person presses.
SAVE = ("_save", "Save")


@dataclass(frozen=True, kw_only=True)
class Saved:
    obj: Any
    #: Fields that were sent with a new value, formsets with rows that changed, and everything
    #: that was sent and that the caller cannot read. Formsets that the caller reads have the
    #: numbers of their rows.
    changed: Mapping[str, Mapping[str, int] | None]
    messages: Sequence[CapturedMessage]
    #: What the ModelAdmin returned when it wrote the log: of Django's own one, the entry.
    entry: Any = None


class Accepted(ToolError):
    """The form took what was sent, and nothing was saved yet."""


@dataclass(eq=False)
class RecordForm:
    """The add form of a model, or the change form of one record, as this caller gets it.

    `values` are keyed by the names of fields, `inlines` by the prefixes of formsets. Scopes and
    levels are not checked here, but by `rights.may`.
    """

    context: CallContext
    rights: Rights
    exposure: ModelExposure
    admin: Any
    _: KW_ONLY
    obj: Any = None

    def __post_init__(self) -> None:
        self._open()

    def _open(self) -> None:
        """Send one GET, which is not rendered: it checks rights and gives fields and choices."""
        # Before the copy is made: some ModelAdmins are complete only when their URLs are known.
        request, _ = self._request()
        one_call = self._with_obj(copy(self.admin))
        made: list[Any] = []
        watch_forms(one_call, made.append)
        with site_code(self.admin):
            shown = context_of(self._view(one_call, request))
        if "adminform" not in shown or not isinstance(shown["adminform"].form, BaseModelForm):
            raise ToolError(self._without_form())
        self.form = shown["adminform"].form
        disable_unshown(self.form, shown["adminform"].fieldsets)
        if self.form not in made:
            # The view for a parent of several models hands over to the one of the record's class.
            own = self.admin.admin_site._registry.get(type(self.form.instance))
            if self.obj is None or own is None or own is self.admin:
                raise ToolError(
                    "The admin has a page of its own for this. A person can do it there."
                )
            self.admin = own
            self._open()
            return
        offered = self._offered()
        #: The fields that could be set, but for their widgets, which need a browser.
        self.browser_only = [name for name in offered if not takes_json(self.form.fields[name])]
        self.names = [name for name in offered if name not in self.browser_only]
        self.inlines = [
            InlineForms(self.rights, one) for one in shown.get("inline_admin_formsets", ())
        ]
        #: The fields that the page makes of others, as it does in new forms only.
        self.prepopulated: dict[str, list[str]] = {
            one["field"].name: [source.name for source in one["dependencies"]]
            for one in shown["adminform"].prepopulated_fields
            if self.obj is None
        }
        #: Why no record can be created, whatever is sent. Empty: it can.
        self.obstacle = self._obstacle() if self.obj is None else ""

    def _without_form(self) -> str:
        model = self.admin.model
        kinds = [
            one.label
            for one in self.rights.exposures()
            if one.model is not model
            and issubclass(one.model, model)
            and may(self.rights, one.model, ADD)
        ]
        if self.obj is None and kinds:
            return (
                "The admin asks first for the kind of the record. Create a record of one of "
                f"these models: {', '.join(kinds)}."
            )
        return "The admin shows no form for this."

    def _offered(self) -> list[str]:
        """What this caller may set. For fields that only the record's own class has, the rules
        for that class decide.
        """
        names = settable(self.rights, self.exposure, shown_fields(self.form), obj=self.obj)
        kind = self.admin.model
        if kind is self.exposure.model:
            return names
        opts = self.exposure.model._meta
        common = {one.name for one in (*opts.fields, *opts.many_to_many)}
        if self.rights.level(kind) >= Level.WRITE:
            common |= {*settable(self.rights, self.rights.exposed.exposures[kind], names)}
        return [name for name in names if name in common]

    def _obstacle(self) -> str:
        filled_in = {*self.names, *self.prepopulated}
        needed = [name for name in needed_fields(self.form) if name not in filled_in]
        if not needed:
            return ""
        named = [name for name in self.browser_only if name in needed]
        what = (
            f"{', '.join(named)}, which can be set only in a browser"
            if named
            else ("a field that assistants cannot set")
        )
        return (
            f"No record of {self.exposure.label} can be created here: the form of the admin "
            f"requires {what}. A person can do it in the admin."
        )

    def _request(self, **given: Any) -> Any:
        page, key = ("add", None) if self.obj is None else ("change", self.obj.pk)
        path = path_of(self.admin, page, key)
        return admin_request(self.context, self.rights, self.admin, path=path, **given)

    def _with_obj(self, one_call: Any) -> Any:
        """Have a copy of the ModelAdmin take the record that was found, and not read it for each
        page, where the page has the rows among which it was found.
        """
        get_object = one_call.get_object

        def take_obj(request: HttpRequest, *args: Any) -> Any:
            rows, own_rows = one_call.get_queryset(request), self.rights.rows(self.exposure.model)
            with suppress(EmptyResultSet):
                sql, own_sql = [one.query.sql_with_params() for one in (rows, own_rows)]
                if sql == own_sql and rows.model is type(self.obj):
                    return self.obj
            return get_object(request, *args)

        if not overrides(self.admin, "get_object"):
            one_call.get_object = take_obj
        return one_call

    def _view(self, one_call: Any, request: HttpRequest) -> Any:
        # Not changeform_view: django-reversion opens its revision in these two.
        if self.obj is None:
            return one_call.add_view(request)
        return one_call.change_view(request, quote(str(self.obj.pk)))

    def submitted(self, values: Mapping[str, Any], inlines: Mapping[str, Any]) -> SubmittedForm:
        """Return what is to be posted, with the errors of what cannot even be filled in. Raises
        ToolError where no record can be created.
        """
        if self.obstacle:
            raise ToolError(self.obstacle)
        post = SubmittedForm(self.rights, names=self.names)
        for name in self.browser_only:
            if name in values:
                post.refuse(
                    name, "This can be set only in a browser: its page has scripts for it."
                )
        given = {name: values[name] for name in values if name not in self.browser_only}
        post.add_form(self.form, given, sources=self.prepopulated)
        offered = [one.prefix for one in self.inlines if one.is_offered]
        post.refuse_unknown(inlines, offered, what="an inline")
        for one in self.inlines:
            one.submit(post, inlines.get(one.prefix, []) if one.is_offered else [])
        return post

    def check(self, values: Mapping[str, Any], inlines: Mapping[str, Any]) -> None:
        """Raise ToolError as `save` would for what the form refuses. Call it in a dry run, should
        the page not save through `save_model`.
        """

        def accept(*args: Any) -> None:
            raise Accepted

        post, one_call = self.submitted(values, inlines), self._with_obj(copy(self.admin))
        seen = watch_saving(one_call)
        one_call.save_model = accept
        with suppress(Accepted):
            self._post(one_call, post, seen)

    def save(self, values: Mapping[str, Any], inlines: Mapping[str, Any]) -> Saved:
        """Post them. Raises ToolError, with every field that is wrong, when nothing was saved."""
        post = self.submitted(values, inlines)
        one_call = self._with_obj(signed_copy(self.admin, self.context))
        seen = watch_saving(one_call)
        recorder = self._post(one_call, post, seen)
        return Saved(
            obj=seen["obj"],
            changed=self._told_of(seen["changed"], post),
            messages=without_reports(recorder.messages, plain_text(seen["obj"])),
            entry=getattr(one_call, "mcp_entry", None),
        )

    def _post(self, one_call: Any, post: SubmittedForm, seen: Mapping[str, Any]) -> Any:
        """Send the form, and return what its page said. Raises ToolError unless `seen` fills."""
        fill_in_forms(one_call, post)
        request, recorder = self._request(data=[*post.pairs, SAVE])
        with site_code(self.admin):
            response = self._view(one_call, request)
        if not seen:
            post.collect_errors(context_of(response))
            post.raise_errors()
            said = [message.text for message in recorder.messages]
            raise ToolError(" ".join(["Nothing was saved.", *said]))
        return recorder

    def _told_of(
        self, changed: Mapping[str, Mapping[str, int] | None], post: SubmittedForm
    ) -> dict[str, Mapping[str, int] | None]:
        """The names that changed, and all that were sent and that this caller cannot read: nobody
        finds out what is stored by trying values until nothing changes. A field that this caller
        can neither set nor read is not named, although a new record has what the form shows.
        """
        models = (self.exposure.model, self.admin.model)
        unreadable = {
            name
            for name in self.form.fields
            if not any(can_find_out(self.rights, model, name) for model in models)
        }
        hidden = unreadable.intersection(post.sent[""])
        formsets = {one.prefix: one.formset.model for one in self.inlines}
        for row, names in post.sent.items():
            model = formsets.get(prefix := row.rpartition("-")[0])
            if model and not all(can_find_out(self.rights, model, name) for name in names):
                hidden.add(prefix)
        # In the order of the page, whatever was added.
        order = dict.fromkeys((*self.form.fields, *formsets, *changed))
        secret = unreadable.difference(self.names)
        return {
            name: None if name in hidden else changed[name]
            for name in order
            if name in hidden or (name in changed and name not in secret)
        }


def context_of(response: Any) -> dict[str, Any]:
    return getattr(response, "context_data", None) or {}


def watch_saving(one_call: Any) -> dict[str, Any]:
    """What was saved, once it was. Empty until then."""
    seen: dict[str, Any] = {}
    save_related = one_call.save_related

    def watched(request: HttpRequest, form: Any, formsets: Any, change: Any) -> Any:
        changed: dict[str, Any] = dict.fromkeys(form.changed_data)
        with_changes = [one for one in formsets if one.has_changed()]
        result = save_related(request, form, formsets, change)
        for one in with_changes:
            # How many rows were added, changed and deleted, if the formset says so.
            rows = {verb: vars(one).get(name) for verb, name in ROWS_SAVED.items()}
            changed[one.prefix] = {verb: len(saved) for verb, saved in rows.items() if saved}
        seen.update(obj=form.instance, changed=changed)
        return result

    one_call.save_related = watched
    return seen
