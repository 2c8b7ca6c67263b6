"""Models as resources: an overview, definitions, collections, objects and files."""

from __future__ import annotations

import logging
import mimetypes
from dataclasses import replace
from typing import Any

import msgspec
from django.core.exceptions import SuspiciousOperation
from django.db import Error
from django.db.models import FileField

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import NotFound, QueryError
from mcp_django.exposure.fields import kind_of
from mcp_django.exposure.limits import raise_lost_database
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.primitives import PendingCall, code_uri
from mcp_django.exposure.query.access import AccessiblePaths, allowed_paths
from mcp_django.exposure.query.aggregates import floor_of
from mcp_django.exposure.query.arguments import FindRecords
from mcp_django.exposure.query.describe import describe
from mcp_django.exposure.query.filters import split
from mcp_django.exposure.query.find import (
    Page,
    check_shows_records,
    count_records,
    find_records,
    get_record,
)
from mcp_django.exposure.query.paths_by_rule import paths_of_call
from mcp_django.exposure.query.tables import beginning, longest_answer
from mcp_django.exposure.resources.functions import code_definitions, read_code_resource
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
from mcp_django.models import ExposedModel
from mcp_django.principal import READ
from mcp_django.protocol.content import Annotations, ResourceContents
from mcp_django.protocol.results import ReadResult, Resource, ResourceTemplate
from mcp_django.protocol.uri_templates import decode

# The content of a FileField as a resource.


def read_file(
    rights: Rights, exposure: ModelExposure, key: Any, name: str, *, uri: str
) -> ResourceContents:
    """The file that a field of a record names.

    Raises NotFound where the record, the field or the file does not exist for this caller, and
    QueryError for a file that is too large to be sent.
    """
    check_shows_records(exposure)
    field = file_field(rights, exposure, name)
    stored = msgspec.json.decode(get_record(rights, exposure, key, fields=[name]))[name]
    if not stored:
        raise no_file()
    try:
        # base64 is a third longer than what it carries.
        longest = get_config().max_response * 3 // 4
        with field.storage.open(stored) as file:
            content = file.read(longest + 1)
    except (OSError, SuspiciousOperation):
        raise no_file() from None
    if len(content) > longest:
        raise QueryError(f"This file is longer than {longest} bytes and cannot be sent.")
    kind = mimetypes.guess_type(stored)[0] or "application/octet-stream"
    if kind.startswith("text/"):
        try:
            return ResourceContents(uri=uri, mime_type=kind, text=content.decode())
        except UnicodeDecodeError:
            pass  # it says that it is text and is in another encoding
    return ResourceContents(uri=uri, mime_type=kind, blob=content)


def file_field(rights: Rights, exposure: ModelExposure, name: str) -> FileField:
    """The field, if it names a file and records show it to this caller. Raises NotFound."""
    for field in allowed_paths(rights, exposure).files:
        if field.name == name:
            return field
    raise no_file()


def no_file() -> NotFound:
    return NotFound("There is no such file.")


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
    return found + [one for one in code_definitions(rights) if isinstance(one, Resource)]


def list_templates(rights: Rights) -> list[ResourceTemplate]:
    """Those of the models, if this caller has any, and those of code."""
    own = [one for one in code_definitions(rights) if isinstance(one, ResourceTemplate)]
    return [*model_templates(rights), *own]


def model_templates(rights: Rights) -> list[ResourceTemplate]:
    exposures = rights.exposures()
    if not exposures:
        return []
    shown = [one for one in exposures if not one.aggregates_only]
    return TEMPLATES + [FILES] * any(allowed_paths(rights, one).files for one in shown)


def read(
    context: CallContext, rights: Rights, uri: str, *, longest: int | None = None
) -> ReadResult | PendingCall:
    """The contents of a URI, of models or of code. Raises what `read_resource` raises."""
    if code_uri(uri):
        return read_code_resource(context, rights, uri)
    return read_resource(rights, uri, longest=longest)


def read_resource(rights: Rights, uri: str, *, longest: int | None = None) -> ReadResult:
    """The contents of a URI, of records in at most `longest` bytes. With that, of a longer text
    file there is the beginning.

    Raises NotFound, in the same words for what is missing and what is forbidden, and QueryError
    for a query of a collection that cannot run.
    """
    if not rights.has_scopes(frozenset({READ})):
        raise NotFound("There is no such resource.")
    address, budget = parse_uri(uri), longest
    longest = longest or longest_answer()
    match address.kind, address.segments:
        case "files", (label, *key, field) if key:
            exposure = rights.exposure(label)
            file = read_file(rights, exposure, key_of(exposure, key), field, uri=uri)
            if budget and file.text is not None and len(file.text.encode()) > budget:
                file = replace(file, text=beginning(field, file.text))
            return ReadResult(contents=[file], records=1)
        case "site", ():
            return json_result(uri, msgspec.json.encode(overview(rights)))
        case "models", (label,):
            described = describe(rights, rights.exposure(label))
            return json_result(uri, msgspec.json.encode(described))
        case "objects", (label,):
            page = read_collection(rights, rights.exposure(label), address, longest=longest)
            return json_result(uri, page.answer, records=page.count)
        case "objects", (label, *key):
            exposure = rights.exposure(label)
            pk = key_of(exposure, key)
            record = get_record(rights, exposure, pk, all_computed=True, longest=longest)
            return json_result(uri, record, records=1)
    raise NotFound("There is no such resource.")


def json_result(uri: str, encoded: bytes, *, records: int | None = None) -> ReadResult:
    contents = ResourceContents(uri=uri, mime_type=JSON, text=encoded.decode())
    return ReadResult(contents=[contents], records=records)


def key_of(exposure: ModelExposure, segments: list[str]) -> str | list[str]:
    """A key from the segments of a URI. A template's {pk} has the parts of a key in one."""
    if len(segments) > 1:
        return segments
    parts = segments[0].split("/") if len(exposure.model._meta.pk_fields) > 1 else []
    try:
        return [decode(part) for part in parts] or segments[0]
    except ValueError:
        return segments[0]


def read_collection(
    rights: Rights, exposure: ModelExposure, address: Address, *, longest: int
) -> Page:
    arguments = query_arguments(address.query)
    if "filters" in arguments:
        filters = arguments["filters"]
        access = paths_of_call(rights, exposure, arguments)
        arguments["filters"] = {
            name: typed(rights, access, name, filters[name]) for name in filters
        }
    asked = FindRecords(model=exposure.label, **arguments)
    return find_records(rights, exposure, asked, longest=longest)


def typed(rights: Rights, access: AccessiblePaths, lookup: str, value: Any) -> Any:
    """The value of a filter. In a URI everything is a text, and booleans have no texts."""
    if value not in ("true", "false"):
        return value
    try:
        path, transform, operator = split(rights, access, lookup, "filters")
    except QueryError:
        return value  # `find_records` says what is wrong
    is_boolean = operator == "isnull" or (not transform and kind_of(path.field) == "boolean")
    return value == "true" if is_boolean else value


def overview(rights: Rights) -> dict[str, Any]:
    """What `list_models` and `django://site` show."""
    models = [summary(rights, exposure) for exposure in rights.exposures()]
    note = {} if models else {"note": note_on_no_models(rights)}
    return {"site": get_config().name, "models": models, **note}


def note_on_no_models(rights: Rights) -> str:
    """What a caller does who sees no model: where to open some, for those who may."""
    sentence = "No models are available to you."
    model_admin = rights.model_admin(ExposedModel)
    if model_admin is None or not model_admin.has_change_permission(rights.request):
        return sentence
    # The admin is optional.
    from mcp_django.exposure.admin_bridge.requests import page_address

    address = page_address(model_admin, "changelist")
    place = f" ({address})" if address else ""
    return f"{sentence} Open models in the admin: Exposed models{place}."


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
    except (Error, QueryError) as error:
        raise_lost_database(error)
        # No table, or too slow: the other models are still there.
        logger.exception("%s cannot be counted.", exposure.label)
        return None
    if number is None or (exposure.aggregates_only and number < floor_of(exposure)):
        return None
    if number > MOST_COUNTED:
        return f"more than {MOST_COUNTED}"
    return number
