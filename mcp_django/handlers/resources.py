"""resources/list, resources/templates/list and resources/read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

from mcp_django.context import CallContext
from mcp_django.exceptions import NotFound, ToolError
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.primitives import PendingCall
from mcp_django.exposure.resources import models
from mcp_django.handlers.lists import page
from mcp_django.protocol.errors import INVALID_PARAMS, RESOURCE_NOT_FOUND, ProtocolError
from mcp_django.protocol.methods import parse_params
from mcp_django.protocol.results import ListResult, ReadResult


def list_resources(context: CallContext, params: dict[str, Any]) -> ListResult:
    rights = Rights(context.request, context.principal)
    cursor = parse_params("resources/list", params).cursor
    found = models.list_resources(rights)
    return page(context, found, member="resources", cursor=cursor, key=lambda one: one.uri)


def list_templates(context: CallContext, params: dict[str, Any]) -> ListResult:
    rights = Rights(context.request, context.principal)
    cursor = parse_params("resources/templates/list", params).cursor
    found = models.list_templates(rights)
    return page(
        context, found, member="resourceTemplates", cursor=cursor, key=lambda one: one.uri_template
    )


def read_resource(context: CallContext, params: dict[str, Any]) -> ReadResult | PendingCall:
    uri = parse_params("resources/read", params).uri
    rights = Rights(context.request, context.principal)

    def refuse(error: ToolError) -> NoReturn:
        raise refusal(context, uri, error) from error

    try:
        found = models.read(context, rights, uri)
    except ToolError as error:
        refuse(error)
    return found if isinstance(found, ReadResult) else replace(found, refuse=refuse)


def refusal(context: CallContext, uri: str, error: ToolError) -> ProtocolError:
    """Why there are no contents: missing and forbidden alike, or a query that cannot run."""
    data = {"uri": uri[:1000]}
    if not isinstance(error, NotFound):
        return ProtocolError(INVALID_PARAMS, str(error), data)
    is_new = context.revision.features.missing_resource_is_invalid_params
    code = INVALID_PARAMS if is_new else RESOURCE_NOT_FOUND
    return ProtocolError(code, "Resource not found.", data)
