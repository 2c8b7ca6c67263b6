"""What a call of a generic tool says: one struct for each tool, from its JSON to the query.

The annotations are what `tools/list` shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from django.db.models.constants import LOOKUP_SEP
from msgspec import UNSET, Meta, Struct, UnsetType

from mcp_django.exposure.fields import OPERATORS


def about(description: str) -> Any:
    return Meta(description=description)


ModelLabel = Annotated[str, about("As in list_models.")]
Lookups = Annotated[
    dict[str, Any],
    about(
        'Django lookups and values: {"status": "paid", "total__gte": 100, '
        '"customer__country__in": ["FR"]}. Texts compare exactly; else use __icontains. '
        "describe_model lists the paths."
    ),
]
Conditions = Annotated[dict[str, Any], about("As in find_records.")]
Alternatives = Annotated[list[dict[str, Any]], about("Records that match any of these.")]
Words = Annotated[str, about("Each word must occur in a searchable field.")]
Key = str | int | list[str | int]
PrimaryKey = Annotated[Key, about("Primary key; a list for a composite key.")]
#: Of a record that an admin has: it takes no model whose key is composite.
SingleKey = str | int
Fields = Annotated[list[str], about("Paths or computed columns to show, else all paths.")]
Include = Annotated[list[str], about("Names in many_relations: some records of each are shown.")]
Values = Annotated[
    dict[str, Any],
    about(
        "As describe_model says. Related records by key, or by a text that finds one. "
        'Files: {"filename": "a.txt", "data": "<base64>"}.'
    ),
]
Inlines = Annotated[
    dict[str, list[dict[str, Any]]],
    about(
        'Rows: {"lines": [{"pk": 5, "quantity": 3}, {"pk": 7, "delete": true}, '
        '{"quantity": 1}]}. Without a pk a row is new.'
    ),
]
DryRun = Annotated[bool, about("Only say what would change. Other systems may hear of it.")]
#: The same in every tool: see `exposure.questions.confirmations`.
CONFIRMATION = "From the question, once the person agreed."
Confirmation = Annotated[str, about(CONFIRMATION)]

#: Groups in an answer.
DEFAULT_GROUPS, MOST_GROUPS = 50, 200


def or_default(value: Any, default: Any = None) -> Any:
    """The value of an argument, and the default for one that was left out."""
    return default if value is UNSET else value


LONGEST_LOOKUP = 200
OPERATOR_NAMES = frozenset(name for names in OPERATORS.values() for name in names)
#: Operators in one object. With the length of a path it bounds what a short text can grow to.
MOST_OPERATORS = 32


def lookups_of(given: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """Lookups and values. An object of operators stands for several: {"total": {"gt": 1}} says
    `total__gt`. Only JSON contains objects; for the rest one that is too large is no value."""
    for key, value in given.items():
        is_path = isinstance(key, str) and len(key) <= LONGEST_LOOKUP
        if is_path and key.endswith("__contains") and isinstance(value, Mapping):
            is_path = not OPERATOR_NAMES.isdisjoint(value)
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
    exclude: dict[str, Any] | UnsetType = UNSET
    any_of: list[dict[str, Any]] | UnsetType = UNSET
    search: str | UnsetType = UNSET


class ListModels(ToolArguments):
    """List the models that you may see, with the number of their records. Start here."""


class DescribeModel(ToolArguments):
    """Describe one model: its fields, types, choices, relations, filters and their operators,
    what it can be ordered by, and an example call. Ask before you filter."""

    model: ModelLabel


class FindRecords(Filters, kw_only=True):
    """Find records of a model with Django's filters, as a table, page by page. If it has next,
    there are more: send it as cursor."""

    model: ModelLabel
    # All four again: what is named here alone would come last in the schema.
    filters: Lookups | UnsetType = UNSET
    exclude: Annotated[
        dict[str, Any] | UnsetType, about("The same, for records to leave out.")
    ] = UNSET
    any_of: Alternatives | UnsetType = UNSET
    search: Words | UnsetType = UNSET
    order_by: Annotated[
        list[str] | UnsetType, about('Paths, with "-" in front for descending.')
    ] = UNSET
    fields: Fields | UnsetType = UNSET
    include: Include | UnsetType = UNSET
    limit: Annotated[int | UnsetType, about("Records in a page.")] = UNSET
    cursor: Annotated[str | UnsetType, about("next of the last page, same query.")] = UNSET


class GetRecord(ToolArguments):
    """Get one record by its primary key. A text too long for an answer is read in parts."""

    model: str
    pk: PrimaryKey
    fields: list[str] | UnsetType = UNSET
    include: list[str] | UnsetType = UNSET
    offset: Annotated[
        int | UnsetType, about("Where to read on in the one text that fields names.")
    ] = UNSET
    search: Annotated[str | UnsetType, about("Words that the part begins at.")] = UNSET


class ExportRecords(ToolArguments):
    """Write up to 10,000 records into a file for the person. Arguments as in find_records."""

    model: str
    filters: dict[str, Any] | UnsetType = UNSET
    exclude: dict[str, Any] | UnsetType = UNSET
    any_of: list[dict[str, Any]] | UnsetType = UNSET
    search: str | UnsetType = UNSET
    order_by: list[str] | UnsetType = UNSET
    fields: list[str] | UnsetType = UNSET
    format: Annotated[str | UnsetType, about("csv or xlsx.")] = UNSET


#: Entries of a history in an answer.
DEFAULT_ENTRIES, MOST_ENTRIES = 20, 50


class GetHistory(ToolArguments):
    """Who changed a record, when and how, newest first. Without a pk: the last changes in the
    model."""

    model: str
    pk: Key | UnsetType = UNSET
    user: Annotated[str | UnsetType, about("By this user alone.")] = UNSET
    limit: Annotated[
        int | UnsetType,
        about(f"{DEFAULT_ENTRIES} without it, at most {MOST_ENTRIES}."),
    ] = UNSET


class AggregateRecords(Filters, kw_only=True):
    """Count, add up and average records, by group. describe_model says what each field takes. Use
    it in place of reading many records."""

    model: str
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
        about(f"{DEFAULT_GROUPS} without it, at most {MOST_GROUPS}."),
    ] = UNSET


class ListResources(ToolArguments):
    """List the resources and resource templates, for clients that show none of their own."""


class ReadResource(ToolArguments):
    """Read a resource by its URI."""

    uri: Annotated[str, about("A URI that list_resources gave or describes.")]


class CreateRecord(ToolArguments):
    """Create a record through the form of the admin, with its defaults and rules. describe_model
    says what can be set."""

    model: str
    values: Values
    inlines: Annotated[
        dict[str, list[dict[str, Any]]] | UnsetType,
        about('Rows: {"lines": [{"quantity": 1}]}.'),
    ] = UNSET
    idempotency_key: Annotated[
        str | UnsetType,
        about("Your own: a call that is sent twice with it is done once."),
    ] = UNSET
    dry_run: DryRun = False


class UpdateRecord(ToolArguments):
    """Change a record through the form of the admin, with its rules. What is not named in values
    or inlines stays as it is. Several related records: {"add": [...]}, {"remove": [...]} or
    {"set": [...]}. Before rows are deleted, a person must agree."""

    model: str
    pk: SingleKey
    values: Annotated[dict[str, Any] | UnsetType, about("As describe_model says.")] = UNSET
    inlines: Inlines | UnsetType = UNSET
    version: Annotated[
        str | UnsetType,
        about("From get_record: refused if the record changed since."),
    ] = UNSET
    if_unmodified_since: Annotated[
        str | UnsetType, about("The same by time, where models keep it.")
    ] = UNSET
    confirmation: Confirmation | UnsetType = UNSET
    dry_run: DryRun = False


class UpdateRecords(ToolArguments):
    """Make the same change to up to 200 records, all or none. If the answer has a question, ask
    the person."""

    model: str
    values: Annotated[dict[str, Any], about("As in update_record.")]
    pks: Annotated[list[str | int] | UnsetType, about("Keys, or these 3 as in find_records.")] = (
        UNSET
    )
    filters: dict[str, Any] | UnsetType = UNSET
    exclude: dict[str, Any] | UnsetType = UNSET
    search: str | UnsetType = UNSET
    confirmation: Confirmation | UnsetType = UNSET
    dry_run: bool = False


class UndoChange(ToolArguments):
    """Undo one change of a record, unless its fields changed since. If the answer has a question,
    ask the person."""

    model: str
    pk: SingleKey
    change: Annotated[int, about("The undo of an entry of get_history.")]
    confirmation: Confirmation | UnsetType = UNSET


class DeleteRecord(ToolArguments):
    """Delete records, by key or by filters. If the answer has a question, ask the person."""

    model: str
    pk: Annotated[
        str | int | list[str | int] | UnsetType, about("One key, or a list of them.")
    ] = UNSET
    filters: Conditions | UnsetType = UNSET
    exclude: dict[str, Any] | UnsetType = UNSET
    any_of: list[dict[str, Any]] | UnsetType = UNSET
    confirmation: Confirmation | UnsetType = UNSET
    dry_run: bool = False
