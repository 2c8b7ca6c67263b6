"""What a call of a generic tool says: one struct for each tool, from its JSON to the query.

The annotations are what `tools/list` shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from django.db.models.constants import LOOKUP_SEP
from msgspec import UNSET, Meta, Struct, UnsetType


def about(description: str) -> Any:
    return Meta(description=description)


ModelLabel = Annotated[
    str, about('Label of a model as list_models gives it, such as "shop.order".')
]
Lookups = Annotated[
    dict[str, Any],
    about(
        'Django lookups and values: {"status": "paid", "total__gte": 100, '
        '"customer__country__in": ["FR"]}. Texts compare exactly; else use __iexact or '
        "__icontains. describe_model lists the paths and operators."
    ),
]
Conditions = Annotated[dict[str, Any], about("As in find_records.")]
Alternatives = Annotated[
    list[dict[str, Any]], about("Alternatives: records that match any of these filters.")
]
Words = Annotated[str, about("Words; each must occur in a searchable field.")]
PrimaryKey = Annotated[
    str | int | list[str | int], about("Primary key; a list for a composite key.")
]
Fields = Annotated[list[str], about("Paths to show. Without it, all.")]
Include = Annotated[
    list[str], about("Names out of many_relations: their records come along, some of each.")
]
Values = Annotated[
    dict[str, Any],
    about(
        "Fields and values, as describe_model says. Related records by key, or by a text that "
        'finds one. Files: {"filename": "a.txt", "data": "<base64>"}.'
    ),
]
Inlines = Annotated[
    dict[str, list[dict[str, Any]]],
    about(
        'Rows of the form: {"lines": [{"pk": 5, "quantity": 3}, {"pk": 7, "delete": true}, '
        '{"quantity": 1}]}. Without a pk a row is new.'
    ),
]
DryRun = Annotated[bool, about("Only tell what would change.")]

#: Groups in an answer.
DEFAULT_GROUPS, MOST_GROUPS = 50, 200


def or_default(value: Any, default: Any = None) -> Any:
    """The value of an argument, and the default for one that was left out."""
    return default if value is UNSET else value


LONGEST_LOOKUP = 200
#: Operators in one object. With the length of a path it bounds what a short text can grow to.
MOST_OPERATORS = 32


def lookups_of(given: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """Lookups and values. An object of operators stands for several: {"total": {"gt": 1}} says
    `total__gt`. No column is compared with an object, so one that is too large is no value."""
    for key, value in given.items():
        is_path = isinstance(key, str) and len(key) <= LONGEST_LOOKUP
        has_operators = isinstance(value, Mapping) and 0 < len(value) <= MOST_OPERATORS
        if is_path and has_operators and all(isinstance(name, str) for name in value):
            for operator, operand in value.items():
                yield f"{key}{LOOKUP_SEP}{operator}", operand
        else:
            yield key, value


class ToolArguments(Struct, kw_only=True, forbid_unknown_fields=True):
    """The arguments of one tool. One that a call leaves out is UNSET, or has its default."""


class Filters(ToolArguments):
    """Which records are meant, as the caller wrote it. `query.filters` parses it."""

    filters: Conditions | UnsetType = UNSET
    exclude: Conditions | UnsetType = UNSET
    any_of: Alternatives | UnsetType = UNSET
    search: Words | UnsetType = UNSET


class ListModels(ToolArguments):
    """List the models that you may see, with the number of their records. Start here."""


class DescribeModel(ToolArguments):
    """Describe one model: its fields, types, choices, relations, filters and their operators,
    what it can be ordered by, and an example call. Ask before you filter."""

    model: ModelLabel


class FindRecords(Filters, kw_only=True):
    """Find records of a model with Django's filters, page by page. When next_cursor is not null
    there are more: call again with it and the same query."""

    model: ModelLabel
    # All four again: what is named here alone would come last in the schema.
    filters: Lookups | UnsetType = UNSET
    exclude: Lookups | UnsetType = UNSET
    any_of: Alternatives | UnsetType = UNSET
    search: Words | UnsetType = UNSET
    order_by: Annotated[
        list[str] | UnsetType, about('Paths, with "-" in front for descending.')
    ] = UNSET
    fields: Fields | UnsetType = UNSET
    include: Include | UnsetType = UNSET
    limit: Annotated[int | UnsetType, about("Most records to return.")] = UNSET
    cursor: Annotated[str | UnsetType, about("next_cursor of the page before, same query.")] = (
        UNSET
    )


class GetRecord(ToolArguments):
    """Get one record by its primary key, long texts in full."""

    model: ModelLabel
    pk: PrimaryKey
    fields: Fields | UnsetType = UNSET
    include: Include | UnsetType = UNSET


class AggregateRecords(Filters, kw_only=True):
    """Count, add up and average records, by group. describe_model says what each field takes. Use
    it in place of reading many records."""

    model: ModelLabel
    group_by: Annotated[
        list[str] | UnsetType,
        about(
            'Paths; of dates also buckets: "placed_at__trunc_month" (year, quarter, month, '
            "week, day, hour). Without it, one total."
        ),
    ] = UNSET
    metrics: Annotated[
        dict[str, dict[str, str]] | UnsetType,
        about(
            'Names of your choice: {"revenue": {"sum": "total"}, "n": {"count": "*"}}. '
            "Functions: count, count_distinct, sum, avg, min, max. Without it, a count."
        ),
    ] = UNSET
    having: Annotated[
        dict[str, Any] | UnsetType, about('Comparisons of metrics: {"revenue__gte": 100}.')
    ] = UNSET
    order_by: Annotated[list[str] | UnsetType, about('Metrics or groups: ["-revenue"].')] = UNSET
    limit: Annotated[
        int | UnsetType,
        about(f"Most groups. Without it {DEFAULT_GROUPS}, never more than {MOST_GROUPS}."),
    ] = UNSET


class ListResources(ToolArguments):
    """List the resources and resource templates, for clients that show none of their own."""


class ReadResource(ToolArguments):
    """Read a resource by its URI."""

    uri: Annotated[str, about("A URI that list_resources gave or describes.")]


class CreateRecord(ToolArguments):
    """Create a record through the form of the admin, with its defaults and rules. describe_model
    says what can be set."""

    model: ModelLabel
    values: Values
    inlines: Inlines | UnsetType = UNSET
    idempotency_key: Annotated[
        str | UnsetType,
        about("A text of your own: a call that is sent twice with it is done once."),
    ] = UNSET
    dry_run: DryRun = False


class UpdateRecord(ToolArguments):
    """Change a record through the form of the admin, with its rules. What is not named in values
    or inlines stays as it is. Several related records: {"add": [...]}, {"remove": [...]} or
    {"set": [...]}."""

    model: ModelLabel
    pk: PrimaryKey
    values: Values | UnsetType = UNSET
    inlines: Inlines | UnsetType = UNSET
    version: Annotated[
        str | UnsetType,
        about("As get_record showed it: refuses when somebody has changed the record since."),
    ] = UNSET
    if_unmodified_since: Annotated[
        str | UnsetType, about("The same by time, where models keep it.")
    ] = UNSET
    dry_run: DryRun = False


class DeleteRecord(ToolArguments):
    """Delete records, by key or by filters. The first call deletes nothing: it shows what would
    go along, and gives a confirmation for the second."""

    model: ModelLabel
    pk: Annotated[
        str | int | list[str | int] | UnsetType, about("One key, or a list of them.")
    ] = UNSET
    filters: Conditions | UnsetType = UNSET
    exclude: Conditions | UnsetType = UNSET
    any_of: Alternatives | UnsetType = UNSET
    confirmation: Annotated[
        str | UnsetType, about("What the same call without it gave, once a person has agreed.")
    ] = UNSET
    dry_run: DryRun = False
