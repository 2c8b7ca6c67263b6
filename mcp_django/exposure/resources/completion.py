"""Values for the variables of resource templates, within the rights of the caller."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from mcp_django.exceptions import NotFound, QueryError
from mcp_django.exposure.fields import choices_of, kind_of, operators_of
from mcp_django.exposure.paths import FILTER, ORDER, RETURN, Path
from mcp_django.exposure.query import completion as queries
from mcp_django.exposure.query.access import AccessiblePaths, allowed_paths
from mcp_django.exposure.query.filters import split
from mcp_django.exposure.query.paths_by_rule import paths_of_call
from mcp_django.exposure.query.serializers import as_text
from mcp_django.exposure.resources.models import model_templates
from mcp_django.exposure.uris import COLLECTION, DEFINITION, FILE, OBJECT
from mcp_django.protocol.results import CompletionResult

if TYPE_CHECKING:
    from mcp_django.exposure.options import ModelExposure
    from mcp_django.exposure.permissions import Rights

#: A value, and the texts that it is found by, such as a label.
Candidate: TypeAlias = tuple[str, Sequence[str]]

TEMPLATES = {one.text: one for one in (DEFINITION, COLLECTION, OBJECT, FILE)}
#: Operators that compare by size: the values of rows are no help.
COMPARING = frozenset({"gt", "gte", "lt", "lte", "range"})
BOOLEANS = ("true", "false")


def offer(values: Iterable[str], *, has_more: bool = False) -> CompletionResult:
    """Values, best first, counted where the search did not stop early: then there are more."""
    offered = list(values)
    total = None if has_more else len(offered)
    return CompletionResult(values=offered, total=total, has_more=has_more)


def complete_resource(
    rights: Rights, uri: str, argument: str, value: str, *, given: Mapping[str, str]
) -> CompletionResult | None:
    """Values of a variable of a template that match `value`, best first.

    `given` holds the variables that were chosen before. None for a template or a variable that
    does not exist for this caller.
    """
    if (own := rights.registry.resources.get(uri)) is not None:
        if not own.exists_for(rights):
            return None
        offered = own.offered(rights, argument, value, given=given)
        return None if offered is None else offer(ranked(value, offered))
    template = TEMPLATES.get(uri)
    if template is None or uri not in {one.uri_template for one in model_templates(rights)}:
        return None
    if argument == "model":
        models = [
            (one.label, (one.label, as_text(one.model._meta.verbose_name_plural)))
            for one in rights.exposures()
        ]
        return offer(ranked_by(value, models))
    try:
        exposure = rights.exposure(given.get("model"))
    except NotFound:
        return offer(()) if argument in template.variables else None
    if argument in template.variables:
        return complete_variable(rights, exposure, argument, value)
    return filter_values(rights, exposure, argument, value) if template is COLLECTION else None


# Ranks


def ranked(value: str, candidates: Iterable[str]) -> list[str]:
    """Those that contain the value: equal, then by beginning, word beginning, and place."""
    return ranked_by(value, ((one, (one,)) for one in sorted(candidates)))


def ranked_by(value: str, candidates: Iterable[Candidate]) -> list[str]:
    """The same for values that are found by other texts, too; equal ranks stay in order."""
    text = value.lower()
    found = [(min(rank(text, one) for one in texts), name) for name, texts in candidates]
    return [name for place, name in sorted(found, key=lambda one: one[0]) if place < ABSENT]


#: The rank of what does not contain the value at all.
ABSENT = 4


def rank(text: str, candidate: str) -> int:
    found = candidate.lower()
    if not found.startswith(text):
        if text not in found:
            return ABSENT
        return 2 if re.search(rf"[\W_]{re.escape(text)}", found) else 3
    return 0 if found == text else 1


# What each variable offers


def keys(rights: Rights, exposure: ModelExposure, value: str) -> CompletionResult:
    """Keys of visible records that are found by their key or by what stands for them."""
    candidates, has_more = queries.keys_of(rights, exposure, value)
    # The database may match more than lower() does.
    names = dict.fromkeys((*ranked_by(value, candidates.items()), *candidates))
    return offer(names, has_more=has_more)


def complete_variable(
    rights: Rights, exposure: ModelExposure, variable: str, value: str
) -> CompletionResult:
    if exposure.aggregates_only:
        return offer(())
    access = allowed_paths(rights, exposure)
    match variable:
        case "pk":
            return keys(rights, exposure, value)
        case "field":
            return offer(ranked(value, [field.name for field in access.files]))
        case "order_by":
            key_paths = (path.text for path in access.key_paths)
            paths = dict.fromkeys([*access.names(ORDER), *key_paths])
            return last_of_list(value, [sign + path for path in paths for sign in ("", "-")])
        case "fields":
            return last_of_list(value, access.names(RETURN))
        case "filters":
            return offer(ranked(value, dict.fromkeys(filter_names(access, value))))
    return offer(())


def last_of_list(value: str, names: Sequence[str]) -> CompletionResult:
    """Names for the end of a list with commas, without those that it has already."""
    head, comma, last = value.rpartition(",")
    taken = {name.removeprefix("-") for name in head.split(",")}
    if not taken <= {"", *(name.removeprefix("-") for name in names)}:
        return offer(())
    left = [name for name in names if name.removeprefix("-") not in taken]
    return offer(f"{head}{comma}{name}" for name in ranked(last, left))


def filter_names(access: AccessiblePaths, value: str) -> Iterator[str]:
    """Paths; for one that was typed in full, also its operators."""
    for path in access.paths[FILTER]:
        yield path.text
        if value.lower().startswith(path.text.lower()):
            yield from (f"{path.text}__{name}" for name in operators_of(kind_of(path.field)))


def filter_values(
    rights: Rights, exposure: ModelExposure, lookup: str, value: str
) -> CompletionResult | None:
    """Values of a filter. None for a lookup that this caller cannot use."""
    access = paths_of_call(rights, exposure, {"filters": [lookup]})
    if exposure.aggregates_only:  # its collection cannot be read
        return None
    try:
        path, transform, operator = split(rights, access, lookup, "filters")
    except QueryError:
        return None
    if operator == "isnull":
        return offer(ranked(value, BOOLEANS))
    if transform or operator in COMPARING:
        return offer(())
    return path_values(rights, access, path, value)


def path_values(
    rights: Rights, access: AccessiblePaths, path: Path, value: str
) -> CompletionResult:
    kind = kind_of(path.field)
    if kind == "key":
        target = target_exposure(rights, path)
        return offer(()) if target is None else keys(rights, target, value)
    if choices := choices_of(path.field):
        pairs = [(str(key), (str(key), as_text(label))) for key, label in choices]
        return offer(ranked_by(value, pairs))
    if kind == "boolean":
        return offer(ranked(value, BOOLEANS))
    values, has_more = queries.distinct_values(rights, access, path, value)
    return offer(ranked(value, values), has_more=has_more)


def target_exposure(rights: Rights, path: Path) -> ModelExposure | None:
    """The model whose keys a path holds, if this caller sees it and its key is one column."""
    field = path.field
    if field is not None and not field.target_field.primary_key:
        return None
    model = path.hops[-1].model if field is None else field.related_model
    exposure = rights.exposed.exposures.get(model)
    if exposure is None or exposure.aggregates_only or not rights.may_view(model):
        return None
    return None if len(model._meta.pk_fields) > 1 else exposure
