"""Records by their keys: which are there for a caller, as objects, with labels and files."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.core.files.storage import FileSystemStorage
from django.db.models import FileField, Model, Q

from mcp_django.exceptions import NotFound, QueryError
from mcp_django.exposure.fields import quoted
from mcp_django.exposure.limits import limited
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import FILTER, INCLUDE, RETURN, parse_key, spell_key
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import AccessiblePaths, allowed_paths, home_of, policy_of
from mcp_django.exposure.query.aggregates import floor_of
from mcp_django.exposure.query.computed import computed_columns
from mcp_django.exposure.query.filters import ParsedFilters, any_of
from mcp_django.exposure.query.find import check_shows_records, judge, missing_record, objects_of
from mcp_django.exposure.query.guard import guarded, is_plain
from mcp_django.exposure.query.pagination import parse_order
from mcp_django.exposure.query.search import Search, labels_by_key
from mcp_django.exposure.query.selection import Selection
from mcp_django.exposure.query.serializers import as_text
from mcp_django.exposure.uris import file_uri
from mcp_django.levels import Level
from mcp_django.protocol.content import Annotations, ResourceLink
from mcp_django.templating.fences import fenced_part

# Which records exist for a caller. Only their keys are read.

#: Keys in one query. SQLite nests no more than 1,000 alternatives.
CHUNK = 200


def visible_keys(
    rights: Rights, exposure: ModelExposure, keys: Iterable[tuple[Any, ...]], *, using: str
) -> set[tuple[str, ...]]:
    """The keys, spelled, of those records that `get_record` would find for this caller."""
    model, left = exposure.model, iter(keys)
    names = [part.attname for part in model._meta.pk_fields]
    found: set[tuple[str, ...]] = set()
    while chunk := list(islice(left, CHUNK)):
        there = known_keys(rights, exposure, chunk, using=using)
        if there and rights.checks_rows_one_by_one(model):
            objects = objects_of(rights, model, there, using=using)
            there = [tuple(getattr(one, name) for name in names) for one in objects]
        found.update(spell_key(key) for key in there)
    return found


def visible_objects(
    rights: Rights, exposure: ModelExposure, objects: Iterable[Any], *, using: str
) -> list[Any]:
    """Those of these objects of the model that `get_record` would find for this caller."""
    model, objects = exposure.model, list(objects)
    if is_plain(rights.rows(model).query) and not rights.checks_rows_one_by_one(model):
        return objects
    names = [part.attname for part in model._meta.pk_fields]
    keys = [tuple(getattr(one, name) for name in names) for one in objects]
    visible = visible_keys(rights, exposure, keys, using=using)
    return [one for one, key in zip(objects, keys, strict=True) if spell_key(key) in visible]


def countable(
    rights: Rights, objects: Iterable[Model], *, using: str
) -> dict[type[Model], list[Any]]:
    """The objects that this caller may count, by exposed model. A model with aggregates only is
    left out where the objects are fewer than the smallest group.
    """
    by_model: dict[type[Model], list[Any]] = {}
    for one in objects:
        model: Any = type(one)
        if model not in rights.exposed.exposures:
            model = model._meta.concrete_model
        by_model.setdefault(model, []).append(one)
    visible = {}
    for model, rows in by_model.items():
        if rights.level(model) >= Level.AGGREGATES:
            exposure = rights.exposed.exposures[model]
            seen = visible_objects(rights, exposure, rows, using=using)
            if not exposure.aggregates_only or len(seen) >= floor_of(exposure):
                visible[model] = seen
    return visible


def known_keys(
    rights: Rights, exposure: ModelExposure, keys: Sequence[tuple[Any, ...]], *, using: str
) -> list[tuple[Any, ...]]:
    """Those that the site's rows have. Guarded, since these rows may be cut or combined."""
    model = exposure.model
    names = [part.attname for part in model._meta.pk_fields]
    rows = guarded(rights.rows(model).using(using), policy_of(model, names))
    if len(names) == 1:
        has_key = Q((f"{names[0]}__in", [value for (value,) in keys]))
    else:
        has_key = any_of(Q(*zip(names, key, strict=True)) for key in keys)
    with limited(using):
        return list(rows.filter(has_key).values_list(*names))


# Records as objects, for code of the admin that needs them. They never leave `exposure`.

#: Records that one call may name or find in order to change them.
MOST_OBJECTS = 1000
#: Missing keys that an error names.
MOST_MISSING = 10


def find_object(rights: Rights, exposure: ModelExposure, pk: Any, *, using: str) -> Any:
    """The record with this key. Raises NotFound in the words of `get_record`."""
    objects = find_objects(rights, exposure, [pk], using=using)
    if not objects:
        raise missing_record(exposure, pk)
    return objects[0]


def find_all(
    rights: Rights, exposure: ModelExposure, pks: Sequence[Any], *, using: str
) -> list[Any]:
    """Return the records in the order of their keys, as the order of the database may depend on
    what the caller does not see. Raises NotFound, with the missing keys, unless there are all.
    """
    if not 0 < len(pks) <= MOST_OBJECTS:
        raise QueryError(f"Name between 1 and {MOST_OBJECTS} records; these are {len(pks)}.")
    objects = find_objects(rights, exposure, pks, using=using)
    found = {str(one.pk): one for one in objects}
    missing = [pk for pk in pks if str(pk) not in found]
    if missing:
        keys = ", ".join(quoted(pk) for pk in missing[:MOST_MISSING])
        more = f" and {len(missing) - MOST_MISSING} more" if missing[MOST_MISSING:] else ""
        raise NotFound(
            f"There is no {exposure.label} with these keys: {keys}{more}. Nothing was done."
        )
    return [found[str(pk)] for pk in pks]


def find_objects(
    rights: Rights, exposure: ModelExposure, pks: Sequence[Any], *, using: str
) -> list[Any]:
    """Those of the records that this caller may see."""
    check_shows_records(exposure)
    allowed_paths(rights, exposure)  # raises NotFound where there is no such model
    keys = []
    for pk in pks:
        with suppress(QueryError):
            keys.append(parse_key(exposure.model, pk, using=using))
    query = rights.rows(exposure.model).query
    if query.is_sliced or query.combinator:
        # Of these `objects_of` looks among all there are.
        keys = known_keys(rights, exposure, keys, using=using)
    return objects_of(rights, exposure.model, keys, using=using)


def find_keys(
    rights: Rights, access: AccessiblePaths, wanted: ParsedFilters, *, using: str
) -> list[Any]:
    """Keys of the records that filters leave, in the order of the model. Raises QueryError when
    there are too many.
    """
    check_shows_records(access.exposure)
    names = [part.attname for part in access.keys]
    search = Search(
        rights=rights,
        access=access,
        selection=Selection(lookups=dict.fromkeys(names), is_for_one_call=True),
        order=parse_order(access, None),
        parsed_filters=wanted,
        using=using,
    )
    rows = search.rows(None, most=MOST_OBJECTS)
    if rows.has_more:
        raise QueryError(
            f"These filters find more than {MOST_OBJECTS} records, which is the most for one "
            "call. Nothing was done. Narrow them."
        )
    keys = list(zip(*(rows.columns[name] for name in names), strict=True))
    if rights.checks_rows_one_by_one(access.model):
        verdicts = judge(search, rows)
        keys = [key for key, is_visible in zip(keys, verdicts, strict=True) if is_visible]
    return [key[0] if len(names) == 1 else list(key) for key in keys]


# What goes along with a record: links to its files, and when it was last changed.


def file_links(
    rights: Rights, exposure: ModelExposure, pk: Any, record: Mapping[str, Any]
) -> list[ResourceLink]:
    """A link to each file that a record shows."""
    found = []
    for field in allowed_paths(rights, exposure).files:
        stored = record.get(field.name)
        if stored:
            found.append(
                ResourceLink(
                    uri=file_uri(exposure.label, pk, field.name),
                    name=PurePosixPath(stored).name,
                    title=as_text(field.verbose_name),
                    mime_type=mimetypes.guess_type(stored)[0] or "application/octet-stream",
                    size=size_of(field, stored),
                    annotations=changes_of(exposure, record),
                )
            )
    return found


def size_of(field: FileField, stored: str) -> int | None:
    """The size of a file where asking costs no request to another machine."""
    if not isinstance(field.storage, FileSystemStorage):
        return None
    try:
        return field.storage.size(stored)
    except (OSError, SuspiciousOperation):
        return None


def changes_of(exposure: ModelExposure, record: Mapping[str, Any]) -> Annotations | None:
    """When the record was last changed, where the exposure names a field that tells."""
    changed = record.get(exposure.modified_field) if exposure.modified_field else None
    return Annotations(last_modified=changed) if isinstance(changed, str) else None


def shows_records(rights: Rights, model: type[Model]) -> bool:
    """Whether records of a model are shown to this caller at all."""
    return rights.level(model) >= Level.READ


def shows_column(
    rights: Rights, model: type[Model], name: str, *, uses: Sequence[str] = (RETURN,)
) -> bool:
    """Whether records show this caller a column. Keys are shown with every record."""
    return name in ("pk", *(part.name for part in model._meta.pk_fields)) or (
        shows_records(rights, model)
        and any(
            name in allowed_paths(rights, rights.exposed.exposures[model]).tables[use]
            for use in uses
        )
    )


def can_find_out(rights: Rights, model: type[Model], name: str) -> bool:
    """Whether records show this caller a field, or can be filtered by it, which tells as much."""
    return shows_column(rights, model, name, uses=(RETURN, INCLUDE, FILTER)) or (
        shows_records(rights, model)
        and name in computed_columns(rights, rights.exposed.exposures[model])
    )


def visible_labels(rights: Rights, model: type[Model], keys: Iterable[Any]) -> dict[Any, str]:
    """The labels of those records that this caller may see, by primary key. They are empty where
    the exposure names no label, or one that this caller may not see. They are read where records
    are written: a replica knows of nothing yet.
    """
    wanted = list(keys)
    if not wanted or not shows_records(rights, model):
        return {}
    (key,) = model._meta.pk_fields
    columns = [one.attname for one in label_fields(rights, model)]
    using = home_of(rights, model)
    labels = labels_by_key(rights.rows(model).using(using), key.attname, columns, wanted)
    if not rights.checks_rows_one_by_one(model):
        return labels
    objects = objects_of(rights, model, [(one,) for one in labels], using=using)
    return {one.pk: labels[one.pk] for one in objects}


def fenced_labels_of(rights: Rights, model: type[Model], keys: Iterable[Any]) -> dict[Any, str]:
    """The same for the answer of a tool, in fences where strangers wrote a part of the labels."""
    labels = visible_labels(rights, model, keys)
    if not labels or not has_untrusted_labels(rights, model):
        return labels
    return {pk: fenced_part(text, rights.mark) if text else "" for pk, text in labels.items()}


def has_untrusted_labels(rights: Rights, model: type[Model]) -> bool:
    """Whether strangers wrote a part of the labels that this caller sees."""
    names = {one.name for one in label_fields(rights, model)}
    return not rights.untrusted(model).isdisjoint(names)


def label_fields(rights: Rights, model: type[Model]) -> list[Any]:
    """The columns of the label, if this caller may see all of them."""
    access = allowed_paths(rights, rights.exposed.exposures[model])
    return [path.field for path in access.label_of(model)]
