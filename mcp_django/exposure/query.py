"""Django's own lookups, from JSON: what a call filters, excludes and searches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import DateField, Q
from django.db.models.constants import LOOKUP_SEP

from mcp_django.exceptions import QueryError, unknown
from mcp_django.exposure import values
from mcp_django.exposure.guard import FILTER
from mcp_django.exposure.operators import (
    DAY_OPERATORS,
    OPERATORS,
    PART_OPERATORS,
    TRANSFORMS,
    kind_of,
    transforms_of,
)
from mcp_django.exposure.paths import Path
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.reach import Reach
from mcp_django.exposure.relations import Condition, conjunction

MAX_CONDITIONS = 32
MAX_ALTERNATIVES = 8
MAX_WORDS = 8
LONGEST_LOOKUP = 200


def restrictions(
    rights: Rights, reach: Reach, arguments: Mapping[str, Any], *, using: str
) -> list[Q]:
    """What filters, exclude, any_of and search leave, as conditions that all hold."""
    found: list[Q] = []
    given = arguments.get("filters")
    if given is not None:
        conditions = parse_conditions(reach, given, using=using, what="filters")
        found.append(conjunction(rights, reach, conditions))
    given = arguments.get("exclude")
    if given is not None:
        conditions = parse_conditions(reach, given, using=using, what="exclude")
        if conditions:
            found.append(~conjunction(rights, reach, conditions))
    given = arguments.get("any_of")
    if given is not None:
        found.append(alternatives(rights, reach, given, using=using))
    given = arguments.get("search")
    if given is not None:
        found.append(parse_search(rights, reach, given, using=using))
    return found


def parse_conditions(reach: Reach, given: Any, *, using: str, what: str) -> list[Condition]:
    if not isinstance(given, Mapping):
        example = example_lookup(reach)
        raise QueryError(f"{what} takes an object of lookups and values{example}.")
    if len(given) > MAX_CONDITIONS:
        raise QueryError(f"At most {MAX_CONDITIONS} conditions in {what}; this has {len(given)}.")
    return [
        parse_condition(reach, key, value, using=using, what=what) for key, value in given.items()
    ]


def example_lookup(reach: Reach) -> str:
    names = reach.names(FILTER)
    return f', such as {{"{names[0]}__isnull": false}}' if names else ""


def parse_condition(reach: Reach, key: Any, value: Any, *, using: str, what: str) -> Condition:
    known = reach.lookups.get(key) if isinstance(key, str) else None
    if known is None:
        known = split(reach, key, what)
        reach.lookups[key] = known
    path, transform, operator = known
    try:
        if transform == "date":
            value = values.convert(DateField(), operator, value, using=using)
        elif transform:
            value = part(TRANSFORMS[kind_of(path.field)][transform], operator, value)
        else:
            field = path.hops[-1].model._meta.pk if path.field is None else path.field
            value = values.convert(field, operator, value, using=using)
    except QueryError as error:
        raise QueryError(f"{key}: {error}") from None
    return Condition(path=path, transform=transform, operator=operator, value=value)


def split(reach: Reach, key: Any, what: str) -> tuple[Path, str, str]:
    """The longest declared path that starts `key`; what is left must be in our own tables.

    A caller's text is only ever the key of a dictionary: Django never parses it.
    """
    table = reach.tables[FILTER]
    if not isinstance(key, str) or len(key) > LONGEST_LOOKUP:
        raise QueryError(f"A lookup in {what} is a text of at most {LONGEST_LOOKUP} characters.")
    names = key.split(LOOKUP_SEP)
    for size in range(len(names), 0, -1):
        path = table.get(LOOKUP_SEP.join(names[:size]))
        if path is not None:
            found = suffix(kind_of(path.field), names[size:])
            if found is not None:
                return path, *found
            kind = kind_of(path.field)
            allowed = [*OPERATORS[kind], *transforms_of(kind)]
            raise QueryError(f"{path.text} has the operators {', '.join(allowed)}.")
    raise unknown(key, reach.names(FILTER), what)


def suffix(kind: str, names: list[str]) -> tuple[str, str] | None:
    """Transform and operator, or None for anything that our tables do not have."""
    if not names:
        return "", "exact"
    if len(names) == 1 and names[0] in OPERATORS[kind]:
        return "", names[0]
    operator = names[1] if len(names) > 1 else "exact"
    if len(names) > 2 or names[0] not in transforms_of(kind):
        return None
    allowed = DAY_OPERATORS if names[0] == "date" else PART_OPERATORS
    return (names[0], operator) if operator in allowed else None


def part(bounds: tuple[int, int], operator: str, value: Any) -> Any:
    low, high = bounds
    if operator in ("in", "range"):
        return [values.integer(item, low=low, high=high) for item in values.items(operator, value)]
    return values.integer(value, low=low, high=high)


def alternatives(rights: Rights, reach: Reach, given: Any, *, using: str) -> Q:
    if not isinstance(given, list | tuple) or not 0 < len(given) <= MAX_ALTERNATIVES:
        example = example_lookup(reach)
        raise QueryError(f"any_of takes a list of 1 to {MAX_ALTERNATIVES} objects{example}.")
    either = Q()
    for item in given:
        conditions = parse_conditions(reach, item, using=using, what="any_of")
        if not conditions:
            raise QueryError("An empty object in any_of would match everything. Take it out.")
        either |= conjunction(rights, reach, conditions)
    return either


def parse_search(rights: Rights, reach: Reach, term: Any, *, using: str) -> Q:
    """Every word in any declared column, as in the admin."""
    words = values.short(values.attempt(values.text, term, "text")).split()
    if len(words) > MAX_WORDS:
        raise QueryError(f"search takes at most {MAX_WORDS} words; this has {len(words)}.")
    if not reach.search:
        raise QueryError(
            f"{reach.exposure.label} has no search; use filters{example_lookup(reach)}."
        )
    return Q(*(word_anywhere(rights, reach, word, using=using) for word in words))


def word_anywhere(rights: Rights, reach: Reach, word: str, *, using: str) -> Q:
    either = Q()
    for path, operator in reach.search:
        try:
            if kind_of(path.field) == "text":
                condition = Condition(path=path, operator=operator, value=word)
            else:
                value = values.scalar(path.field, word, using=using)
                condition = Condition(path=path, operator="exact", value=value)
        except QueryError:  # not a number, so not in a column of numbers
            continue
        either |= conjunction(rights, reach, [condition])
    return either or Q(pk__in=[])
