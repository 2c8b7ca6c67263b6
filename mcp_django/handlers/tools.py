"""tools/list and tools/call."""

from __future__ import annotations

from typing import Any

from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.record_tools import RECORD_TOOLS
from mcp_django.exposure.registry import registry
from mcp_django.exposure.tools import Outcome, Tool
from mcp_django.handlers.lists import page
from mcp_django.protocol.errors import INVALID_PARAMS, ProtocolError
from mcp_django.protocol.methods import parse_params
from mcp_django.protocol.param_headers import check_params
from mcp_django.protocol.results import ListResult, ToolResult


def find_tool(name: str) -> Tool | None:
    """The tool of this name, whoever asks."""
    return RECORD_TOOLS.get(name) or registry.tools.get(name)


def list_tools(context: CallContext, params: dict[str, Any]) -> ListResult:
    rights = Rights(context.request, context.principal)
    tools = [*RECORD_TOOLS.values(), *registry.tools.values()]
    found = [tool.definition for tool in tools if tool.exists_for(rights)]
    cursor = parse_params("tools/list", params).cursor
    return page(context, found, member="tools", cursor=cursor, key=lambda one: one.name)


def call_tool(context: CallContext, params: dict[str, Any]) -> Outcome:
    call = parse_params("tools/call", params)
    rights = Rights(context.request, context.principal)
    tool = find_tool(call.name)
    if tool is None or not tool.exists_for(rights):
        raise ProtocolError(INVALID_PARAMS, f"Unknown tool: {call.name[:80]}")
    # Not sooner: whether a tool has such headers is a secret of those who may see it.
    if context.sent_params is not None:
        check_params(context.sent_params, call.arguments or {}, tool.definition.param_headers)
    try:
        return tool.call(context, rights, call.arguments or {})
    except ToolError as error:
        return ToolResult.error(str(error))
