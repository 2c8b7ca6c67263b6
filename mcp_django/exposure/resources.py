"""Models as resources: an overview, definitions, collections, objects and files."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
from django.db import DatabaseError

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import NotFound, QueryError
from mcp_django.exposure.code_resources import PendingRead, code_resources, read_code_resource
from mcp_django.exposure.describe import describe
from mcp_django.exposure.files import has_files, read_file
from mcp_django.exposure.find import count_records, find_records, get_record
from mcp_django.exposure.metrics import floor_of
from mcp_django.exposure.operators import kind_of
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query import split
from mcp_django.exposure.reach import Reach, reach_of
from mcp_django.exposure.tools import code_uri
from mcp_django.exposure.uris import (
    COLLECTION,
    DEFINITION,
    FILE,
    OBJECT,
    SITE,
    Address,
    parse_uri,
    query_arguments,
)
from mcp_django.principal import READ
from mcp_django.protocol.content import Annotations, ResourceContents
from mcp_django.protocol.results import Resource, ResourceTemplate
from mcp_django.protocol.uri_templates import decode

JSON = "application/json"
#: What a client should have in view first: what there is, and how to ask for it.
OVERVIEW, DEFINITIONS = Annotations(priority=1.0), Annotations(priority=0.8)

logger = logging.getLogger("mcp_django")


TEMPLATES = [
    ResourceTemplate(
        uri_template=DEFINITION.text,
        name="definition",
        title="Definition of a model",
        description='Fields, filters and relations of a model, such as "shop.order".',
    ),
    ResourceTemplate(
        uri_template=COLLECTION.text,
        name="collection",
        title="Records of a model",
        description="Records, paged. Filters as in the tool find_records; a repeated key "
        "means any of its values; order_by and fields take names with commas.",
    ),
    ResourceTemplate(
        uri_template=OBJECT.text,
        name="record",
        title="One record",
        description="One record by its primary key. A composite key has one segment a part.",
    ),
]
FILES = ResourceTemplate(
    uri_template=FILE.text,
    name="file",
    title="A file of a record",
    description="The content of a file field of a record.",
    mime_type="application/octet-stream",
)


def list_resources(rights: Rights) -> list[Resource]:
    """The overview, and a definition and a collection for each model of this caller."""
    if not rights.has_scopes(frozenset({READ})):
        return []
    found = [
        Resource(
            uri=SITE,
            name="site",
            title=get_config().name,
            description="The models that you may see, with counts.",
            annotations=OVERVIEW,
        )
    ]
    for exposure in rights.exposures():
        plural = str(exposure.model._meta.verbose_name_plural)
        found.append(
            Resource(
                uri=DEFINITION.expand({"model": exposure.label}),
                name=f"{exposure.label} definition",
                title=f"Definition of {plural}",
                description=f"Fields, filters and relations of {plural}.",
                annotations=DEFINITIONS,
            )
        )
        if exposure.aggregates_only:
            continue
        found.append(
            Resource(
                uri=COLLECTION.expand({"model": exposure.label}),
                name=exposure.label,
                title=plural[:1].upper() + plural[1:],
                description=exposure.description or f"The first page of all {plural}.",
            )
        )
    own = [one.definition(rights.request) for one in code_resources(rights)]
    return found + [one for one in own if isinstance(one, Resource)]


def list_templates(rights: Rights) -> list[ResourceTemplate]:
    """Those of the models, if this caller has any, and those of code."""
    own = [one.definition(rights.request) for one in code_resources(rights)]
    templates = [one for one in own if isinstance(one, ResourceTemplate)]
    return [*model_templates(rights), *templates]


def model_templates(rights: Rights) -> list[ResourceTemplate]:
    exposures = rights.exposures()
    if not exposures:
        return []
    return TEMPLATES + [FILES] * any(has_files(rights, one) for one in exposures)


def read(context: CallContext, rights: Rights, uri: str) -> list[ResourceContents] | PendingRead:
    """The contents of a URI, of models or of code. Raises what `read_resource` raises."""
    if code_uri(uri):
        return read_code_resource(context, rights, uri)
    return read_resource(rights, uri)


def read_resource(rights: Rights, uri: str) -> list[ResourceContents]:
    """The contents of a URI.

    Raises NotFound, in the same words for what is missing and what is forbidden, and QueryError
    for a query of a collection that cannot run.
    """
    if not rights.has_scopes(frozenset({READ})):
        raise NotFound("There is no such resource.")
    address = parse_uri(uri)
    match address.kind, address.segments:
        case "files", (label, *key, field) if key:
            exposure = rights.exposure(label)
            return [read_file(rights, exposure, key_of(exposure, key), field, uri=uri)]
    encoded = encode_resource(rights, address)
    return [ResourceContents(uri=uri, mime_type=JSON, text=encoded.decode())]


def encode_resource(rights: Rights, address: Address) -> bytes:
    match address.kind, address.segments:
        case "site", ():
            return msgspec.json.encode(overview(rights))
        case "models", (label,):
            return msgspec.json.encode(describe(rights, rights.exposure(label)))
        case "objects", (label,):
            return encode_collection(rights, rights.exposure(label), address)
        case "objects", (label, *key):
            exposure = rights.exposure(label)
            return get_record(rights, exposure, key_of(exposure, key))
    raise NotFound("There is no such resource.")


def key_of(exposure: ModelExposure, segments: list[str]) -> str | list[str]:
    """A key from the segments of a URI. A template's {pk} has the parts of a key in one."""
    if len(segments) > 1:
        return segments
    parts = segments[0].split("/") if len(exposure.model._meta.pk_fields) > 1 else []
    try:
        return [decode(part) for part in parts] or segments[0]
    except ValueError:
        return segments[0]


def encode_collection(rights: Rights, exposure: ModelExposure, address: Address) -> bytes:
    arguments = query_arguments(address.query)
    if "filters" in arguments:
        reach = reach_of(rights, exposure)
        filters = arguments["filters"]
        arguments["filters"] = {name: typed(reach, name, filters[name]) for name in filters}
    page = find_records(rights, exposure, arguments)
    return encode_page(page.encoded_records, page.next_cursor)


def typed(reach: Reach, lookup: str, value: Any) -> Any:
    """The value of a filter. In a URI everything is a text, and booleans have no texts."""
    if value not in ("true", "false"):
        return value
    try:
        path, transform, operator = split(reach, lookup, "filters")
    except QueryError:
        return value  # `find_records` says what is wrong
    is_boolean = operator == "isnull" or (not transform and kind_of(path.field) == "boolean")
    return value == "true" if is_boolean else value


def encode_page(encoded_records: bytes, next_cursor: str | None) -> bytes:
    """A page around records that are encoded already."""
    cursor = msgspec.json.encode(next_cursor)
    return b'{"records":' + encoded_records + b',"next_cursor":' + cursor + b"}"


def overview(rights: Rights) -> dict[str, Any]:
    """What `list_models` and `django://site` show."""
    return {
        "site": get_config().name,
        "models": [summary(rights, exposure) for exposure in rights.exposures()],
    }


def summary(rights: Rights, exposure: ModelExposure) -> dict[str, Any]:
    opts = exposure.model._meta
    found: dict[str, Any] = {
        "model": exposure.label,
        "name": str(opts.verbose_name),
        "plural": str(opts.verbose_name_plural),
        "records": count(rights, exposure),
    }
    if exposure.is_definition_only:
        found["definition_only"] = True
    elif exposure.aggregates_only:
        found["aggregates_only"] = True
    else:
        found["uri"] = COLLECTION.expand({"model": exposure.label})
    if exposure.description:
        found["description"] = exposure.description
    return found


#: Counting on would cost more than the number tells.
MOST_COUNTED = 100_000


def count(rights: Rights, exposure: ModelExposure) -> int | str | None:
    """How many records there are for this caller.

    None where they are judged one by one, and where they, or so few, must not be told about.
    """
    if exposure.is_definition_only:
        return None
    try:
        number = count_records(rights, exposure, most=MOST_COUNTED)
    except (DatabaseError, QueryError):
        # No table, or too slow: the other models are still there.
        logger.exception("%s cannot be counted.", exposure.label)
        return None
    if number is None or (exposure.aggregates_only and number < floor_of(exposure)):
        return None
    if number > MOST_COUNTED:
        return f"more than {MOST_COUNTED}"
    return number
