"""Related records by their key, or by a text that the admin's own search finds one record by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Q
from django.db.models.constants import LOOKUP_SEP

from mcp_django.exceptions import QueryError
from mcp_django.exposure.budget import limited
from mcp_django.exposure.declarations import SEARCH
from mcp_django.exposure.guard import FILTER
from mcp_django.exposure.keys import key_value
from mcp_django.exposure.labels import shows_column, shows_records, visible_labels
from mcp_django.exposure.operators import TEXT
from mcp_django.exposure.paths import Path, key_parts
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query import MAX_WORDS
from mcp_django.exposure.reach import reach_of
from mcp_django.exposure.relations import policy_of
from mcp_django.exposure.rows import guarded
from mcp_django.exposure.values import ITEMS, TERM, quoted, text

#: Records that an ambiguous text names.
MOST_NAMED = 5
#: Records that are judged one by one, where a text finds many.
MOST_JUDGED = 100


def related_key(rights: Rights, field: Any, value: Any) -> str:
    """The record that a value means, as a field of a form takes it.

    `field` is a ModelChoiceField of the form; `value` a key, or a text that finds exactly one
    of its choices. Raises ValidationError, in the same words for a record that is missing and
    for one that this caller may not see.
    """
    return Finder(rights, field).keys([value])[0]


def related_keys(rights: Rights, field: Any, values: Sequence[Any]) -> list[str]:
    """The same for a ModelMultipleChoiceField, with one ValidationError for all that is wrong."""
    if len(values) > ITEMS:
        raise ValidationError(f"At most {ITEMS} can be named at once.", code="too_many")
    return Finder(rights, field).keys(values)


class Finder:
    """Finds choices of one field. Those that this caller may not see do not exist, unless all of
    their model is hidden: then the key of a choice is taken, as nothing else could be."""

    def __init__(self, rights: Rights, field: Any) -> None:
        self.rights = rights
        self.field = field
        self.model = field.queryset.model
        self.is_shown = shows_records(rights, self.model)

    def keys(self, values: Sequence[Any]) -> list[str]:
        known = self.by_key(values)
        found: list[str] = []
        errors: list[ValidationError] = []
        for at, value in enumerate(values):
            try:
                found.append(known[at] if at in known else self.by_text(value))
            except ValidationError as error:
                errors.append(error)
        if errors:
            raise errors[0] if len(errors) == 1 else ValidationError(errors)
        return found

    def by_key(self, values: Sequence[Any]) -> Mapping[int, str]:
        """The places of the values that are keys of choices, with what the form takes."""
        name = self.field.to_field_name
        if name is None or (self.is_shown and not shows_column(self.rights, self.model, name)):
            (column,) = key_parts(self.model)
        else:
            column = self.model._meta.get_field(name)
        choices = self.field.queryset.all()
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
        known = {getattr(one, column.attname): self.as_taken(one) for one in objects}
        return {at: known[value] for at, value in wanted.items() if value in known}

    def as_taken(self, obj: Any) -> str:
        return str(self.field.prepare_value(obj))

    def by_text(self, value: Any) -> str:
        if not self.is_shown:
            raise ValidationError(f"There is no record with the key {quoted(value)}.", "no_match")
        objects, has_more = self.search(value) if isinstance(value, str) else ([], False)
        labels = visible_labels(self.rights, self.model, [one.pk for one in objects])
        objects = [one for one in objects if one.pk in labels]
        names = self.model._meta
        if not objects:
            raise ValidationError(f"No {names.verbose_name} matches {quoted(value)}.", "no_match")
        if len(objects) == 1 and not has_more:
            return self.as_taken(objects[0])
        named = ", ".join(
            f"{key}: {labels[one.pk]}" if labels[one.pk] else key
            for one in objects[:MOST_NAMED]
            for key in [self.as_taken(one)]
        )
        is_many = has_more or len(objects) > MOST_NAMED
        count = f"More than {MOST_NAMED}" if is_many else len(objects)
        # A site's texts may have a percent sign, so that this takes no params.
        raise ValidationError(
            f"{count} {names.verbose_name_plural} match {quoted(value)}: {named}. Use one key.",
            "ambiguous",
        )

    def search(self, given: str) -> tuple[list[Any], bool]:
        """What the search box of the admin finds among the choices, and whether there is more."""
        model_admin = self.rights.model_admin(self.model)
        request = self.rights.request
        if model_admin is None or not model_admin.has_view_permission(request):
            return [], False
        names = self.searched(model_admin.get_search_fields(request))
        if not (names and is_searchable(given)):
            return [], False
        # The registered instance is everybody's.
        searcher = copy(model_admin)
        searcher.get_search_fields = lambda request: names
        rows, _ = searcher.get_search_results(request, searcher.get_queryset(request), given)
        # With `pk__in` no row comes twice, so it does not matter whether the search says it may.
        (key,) = key_parts(self.model)
        visible = guarded(self.rights.rows(self.model), policy_of(self.model, [key.attname]))
        choices = (
            self.field.queryset.filter(Q(("pk__in", rows.values("pk"))))
            .filter(Q(("pk__in", visible.values(key.attname))))
            .order_by("pk")
        )
        most = MOST_JUDGED if self.rights.judges_objects(self.model) else MOST_NAMED
        with limited(choices.db):
            found = list(choices[: most + 1])
        return found[:most], len(found) > most

    def searched(self, names: Sequence[str]) -> list[str]:
        """Those of the admin's search fields that this caller may search by.

        What is found, or not found, tells about a column as much as a filter does.
        """
        reach = reach_of(self.rights, self.rights.exposed.exposures[self.model])
        usable = {**reach.tables[FILTER], **reach.tables[SEARCH]}
        return [name for name in names if is_usable(name.lstrip("^=@"), usable)]


def is_usable(path: str, usable: Mapping[str, Path]) -> bool:
    """Whether it is one of those paths, or one with an operator behind it."""
    if path in ("pk", *usable):
        return True
    head, _, operator = path.rpartition(LOOKUP_SEP)
    field = usable[head].field if head in usable else None
    return field is not None and not field.is_relation and operator in TEXT


def is_searchable(given: str) -> bool:
    """Whether it is a text that every database takes, and of a size that can be searched for."""
    try:
        words = text(given).split()
    except ValueError:
        return False
    return 0 < len(words) <= MAX_WORDS and len(given) <= TERM
