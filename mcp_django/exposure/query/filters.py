"""Django's own lookups, from JSON: what a call filters, excludes and searches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from functools import partial
from typing import Any

from django.apps import apps
from django.db import connections
from django.db.models import DateField, Q
from django.db.models.constants import LOOKUP_SEP
from msgspec import UNSET

from mcp_django.exceptions import QueryError, unknown
from mcp_django.exposure import fields
from mcp_django.exposure.fields import (
    DAY_OPERATORS,
    OPERATORS,
    PART_OPERATORS,
    TRANSFORMS,
    choices_of,
    kind_of,
    knows_zones,
    operators_of,
    transforms_of,
)
from mcp_django.exposure.paths import FILTER, Path
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import AccessiblePaths, Condition, conjunction, filtered_kind
from mcp_django.exposure.query.arguments import LONGEST_LOOKUP, Filters, lookups_of
from mcp_django.exposure.query.paths_by_rule import Rule
from mcp_django.exposure.query.related_names import RelatedNames

MAX_CONDITIONS = 32
MAX_ALTERNATIVES = 8
MAX_WORDS = 8
#: What callers write for "not equal" and "not in", and what to exclude instead.
NEGATIONS = {"ne": "", "neq": "", "not": "", "not_in": "__in", "nin": "__in"}


@dataclass(frozen=True, kw_only=True)
class ParsedFilters:
    """What filters, exclude, any_of and search say, understood."""

    filters: Sequence[Condition] = ()
    exclude: Sequence[Condition] = ()
    any_of: Sequence[Sequence[Condition]] = ()
    #: For each word the conditions of which one must hold.
    search: Sequence[Sequence[Condition]] = ()

    @property
    def is_conjunction(self) -> bool:
        return not (self.exclude or self.any_of or self.search)

    def build(self, rights: Rights, access: AccessiblePaths) -> Q:
        all_of = partial(conjunction, rights, access)
        parts = [all_of(self.filters)]
        if self.exclude:
            parts.append(~all_of(self.exclude))
        if self.any_of:
            parts.append(any_of(all_of(conditions) for conditions in self.any_of))
        # No column can hold this word: nothing is found.
        parts += [
            any_of(all_of([condition]) for condition in word) if word else Q(pk__in=[])
            for word in self.search
        ]
        return Q(*(part for part in parts if part))


def any_of(parts: Iterable[Q]) -> Q:
    return Q(*parts, _connector=Q.OR)


def parse(rights: Rights, access: AccessiblePaths, asked: Filters, *, using: str) -> ParsedFilters:
    """Raises QueryError for anything that the caller may not ask or that means nothing."""
    parser, parsed = FilterParser(rights, access, using=using), dict[str, Any]()
    for part in dataclass_fields(ParsedFilters):
        value = getattr(asked, part.name)
        if value is not UNSET:
            parsed[part.name] = getattr(parser, part.name)(value, what=part.name)
    return ParsedFilters(**parsed)


def example_lookup(access: AccessiblePaths) -> str:
    names = access.names(FILTER)
    return f', such as {{"{names[0]}__isnull": false}}' if names else ""


def paths_behind(rights: Rights, access: AccessiblePaths, path: Path) -> list[str]:
    """The listed ones first, then those by rule."""
    listed = [name for name in access.names(FILTER) if name.startswith(path.text + LOOKUP_SEP)]
    return list(dict.fromkeys([*listed, *Rule(rights, access).names_behind(path.text)]))


def split(rights: Rights, access: AccessiblePaths, key: Any, what: str) -> tuple[Path, str, str]:
    """The longest declared path that starts `key`; what is left must be in our own tables.

    A caller's text is only ever the key of a dictionary: Django never parses it.
    """
    table = access.tables[FILTER]
    if not isinstance(key, str) or len(key) > LONGEST_LOOKUP:
        raise QueryError(f"A lookup in {what} is a text of at most {LONGEST_LOOKUP} characters.")
    names = key.split(LOOKUP_SEP)
    for size in range(len(names), 0, -1):
        path = table.get(LOOKUP_SEP.join(names[:size]))
        if path is not None:
            kind = filtered_kind(access, path)
            found = suffix(kind, names[size:])
            if found is not None:
                return path, *found
            # It does not depend on what the caller tried behind the path.
            operators = ", ".join(offered(kind, names[size]))
            sentence = f"{what}: {path.text} has the operators {operators}."
            if through := paths_behind(rights, access, path):
                sentence += f" Behind it there is: {', '.join(through[:30])}."
            raise QueryError(sentence)
    raise unknown(key, access.names(FILTER), what)


def offered(kind: str, part: str) -> Sequence[str]:
    """What could follow a path of this kind, or a part of a date."""
    if part == "date" and kind == "datetime":
        return [f"date__{operator}" for operator in DAY_OPERATORS]
    if part in TRANSFORMS.get(kind, ()):
        return [f"{part}__{operator}" for operator in PART_OPERATORS]
    return operators_of(kind)


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


class FilterParser:
    """Parses what one call says of the records that it means: each member of `ParsedFilters` by
    the method of its name.
    """

    def __init__(self, rights: Rights, access: AccessiblePaths, *, using: str) -> None:
        self.rights = rights
        self.access = access
        self.related = RelatedNames(rights)
        self.using = using

    def conditions(self, given: Any, *, what: str) -> list[Condition]:
        if not isinstance(given, Mapping):
            example = example_lookup(self.access)
            raise QueryError(f"{what} takes an object of lookups and values{example}.")
        conditions = list(lookups_of(given))
        if len(conditions) > MAX_CONDITIONS:
            raise QueryError(
                f"At most {MAX_CONDITIONS} conditions in {what}; this has {len(conditions)}."
            )
        return [self.condition(key, value, what=what) for key, value in conditions]

    filters = exclude = conditions

    def condition(self, key: Any, value: Any, *, what: str) -> Condition:
        lookup = self.access.lookups.get(key) if isinstance(key, str) else None
        if lookup is None:
            try:
                lookup = split(self.rights, self.access, key, what)
            except QueryError as error:
                hint = self._negation_hint(key, value, what=what)
                raise QueryError(f"{error}{hint}") from None
            self.access.lookups[key] = lookup
        path, transform, operator = lookup
        if value is None and operator == "exact" and not transform:
            operator, value = "isnull", True
        try:
            if transform == "date":
                value = fields.convert(DateField(), operator, value, using=self.using)
            elif transform:
                value = self._part(path, transform, operator, value)
            else:
                value = self.key_or_value(path, operator, value)
        except QueryError as error:
            through = paths_behind(self.rights, self.access, path)
            # For who wrote what a related record is called in place of its key.
            hint = f" It takes keys; by value: {', '.join(through[:8])}." if through else ""
            raise QueryError(f"{what}: {key}: {error}{hint}") from None
        return Condition(path=path, transform=transform, operator=operator, value=value)

    def _negation_hint(self, key: Any, value: Any, *, what: str) -> str:
        """For who wrote "not equal", which Django spells as an exclusion."""
        name, _, negation = key.rpartition(LOOKUP_SEP) if isinstance(key, str) else ("", "", "")
        if negation not in NEGATIONS:
            return ""
        lookup = name + NEGATIONS[negation]
        try:
            split(self.rights, self.access, lookup, what)
        except QueryError:
            return ""
        if what != "filters":
            return " No operator negates: exclude leaves records out."
        try:
            call = json.dumps({"exclude": {lookup: value}})
        except (TypeError, ValueError, RecursionError):
            call = ""
        shown = call if 0 < len(call) <= LONGEST_LOOKUP else f'{{"exclude": {{"{lookup}": ...}}}}'
        return f" To leave records out, call with {shown}."

    def _part(self, path: Path, transform: str, operator: str, value: Any) -> Any:
        """A year is a range of instants. Other parts are worked out in the database."""
        kind, is_range = kind_of(path.field), transform == "year" and operator != "in"
        if kind == "datetime" and not is_range and not knows_zones(self.using):
            raise QueryError(
                f"the database of this site has no time zone tables, so it knows no {transform} "
                f'of a point in time. Name days: {{"{path.text}__date__range": '
                '["2026-01-01", "2026-01-31"]}.'
            )
        low, high = TRANSFORMS[kind][transform]
        if operator not in ("in", "range"):
            return fields.integer(value, low=low, high=high)
        return [fields.integer(item, low=low, high=high) for item in fields.items(operator, value)]

    def key_or_value(self, path: Path, operator: str, value: Any) -> Any:
        """The value of a column. What is no key of a related record may be what it is called."""
        field = path.hops[-1].model._meta.pk if path.field is None else path.field
        try:
            return fields.convert(field, operator, value, using=self.using)
        except QueryError:
            named = self.related.value(path, operator, value, using=self.using)
            if named is None:
                raise
            return named

    def any_of(self, given: Any, *, what: str) -> list[list[Condition]]:
        if not isinstance(given, list | tuple) or not 0 < len(given) <= MAX_ALTERNATIVES:
            example = example_lookup(self.access)
            raise QueryError(f"{what} takes a list of 1 to {MAX_ALTERNATIVES} objects{example}.")
        alternatives = [self.conditions(item, what=what) for item in given]
        if not all(alternatives):
            raise QueryError(f"An empty object in {what} would match everything. Take it out.")
        return alternatives

    def search(self, term: Any, *, what: str) -> list[list[Condition]]:
        """Every word in any declared column, as in the admin."""
        try:
            words = fields.bounded_text(term).split()
        except QueryError as error:
            raise QueryError(f"{what}: {error}") from None
        if len(words) > MAX_WORDS:
            raise QueryError(f"{what} takes at most {MAX_WORDS} words; this has {len(words)}.")
        if not self.access.search:
            example = example_lookup(self.access)
            raise QueryError(f"{self.access.exposure.label} has no search; use filters{example}.")
        return [list(self.places_of(word)) for word in words]

    def places_of(self, word: str) -> Iterator[Condition]:
        has_full_text = connections[self.using].vendor == "postgresql"
        has_full_text = has_full_text and apps.is_installed("django.contrib.postgres")
        for path, operator in self.access.search:
            is_text = kind_of(path.field) == "text"
            if operator == "search" and not (is_text and has_full_text):
                operator = "icontains"
            # A number contains a word, too, as in the admin. A foreign key does not.
            if is_text or (operator != "iexact" and path.field.get_lookup(operator)):
                yield Condition(path=path, operator=operator, value=word)
                continue
            try:
                value = fields.scalar(path.field, word, using=self.using)
            except QueryError:  # not a number, so not in a column of numbers
                continue
            yield Condition(path=path, operator="exact", value=value)


# Texts that nothing is exactly equal to.

#: Records that are counted for a caller whose texts find none.
MOST_COUNTED = 100


def note_on_texts(parsed_filters: ParsedFilters, count: Callable[..., int]) -> str:
    """How many records there are if the texts of `filters` only have to occur.

    `count` counts what other filters find, and is called once at most. Empty where that changes
    nothing, or takes too long.
    """
    filters = parsed_filters.filters
    exact = [one for one in filters if is_exact_text(one)]
    if not exact:
        return ""
    loose = [replace(one, operator="icontains") if one in exact else one for one in filters]
    try:
        number = count(replace(parsed_filters, filters=loose), most=MOST_COUNTED)
    except QueryError:
        return ""
    if not number:
        return ""
    lookups = " and ".join(f"{one.path.text}__icontains" for one in exact)
    many = f"more than {MOST_COUNTED}" if number > MOST_COUNTED else number
    are = "is 1 record" if number == 1 else f"are {many} records"
    return f"Texts compare exactly. With {lookups} there {are}."


def is_exact_text(condition: Condition) -> bool:
    """Whether it compares a text that may occur within others. Fields of the site's own may
    store it in another form."""
    field = condition.path.field
    return (
        condition.operator == "exact"
        and not condition.transform
        and bool(condition.value)
        and kind_of(field) == "text"
        and not choices_of(field)
        and not hasattr(field, "from_db_value")
    )
