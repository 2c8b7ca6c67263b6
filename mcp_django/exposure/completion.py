"""Values for the variables of resource templates, as far as this caller's rights reach."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from mcp_django.exceptions import NotFound, QueryError
from mcp_django.exposure import completion_queries as queries
from mcp_django.exposure.describe import operators
from mcp_django.exposure.guard import FILTER, ORDER, RETURN
from mcp_django.exposure.links import file_fields
from mcp_django.exposure.operators import kind_of
from mcp_django.exposure.paths import Path
from mcp_django.exposure.query import split
from mcp_django.exposure.reach import Reach, reach_of
from mcp_django.exposure.resources import model_templates
from mcp_django.exposure.serializers import as_text
from mcp_django.exposure.uris import COLLECTION, DEFINITION, FILE, OBJECT

if TYPE_CHECKING:
    from mcp_django.exposure.code_resources import CodeResource
    from mcp_django.exposure.options import ModelExposure
    from mcp_django.exposure.permissions import Rights

#: A value, and the texts that it is found by: itself, a label, a name.
Candidate: TypeAlias = tuple[str, Sequence[str]]

TEMPLATES = {one.text: one for one in (DEFINITION, COLLECTION, OBJECT, FILE)}
#: Operators that compare by size: no value that is there goes on from another.
COMPARING = frozenset({"gt", "gte", "lt", "lte", "range"})
BOOLEANS = ("true", "false")


@dataclass(frozen=True, kw_only=True)
class Completion:
    """Values, best first. `total` counts them all where the search did not stop early."""

    values: Sequence[str]
    total: int | None = None
    #: Whether there are values beyond these.
    has_more: bool = False

    @classmethod
    def whole(cls, values: Iterable[str]) -> Completion:
        found = list(values)
        return cls(values=found, total=len(found))


def complete_resource(
    rights: Rights, uri: str, argument: str, value: str, *, given: Mapping[str, str]
) -> Completion | None:
    """Values of a template's variable that go on from `value`, best first.

    `given` holds the variables that were chosen before. None for a template or a variable that
    does not exist for this caller.
    """
    if (own := rights.registry.resources.get(uri)) is not None:
        return complete_own(rights, own, argument, value, given=given)
    template = TEMPLATES.get(uri)
    if template is None or uri not in {one.uri_template for one in model_templates(rights)}:
        return None
    if argument == "model":
        return Completion.whole(ranked_by(value, models(rights)))
    try:
        exposure = rights.exposure(given.get("model"))
    except NotFound:
        return Completion.whole(()) if argument in template.variables else None
    if argument in template.variables:
        offer = None if exposure.aggregates_only else OFFERS.get(argument)
        return Completion.whole(()) if offer is None else offer(rights, exposure, value)
    return filter_values(rights, exposure, argument, value) if template is COLLECTION else None


def complete_own(
    rights: Rights, resource: CodeResource, argument: str, value: str, *, given: Mapping[str, str]
) -> Completion | None:
    if not resource.exists_for(rights):
        return None
    offered = resource.offered(rights, argument, value, given=given)
    return None if offered is None else Completion.whole(ranked(value, offered))


def partly(values: Sequence[str], *, has_more: bool) -> Completion:
    total = None if has_more else len(values)
    return Completion(values=values, total=total, has_more=has_more)


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


def models(rights: Rights) -> list[Candidate]:
    return [
        (one.label, (one.label, as_text(one.model._meta.verbose_name_plural)))
        for one in rights.exposures()
    ]


def keys(rights: Rights, exposure: ModelExposure, value: str) -> Completion:
    """Keys of visible records that are found by their key or by what stands for them."""
    found = queries.keys_of(rights, exposure, value)
    names = ranked_by(value, found.candidates)
    # The database may see a likeness that lower() does not.
    known = set(names)
    names += [name for name, _ in found.candidates if name not in known]
    return partly(names, has_more=found.has_more)


def files(rights: Rights, exposure: ModelExposure, value: str) -> Completion:
    return Completion.whole(ranked(value, [one.name for one in file_fields(rights, exposure)]))


def orders(rights: Rights, exposure: ModelExposure, value: str) -> Completion:
    reach = reach_of(rights, exposure)
    names = dict.fromkeys([*reach.names(ORDER), *(path.text for path in reach.key_paths)])
    return last_of_list(value, [sign + name for name in names for sign in ("", "-")])


def fields(rights: Rights, exposure: ModelExposure, value: str) -> Completion:
    return last_of_list(value, reach_of(rights, exposure).names(RETURN))


def last_of_list(value: str, names: Sequence[str]) -> Completion:
    """Names for the end of a list with commas, behind what it has already."""
    head, comma, last = value.rpartition(",")
    taken = {name.removeprefix("-") for name in head.split(",")}
    if not taken <= {"", *(name.removeprefix("-") for name in names)}:
        return Completion.whole(())
    left = [name for name in names if name.removeprefix("-") not in taken]
    return Completion.whole(f"{head}{comma}{name}" for name in ranked(last, left))


def filter_names(rights: Rights, exposure: ModelExposure, value: str) -> Completion:
    """Paths; for one that is written out, what may follow it."""
    reach = reach_of(rights, exposure)
    found = []
    for path in reach.paths[FILTER]:
        found.append(path.text)
        if value.lower().startswith(path.text.lower()):
            found += [f"{path.text}__{one}" for one in operators(kind_of(path.field))]
    return Completion.whole(ranked(value, dict.fromkeys(found)))


OFFERS: dict[str, Callable[[Rights, ModelExposure, str], Completion]] = {
    "pk": keys,
    "field": files,
    "order_by": orders,
    "fields": fields,
    "filters": filter_names,
}


def filter_values(
    rights: Rights, exposure: ModelExposure, lookup: str, value: str
) -> Completion | None:
    """Values of a filter. None for a lookup that this caller cannot use."""
    reach = reach_of(rights, exposure)
    if exposure.aggregates_only:  # its collection cannot be read
        return None
    try:
        path, transform, operator = split(reach, lookup, "filters")
    except QueryError:
        return None
    if operator == "isnull":
        return Completion.whole(ranked(value, BOOLEANS))
    if transform or operator in COMPARING:
        return Completion.whole(())
    return path_values(rights, reach, path, value)


def path_values(rights: Rights, reach: Reach, path: Path, value: str) -> Completion:
    kind = kind_of(path.field)
    if kind == "key":
        target = target_exposure(rights, path)
        return Completion.whole(()) if target is None else keys(rights, target, value)
    if path.field.choices:
        pairs = [(str(key), (str(key), as_text(label))) for key, label in path.field.flatchoices]
        return Completion.whole(ranked_by(value, pairs))
    if kind == "boolean":
        return Completion.whole(ranked(value, BOOLEANS))
    values, has_more = queries.distinct_values(rights, reach, path, value)
    return partly(ranked(value, values), has_more=has_more)


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
