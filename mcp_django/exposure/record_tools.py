"""The generic tools over exposed models: a constant set, however many models there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exposure import aggregates, resources, write_rights
from mcp_django.exposure.code_resources import PendingRead, read_code_resource
from mcp_django.exposure.describe import describe
from mcp_django.exposure.find import find_records as find
from mcp_django.exposure.find import get_record as get
from mcp_django.exposure.generic_tools import (
    Alternatives,
    Conditions,
    Fields,
    Key,
    Lookups,
    Model,
    Names,
    RecordTool,
    Words,
    about,
    result_of,
)
from mcp_django.exposure.links import changes_of, file_fields, file_links
from mcp_django.exposure.objects import find_object
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.tools import Outcome, PendingCall, code_uri
from mcp_django.exposure.versions import version_of
from mcp_django.exposure.write_tools import WRITE_TOOLS
from mcp_django.protocol.content import ResourceContents
from mcp_django.protocol.results import ToolResult

#: The member of a record that holds its version. No column is called so.
VERSION = "_version"
LIMITS = (
    f"Most records to return. Without it {get_config().page_size}, "
    f"never more than {get_config().max_page_size}."
)
MOST_GROUPS = (
    f"Most groups. Without it {aggregates.DEFAULT_LIMIT}, never more than {aggregates.MAX_LIMIT}."
)


class ModelDescriber(RecordTool):
    """Says what can be set, too, to those who may."""

    def answer(
        self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]
    ) -> ToolResult:
        encoded = self.function(rights, **arguments)
        exposure = rights.exposure(arguments["model"])
        writing = write_rights.describe_writing(context, rights, exposure)
        if not writing:
            return result_of(encoded)
        return result_of(msgspec.json.encode({**msgspec.json.decode(encoded), "writing": writing}))


class RecordReader(RecordTool):
    """Shows beside a record where its files are, and when it was changed, and in it the version
    to those who may change it."""

    def answer(
        self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]
    ) -> ToolResult:
        exposure = rights.exposure(arguments["model"])
        is_writer = write_rights.may(rights, exposure.model, write_rights.CHANGE)
        if is_writer:
            encoded = read_with_version(rights, exposure, arguments)
        else:
            encoded = self.function(rights, **arguments)
        if not (exposure.modified_field or file_fields(rights, exposure)):
            return result_of(encoded)
        record = msgspec.json.decode(encoded)
        return result_of(
            encoded,
            beside=file_links(rights, exposure, arguments["pk"], record),
            annotations=changes_of(exposure, record),
        )


def read_with_version(
    rights: Rights, exposure: ModelExposure, arguments: Mapping[str, Any]
) -> bytes:
    using = rights.rows(exposure.model).db
    key = find_object(rights, exposure, arguments["pk"], using=using).pk
    # First: a change in between makes the version too old, and never the record.
    row = exposure.model._base_manager.using(using).filter(pk=key).first()
    given = {name: one for name, one in arguments.items() if name == "fields" and one}
    encoded = get(rights, exposure, arguments["pk"], using=using, **given)
    # Without a row it was made after this looked for it.
    version = {} if row is None else {VERSION: version_of(row)}
    return msgspec.json.encode({**msgspec.json.decode(encoded), **version})


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
        ModelDescriber(describe_model, title="Describe a model"),
        RecordTool(find_records, title="Find records"),
        RecordReader(get_record, title="Get a record"),
        RecordTool(aggregate_records, title="Aggregate records"),
        RecordTool(list_resources, title="List resources"),
        ResourceReader(read_resource, title="Read a resource"),
        *WRITE_TOOLS,
    )
}
