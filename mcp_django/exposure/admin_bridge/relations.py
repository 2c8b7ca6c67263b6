"""Related records by their key, by what they are called, or by what the admin's search finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import Any

from django.contrib.admin.widgets import AutocompleteMixin, ForeignKeyRawIdWidget
from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from django.db.models.constants import LOOKUP_SEP
from django.forms import FileField
from django.forms.models import ModelMultipleChoiceField
from django.utils.text import capfirst

from mcp_django.exceptions import QueryError
from mcp_django.exposure.fields import ITEMS, TEXT, bounded_text, quoted
from mcp_django.exposure.forms.schemas import (
    MOST_RECORDS,
    Choice,
    Describer,
    InvalidValue,
    Schema,
    kind_of_form_field,
)
from mcp_django.exposure.forms.values import file_of, inner, shown_value, upload_of
from mcp_django.exposure.limits import limited
from mcp_django.exposure.paths import FILTER, SEARCH, Path, key_value
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import allowed_paths, policy_of
from mcp_django.exposure.query.content_types import is_content_type_model, key_of_type
from mcp_django.exposure.query.filters import MAX_WORDS
from mcp_django.exposure.query.guard import guarded
from mcp_django.exposure.query.related import (
    fenced_labels_of,
    has_untrusted_labels,
    shows_column,
    shows_records,
    visible_labels,
)
from mcp_django.exposure.query.related_names import RelatedNames
from mcp_django.exposure.questions.words import said

# Forms of the admin as JSON Schemas, with no more about related records than the caller sees.

#: What an update takes for a set of related records. A list alone would drop what is not in it.
FORMS = '{"add": [...]}, {"remove": [...]} or {"set": [...]}'
COMBINED = "add and remove may be combined."


@dataclass(eq=False)
class AdminDescriber(Describer):
    """Lists related records as the caller would find them, whatever the form would show.

    A form of the admin offers every row of the default manager, by its `str()`, also to those
    who may not view the model.
    """

    rights: Rights

    def related_list(self, field: Any) -> Schema:
        whole = super().related_list(field)
        if not self.partial:
            return whole
        # minItems is about the whole set: a required one may have its members already.
        members = {name: one for name, one in whole.items() if name != "minItems"}
        return {
            "type": "object",
            "propertyNames": {"enum": ["add", "remove", "set"]},
            "minProperties": 1,
            "dependentSchemas": {"set": {"maxProperties": 1}},
            "description": f"Takes {FORMS}. {COMBINED}",
            "additionalProperties": members,
        }

    def records(self, field: Any) -> list[Choice] | None:
        model = field.queryset.model
        # Where the admin has a search in place of a list, that would be long.
        is_searched = isinstance(inner(field.widget), (ForeignKeyRawIdWidget, AutocompleteMixin))
        if is_searched or not shows_records(self.rights, model):
            return None
        if not shows_column(self.rights, model, field.to_field_name or "pk"):
            return None
        # A schema is the same in every answer, so that no fence can be in it.
        if has_untrusted_labels(self.rights, model):
            return None
        found = list(visible_choices(self.rights, field.queryset)[: MOST_RECORDS + 1])
        if len(found) > MOST_RECORDS:
            return None
        labels = visible_labels(self.rights, model, [one.pk for one in found])
        return [
            (key := posted_key(field, one), labels[one.pk] or key)
            for one in found
            if one.pk in labels
        ]

    def key_hint(self, field: Any) -> str:
        model = field.queryset.model
        if is_content_type_model(model):
            return "Key of a content type, or the name of a model as list_models has it."
        if not shows_records(self.rights, model):
            return "Key of a record."
        return f"Key of a {model._meta.label_lower}, or its name, or text that finds exactly one."


def visible_choices(rights: Rights, choices: QuerySet[Any]) -> QuerySet[Any]:
    """Those of the choices that this caller sees, before rows are judged one by one."""
    (key,) = choices.model._meta.pk_fields
    rows = rights.rows(choices.model).using(choices.db)
    visible = guarded(rows, policy_of(choices.model, [key.attname])).values(key.attname)
    # The order of the admin may be that of a column which the caller may not see.
    return choices.filter(Q(("pk__in", visible))).order_by("pk")


#: Records that an ambiguous text names.
MOST_NAMED = 5
#: Records that are judged one by one, where a text finds many.
MOST_JUDGED = 100


def find_related(rights: Rights, field: Any, value: Any) -> Any:
    """The file that a value means to a field of files, and the record that it means to a
    ModelChoiceField, as the form takes it: None for nothing, and a list for several records.

    A record is named by its key, or by a text that finds exactly one of the choices. Raises
    InvalidValue, in the same words for a record or an upload that is missing and for one that this
    caller may not see.
    """
    if isinstance(field, FileField):
        return file_of(value, user=rights.principal.user)
    if isinstance(field, ModelMultipleChoiceField):
        return Finder(rights, field).keys(value)
    return None if value in (None, "") else Finder(rights, field).keys([value])[0]


def find_members(
    rights: Rights, bound: Any, value: Any
) -> tuple[list[str], list[Model], list[Model]]:
    """Read what a value makes of a field of several records: the keys of those that it names, as
    the form takes them, the visible members that stay, and the members that this caller may not
    see, which always stay. Members may be no choices any more. Raises InvalidValue.
    """
    field, is_new = bound.field, bound.form.instance._state.adding
    changes = set_changes(value, is_new=is_new)
    given = list(bound.initial or ())
    members = [one for one in given if isinstance(one, Model)]
    if keys := [one for one in given if not isinstance(one, Model)]:
        name = f"{field.to_field_name or 'pk'}__in"
        members += all_related(field).filter(Q((name, keys)))
    labels = visible_labels(rights, field.queryset.model, [one.pk for one in members])
    visible = [one for one in members if one.pk in labels]
    hidden = [one for one in members if one.pk not in labels]
    if "set" in changes:
        return Finder(rights, field).keys(changes["set"]), [], [] if is_new else hidden
    added = Finder(rights, field).keys(changes.get("add", []))
    # A member may be no choice any more, and an error must not show whether a record is a member.
    removed = Finder(rights, field, among_all=True).keys(changes.get("remove", []))
    if both := [key for key in dict.fromkeys(added) if key in removed]:
        raise InvalidValue(f"The same record is in add and in remove: {', '.join(both)}.")
    left = [one for one in visible if posted_key(field, one) not in removed]
    return added, left, hidden


def takes_names(bound: Any) -> bool:
    """Return whether a field of texts stands for a set: that of the tags of a package."""
    sets = [field.name for field in bound.form.instance._meta.many_to_many]
    return bound.name in sets and kind_of_form_field(bound.field) == "text"


def names_as_text(bound: Any, value: Any) -> str:
    """Return what a person would type for the names that a value leaves in the set. Raises
    InvalidValue.
    """
    changes = set_changes(value, is_new=bound.form.instance._state.adding)
    lists = changes.values()
    if not all(isinstance(names, list) for names in lists) or not all(
        isinstance(name, str) for names in lists for name in names
    ):
        raise InvalidValue(f"This field takes {FORMS}, each with a list of names.")
    present = [] if "set" in changes else map(str, bound.initial or ())
    wanted = dict.fromkeys([*present, *changes.get("set", ()), *changes.get("add", ())])
    names = [name for name in wanted if name not in changes.get("remove", ())]
    typed = ", ".join(f'"{name}"' for name in names)
    # The form says what is wrong, but a name with a quote in it would become two.
    with suppress(ValidationError):
        if {*map(str, bound.field.clean(typed))} != {*names}:
            raise InvalidValue("These names cannot be told apart. Send what a person would type.")
    return typed


def join_members(
    clean: Callable[[Any], Any],
    data: Any,
    *,
    keys: Sequence[str],
    left: Sequence[Model],
    hidden: Sequence[Model],
) -> Any:
    """Clean the keys that a call names, and add the members that stay: a queryset, or a list where
    the field makes a list.
    """
    if not left and not hidden:
        return clean(keys)
    model, using = type([*left, *hidden][0]), [*left, *hidden][0]._state.db
    chosen = clean(keys) if keys else model._base_manager.none()
    members = {one.pk: one for one in (*left, *chosen, *hidden)}
    if isinstance(chosen, QuerySet):
        return model._base_manager.using(using).filter(pk__in=members)
    return [*members.values()]


def related_words(rights: Rights, field: Any, value: Any) -> str:
    """What a value means to a field of records, for a person: the label of the record that it
    finds, which this caller sees, and else the value. To a field of files: the name of the upload.
    """
    if isinstance(field, FileField):
        upload = upload_of(str(value), user=rights.principal.user)
        return said(value) if upload is None else upload.filename
    finder = Finder(rights, field, among_all=True)
    try:
        (key,) = finder.keys([value])
    except InvalidValue:
        return said(value)
    return finder.labels.get(key) or key


def set_changes(value: Any, *, is_new: bool) -> Mapping[str, Any]:
    """What a value says of a set: what to add and to remove, or what to set. Raises InvalidValue
    for anything else. A new record has nothing to lose, so that it takes a list as well.
    """
    if isinstance(value, dict):
        if value.keys() == {"set"} or (value and value.keys() <= {"add", "remove"}):
            return value
    elif is_new:
        return {"set": value}
    elif isinstance(value, list):
        raise InvalidValue(f"This field takes {FORMS}: a bare list would drop what is not in it.")
    raise InvalidValue(f"This field takes {FORMS}. {COMBINED}")


def all_related(field: Any) -> QuerySet[Any]:
    """All records of the model of a field, whatever it offers."""
    records: QuerySet[Any] = field.queryset.model._base_manager.using(field.queryset.db).all()
    return records


def posted_key(field: Any, obj: Any) -> str:
    """A record as the form takes it."""
    return str(field.prepare_value(obj))


class Finder:
    """Finds choices of one field. Those that this caller may not see do not exist, unless all of
    their model is hidden: then the key of a choice is taken, as nothing else could be.

    With `among_all`, records that are no choices are found as well, if the model is not hidden.
    """

    def __init__(self, rights: Rights, field: Any, *, among_all: bool = False) -> None:
        self.rights = rights
        self.field = field
        self.model = field.queryset.model
        self.is_shown = shows_records(rights, self.model)
        self.choices = all_related(field) if self.is_shown and among_all else field.queryset
        #: Of the records that were found, by what the form takes, if the model is not hidden.
        self.labels: dict[str, str] = {}

    def keys(self, values: Any) -> list[str]:
        """The records of a list, as the form takes them. Raises InvalidValue."""
        if not isinstance(values, list):
            raise InvalidValue(f"{shown_value(values)} is not a list of keys.")
        if len(values) > ITEMS:
            raise InvalidValue(f"At most {ITEMS} can be named at once.")
        known = self.by_key(values)
        found: list[str] = []
        errors: list[str] = []
        for at, value in enumerate(values):
            try:
                found.append(known[at] if at in known else self.by_text(value))
            except InvalidValue as error:
                errors.append(str(error))
        if errors:
            raise InvalidValue(" ".join(errors))
        return found

    def by_key(self, values: Sequence[Any]) -> Mapping[int, str]:
        """The places of the values that are keys of choices, with what the form takes."""
        name = self.field.to_field_name
        if name is None or (self.is_shown and not shows_column(self.rights, self.model, name)):
            (column,) = self.model._meta.pk_fields
        else:
            column = self.model._meta.get_field(name)
        choices = self.choices.all()
        wanted: dict[int, Any] = {}
        for at, value in enumerate(values):
            try:
                wanted[at] = key_value(column, value, using=choices.db)
            except QueryError:
                continue
        if not wanted:
            return {}
        with limited(choices.db):
            objects = list(choices.filter(Q((f"{column.attname}__in", set(wanted.values())))))
        if self.is_shown:
            visible = visible_labels(self.rights, self.model, [one.pk for one in objects])
            objects = [one for one in objects if one.pk in visible]
            self.labels |= {posted_key(self.field, one): visible[one.pk] for one in objects}
        known = {getattr(one, column.attname): posted_key(self.field, one) for one in objects}
        return {at: known[value] for at, value in wanted.items() if value in known}

    def by_text(self, value: Any) -> str:
        if is_content_type_model(self.model) and isinstance(value, str):
            try:
                return str(key_of_type(self.rights, self.choices.all(), value))
            except QueryError as error:
                raise InvalidValue(capfirst(str(error))) from None
        if not self.is_shown:
            raise InvalidValue(f"There is no record with the key {quoted(value)}.")
        objects, has_more = self.named(value) if isinstance(value, str) else ([], False)
        labels = visible_labels(self.rights, self.model, [one.pk for one in objects])
        objects = [one for one in objects if one.pk in labels]
        names = self.model._meta
        if not objects:
            raise InvalidValue(f"No {names.verbose_name} matches {quoted(value)}.")
        keys = [posted_key(self.field, one) for one in objects]
        if len(objects) == 1 and not has_more:
            self.labels[keys[0]] = labels[objects[0].pk]
            return keys[0]
        shown = fenced_labels_of(self.rights, self.model, [one.pk for one in objects])
        named = ", ".join(
            f"{key}: {label}" if (label := shown.get(one.pk)) else key
            for one, key in zip(objects[:MOST_NAMED], keys, strict=False)
        )
        is_many = has_more or len(objects) > MOST_NAMED
        count = f"More than {MOST_NAMED}" if is_many else len(objects)
        raise InvalidValue(
            f"{count} {names.verbose_name_plural} match {quoted(value)}: {named}. Use one key."
        )

    def named(self, given: str) -> tuple[list[Any], bool]:
        """Return the choices that a text names, and whether there are more: as a filter finds
        records by what they are called, and else as the search box of the admin does.
        """
        try:
            words = bounded_text(given).split()
            keys = [row[0] for row in RelatedNames(self.rights).called(self.model, given)]
        except QueryError:  # no database takes this text, or it is too long
            return [], False
        called = self.first(keys, most=MOST_NAMED) if keys else ([], False)
        return called if called[0] or not 0 < len(words) <= MAX_WORDS else self.search(given)

    def first(self, keys: Any, *, most: int) -> tuple[list[Any], bool]:
        choices = visible_choices(self.rights, self.choices).filter(Q(("pk__in", keys)))
        with limited(choices.db):
            found = list(choices[: most + 1])
        return found[:most], len(found) > most

    def search(self, given: str) -> tuple[list[Any], bool]:
        """What the search box of the admin finds among the choices, and whether there is more."""
        model_admin = self.rights.model_admin(self.model)
        request = self.rights.request
        if model_admin is None or not model_admin.has_view_permission(request):
            return [], False
        # What is found, or not found, tells about a column as much as a filter does.
        access = allowed_paths(self.rights, self.rights.exposed.exposures[self.model])
        usable = {**access.tables[FILTER], **access.tables[SEARCH]}
        searched = model_admin.get_search_fields(request)
        names = [name for name in searched if is_usable(name.lstrip("^=@"), usable)]
        if not names:
            return [], False
        # The registered instance is everybody's.
        searcher = copy(model_admin)
        searcher.get_search_fields = lambda request: names
        rows, _ = searcher.get_search_results(request, searcher.get_queryset(request), given)
        most = MOST_JUDGED if self.rights.checks_rows_one_by_one(self.model) else MOST_NAMED
        # With `pk__in` no row comes twice, so it does not matter whether the search says it may.
        return self.first(rows.values("pk"), most=most)


def is_usable(path: str, usable: Mapping[str, Path]) -> bool:
    """Whether it is one of those paths, or one with an operator behind it."""
    if path in ("pk", *usable):
        return True
    head, _, operator = path.rpartition(LOOKUP_SEP)
    field = usable[head].field if head in usable else None
    return field is not None and not field.is_relation and operator in TEXT
