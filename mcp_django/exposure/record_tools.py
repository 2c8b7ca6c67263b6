"""The generic tools over exposed models: a constant set, however many models there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure import aggregates, resources
from mcp_django.exposure.code_resources import PendingRead, read_code_resource
from mcp_django.exposure.describe import describe, example
from mcp_django.exposure.find import find_records as find
from mcp_django.exposure.find import get_record as get
from mcp_django.exposure.function_arguments import Arguments
from mcp_django.exposure.links import changes_of, file_fields, file_links
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.reach import reach_of
from mcp_django.exposure.signatures import Signature, resolve_hints
from mcp_django.exposure.tools import Lane, Outcome, PendingCall, code_uri
from mcp_django.exposure.uris import SITE
from mcp_django.principal import READ
from mcp_django.protocol.content import Annotations, Content, ResourceContents, TextContent
from mcp_django.protocol.results import ToolAnnotations, ToolDefinition, ToolResult

READING = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)


def about(description: str) -> Any:
    return msgspec.Meta(description=description)


Model = Annotated[str, about('Label of a model as list_models gives it, such as "shop.order".')]
Lookups = Annotated[
    dict[str, Any],
    about(
        'Django lookups and values: {"status": "paid", "total__gte": 100, '
        '"customer__country__in": ["FR"]}. Texts compare exactly; else use __iexact or '
        "__icontains. describe_model lists the paths and operators."
    ),
]
Key = Annotated[str | int | list[str | int], about("Primary key; a list for a composite key.")]
Names = list[str]
Alternatives = Annotated[
    list[dict[str, Any]], about("Alternatives: records that match any of these filters.")
]
Words = Annotated[str, about("Words; each must occur in a searchable field.")]
Fields = Annotated[Names, about("Paths to show. Without it, all.")]
LIMITS = (
    f"Most records to return. Without it {get_config().page_size}, "
    f"never more than {get_config().max_page_size}."
)
MOST_GROUPS = (
    f"Most groups. Without it {aggregates.DEFAULT_LIMIT}, never more than {aggregates.MAX_LIMIT}."
)
Conditions = Annotated[dict[str, Any], about("As in find_records.")]


class RecordTool:
    """A function of ours as a tool. It takes the caller's rights and answers with JSON."""

    lane = Lane.QUERY

    def __init__(self, function: Callable[..., bytes], *, title: str) -> None:
        self.name = function.__name__
        self.function = function
        hints = resolve_hints(function, where=f"{self.name}()")
        annotations = {
            name: kind for name, kind in hints.items() if name not in ("rights", "return")
        }
        self.arguments = Arguments(
            self.name,
            Signature(
                given={},
                annotations=annotations,
                defaults=dict(function.__kwdefaults__ or {}),
                returns=bytes,
            ),
            descriptions={},
        )
        self.definition = ToolDefinition(
            name=self.name,
            title=title,
            description=" ".join((function.__doc__ or "").split()),
            input_schema=self.arguments.schema,
            annotations=READING,
        )

    def exists_for(self, rights: Rights) -> bool:
        return rights.has_scopes(frozenset({READ}))

    def call(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> Outcome:
        # Some clients send null for what they leave out.
        arguments = {name: value for name, value in arguments.items() if value is not None}
        examples = partial(examples_for, rights, arguments, tool=self.name)
        read = self.arguments.read(arguments, examples=examples)
        try:
            return self.answer(context, rights, read)
        except ToolError as error:
            call = self.arguments.shown_call(examples(), arguments.keys())
            raise ToolError(f"{error}{call}") from None

    def answer(
        self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]
    ) -> Outcome:
        return result_of(self.function(rights, **arguments))


def result_of(
    encoded: bytes, *, beside: Sequence[Content] = (), annotations: Annotations | None = None
) -> ToolResult:
    """Encoded once: as it is for programs, and as text for models."""
    return ToolResult(
        content=[TextContent(encoded.decode(), annotations), *beside],
        structured=msgspec.Raw(encoded),
        has_structured=True,
    )


class RecordReader(RecordTool):
    """Shows beside a record where its files are, and when it was changed."""

    def answer(
        self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]
    ) -> ToolResult:
        encoded = self.function(rights, **arguments)
        exposure = rights.exposure(arguments["model"])
        if not (exposure.modified_field or file_fields(rights, exposure)):
            return result_of(encoded)
        record = msgspec.json.decode(encoded)
        return result_of(
            encoded,
            beside=file_links(rights, exposure, arguments["pk"], record),
            annotations=changes_of(exposure, record),
        )


class ResourceReader(RecordTool):
    """Reads resources of code, too, which may take a while."""

    def answer(
        self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]
    ) -> Outcome:
        uri = arguments["uri"]
        if not code_uri(uri):
            return super().answer(context, rights, arguments)
        found = read_code_resource(context, rights, uri)
        if not isinstance(found, PendingRead):
            return result_of(encode_contents(found))
        finish = found.finish
        return PendingCall(
            awaitable=found.awaitable,
            finish=lambda value: result_of(encode_contents(finish(value))),
        )


def encode_contents(contents: Sequence[ResourceContents]) -> bytes:
    return msgspec.json.encode({"contents": [one.as_wire() for one in contents]})


def examples_for(rights: Rights, given: Mapping[str, Any], *, tool: str) -> dict[str, Any]:
    """Arguments that work for this caller, with the model that was meant if it is one."""
    exposures = [one for one in rights.exposures() if is_asked_by(tool, rights, one)]
    if not exposures:
        return {"uri": SITE}
    exposure = next((one for one in exposures if one.label == given.get("model")), exposures[0])
    reach = reach_of(rights, exposure)
    found: dict[str, Any] = {"uri": SITE, **example(reach)}
    if "filters" in found:
        found |= {"exclude": found["filters"], "any_of": [found["filters"]]}
    if reach.search:
        found["search"] = "a"
    if tool == aggregate_records.__name__:
        found.pop("order_by", None)
        return found | aggregates.examples(reach, is_grouped="group_by" in given)
    if exposure.aggregates_only:
        return found
    keys = [part.name for part in exposure.model._meta.pk_fields]
    first = find(rights, exposure, {"limit": 1}).encoded_records
    for record in msgspec.json.decode(first):
        if record.keys() >= set(keys):
            found["pk"] = record[keys[0]] if len(keys) == 1 else [record[key] for key in keys]
            found["fields"] = list(record)[:2]
    return found


def is_asked_by(tool: str, rights: Rights, exposure: ModelExposure) -> bool:
    """Whether the model is one that this tool has an answer about."""
    if tool == aggregate_records.__name__:
        return not rights.judges_objects(exposure.model)
    return not exposure.aggregates_only or tool == describe_model.__name__


def list_models(rights: Rights) -> bytes:
    """List the models that you may see, with the number of their records. Start here."""
    return msgspec.json.encode(resources.overview(rights))


def describe_model(rights: Rights, *, model: Model) -> bytes:
    """Describe one model: its fields, types, choices, relations, filters and their operators,
    what it can be ordered by, and an example call. Ask before you filter."""
    return msgspec.json.encode(describe(rights, rights.exposure(model)))


def find_records(
    rights: Rights,
    *,
    model: Model,
    filters: Lookups | UnsetType = UNSET,
    exclude: Lookups | UnsetType = UNSET,
    any_of: Alternatives | UnsetType = UNSET,
    search: Words | UnsetType = UNSET,
    order_by: Annotated[Names, about('Paths, with "-" in front for descending.')]
    | UnsetType = UNSET,
    fields: Fields | UnsetType = UNSET,
    limit: Annotated[int, about(LIMITS)] | UnsetType = UNSET,
    cursor: Annotated[str, about("next_cursor of the page before, same query.")]
    | UnsetType = UNSET,
) -> bytes:
    """Find records of a model with Django's filters, page by page. When next_cursor is not null
    there are more: call again with it and the same query."""
    asked = {
        "filters": filters,
        "exclude": exclude,
        "any_of": any_of,
        "search": search,
        "order_by": order_by,
        "fields": fields,
        "limit": limit,
        "cursor": cursor,
    }
    given = {name: value for name, value in asked.items() if value is not UNSET}
    page = find(rights, rights.exposure(model), given)
    return resources.encode_page(page.encoded_records, page.next_cursor)


def get_record(
    rights: Rights,
    *,
    model: Model,
    pk: Key,
    fields: Fields | UnsetType = UNSET,
) -> bytes:
    """Get one record by its primary key, long texts in full."""
    shown = None if fields is UNSET else fields
    return get(rights, rights.exposure(model), pk, fields=shown)


def aggregate_records(
    rights: Rights,
    *,
    model: Model,
    filters: Conditions | UnsetType = UNSET,
    exclude: Conditions | UnsetType = UNSET,
    any_of: Alternatives | UnsetType = UNSET,
    search: Words | UnsetType = UNSET,
    group_by: Annotated[
        Names,
        about(
            'Paths; of dates also buckets: "placed_at__trunc_month" (year, quarter, month, week, '
            "day, hour). Without it, one total."
        ),
    ]
    | UnsetType = UNSET,
    metrics: Annotated[
        dict[str, dict[str, str]],
        about(
            'Names of your choice: {"revenue": {"sum": "total"}, "n": {"count": "*"}}. Functions: '
            "count, count_distinct, sum, avg, min, max. Without it, a count."
        ),
    ]
    | UnsetType = UNSET,
    having: Annotated[dict[str, Any], about('Comparisons of metrics: {"revenue__gte": 100}.')]
    | UnsetType = UNSET,
    order_by: Annotated[Names, about('Metrics or groups: ["-revenue"].')] | UnsetType = UNSET,
    limit: Annotated[int, about(MOST_GROUPS)] | UnsetType = UNSET,
) -> bytes:
    """Count, add up and average records, by group. describe_model says what each field takes. Use
    it in place of reading many records."""
    asked = {
        "filters": filters,
        "exclude": exclude,
        "any_of": any_of,
        "search": search,
        "group_by": group_by,
        "metrics": metrics,
        "having": having,
        "order_by": order_by,
        "limit": limit,
    }
    given = {name: value for name, value in asked.items() if value is not UNSET}
    return aggregates.aggregate_records(rights, rights.exposure(model), given)


def list_resources(rights: Rights) -> bytes:
    """List the resources and resource templates, for clients that show none of their own."""
    found = [
        {"uri": one.uri, "name": one.name, "description": one.description}
        for one in resources.list_resources(rights)
    ]
    templates = [
        {"uriTemplate": one.uri_template, "name": one.name, "description": one.description}
        for one in resources.list_templates(rights)
    ]
    return msgspec.json.encode({"resources": found, "resourceTemplates": templates})


def read_resource(
    rights: Rights, *, uri: Annotated[str, about("A URI that list_resources gave or describes.")]
) -> bytes:
    """Read a resource by its URI."""
    return encode_contents(resources.read_resource(rights, uri))


RECORD_TOOLS: dict[str, RecordTool] = {
    tool.name: tool
    for tool in (
        RecordTool(list_models, title="List models"),
        RecordTool(describe_model, title="Describe a model"),
        RecordTool(find_records, title="Find records"),
        RecordReader(get_record, title="Get a record"),
        RecordTool(aggregate_records, title="Aggregate records"),
        RecordTool(list_resources, title="List resources"),
        ResourceReader(read_resource, title="Read a resource"),
    )
}
