"""resources/list, resources/templates/list and resources/read."""

from __future__ import annotations

from typing import Any

from mcp_django.context import CallContext
from mcp_django.exceptions import NotFound, QueryError
from mcp_django.exposure import resources
from mcp_django.exposure.permissions import Rights
from mcp_django.handlers.lists import page
from mcp_django.protocol.errors import INVALID_PARAMS, RESOURCE_NOT_FOUND, ProtocolError
from mcp_django.protocol.methods import parse_params
from mcp_django.protocol.results import ListResult, ReadResult


def list_resources(context: CallContext, params: dict[str, Any]) -> ListResult:
    rights = Rights(context.request, context.principal)
    cursor = parse_params("resources/list", params).cursor
    found = resources.list_resources(rights)
    return page(context, found, member="resources", cursor=cursor, key=lambda one: one.uri)


def list_templates(context: CallContext, params: dict[str, Any]) -> ListResult:
    rights = Rights(context.request, context.principal)
    cursor = parse_params("resources/templates/list", params).cursor
    found = resources.list_templates(rights)
    return page(
        context, found, member="resourceTemplates", cursor=cursor, key=lambda one: one.uri_template
    )


def read_resource(context: CallContext, params: dict[str, Any]) -> ReadResult:
    uri = parse_params("resources/read", params).uri
    rights = Rights(context.request, context.principal)
    try:
        return ReadResult(contents=resources.read_resource(rights, uri))
    except NotFound:
        is_new = context.revision.features.missing_resource_is_invalid_params
        code = INVALID_PARAMS if is_new else RESOURCE_NOT_FOUND
        raise ProtocolError(code, "Resource not found.", {"uri": uri[:1000]}) from None
    except QueryError as error:
        raise ProtocolError(INVALID_PARAMS, str(error), {"uri": uri[:1000]}) from None
