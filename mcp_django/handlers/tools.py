"""tools/list and tools/call."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import nullcontext
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.utils.translation import get_language

from mcp_django.auth.resource import bearer_challenge
from mcp_django.auth.throttles import check_tool, count_refused_write, dry_running, is_dry_run
from mcp_django.context import CallContext
from mcp_django.exceptions import NotFound, ToolError
from mcp_django.exposure.admin_bridge import rights as write_rights
from mcp_django.exposure.permissions import Rights, is_plain
from mcp_django.exposure.primitives import Outcome, Tool
from mcp_django.exposure.registry import registry
from mcp_django.exposure.tools.decisions import approved, tool_definition, tool_exists
from mcp_django.exposure.tools.functions import FunctionTool
from mcp_django.exposure.tools.records import RECORD_TOOLS, HistoryTool, WriteTool
from mcp_django.handlers.lists import page
from mcp_django.principal import SCOPES, CachePerPrincipal, Principal
from mcp_django.protocol.errors import INVALID_PARAMS, INVALID_REQUEST, ProtocolError, named
from mcp_django.protocol.headers import check_params
from mcp_django.protocol.methods import parse_params
from mcp_django.protocol.results import ListResult, ToolResult

if TYPE_CHECKING:
    from mcp_django.exposure.tools.actions import ActionTools


def find_tool(name: str) -> Tool | None:
    """The tool of this name, whoever asks."""
    return RECORD_TOOLS.get(name) or registry.tools.get(name)


def every_tool() -> tuple[Tool, ...]:
    return (*RECORD_TOOLS.values(), *registry.tools.values())


def action_tools(context: CallContext, rights: Rights) -> ActionTools | None:
    """The actions of the admin as tools of this caller. None without the admin."""
    if not apps.is_installed("django.contrib.admin"):
        return None
    # The admin is optional.
    from mcp_django.exposure.tools.actions import ActionTools

    return ActionTools(context, rights)


def offered_tools(context: CallContext, rights: Rights) -> tuple[Tool, ...]:
    """Every tool, with those actions that this caller is offered."""
    actions = action_tools(context, rights)
    return (*every_tool(), *(() if actions is None else actions.all()))


def list_tools(context: CallContext, params: dict[str, Any]) -> ListResult:
    # Once: tools may come and go while the list is being made.
    tools = every_tool()
    # What a client may ask for is listed, or it would never ask: `call_tool` says for which scope.
    rights = Rights(context.request, context.principal).with_grantable()
    actions = action_tools(context, rights)
    offered = (*tools, *(() if actions is None else actions.all()))
    found = [tool_definition(rights, tool) for tool in offered if tool_exists(rights, tool)]
    cursor = parse_params("tools/list", params).cursor
    # By name, and first the one that says which models there are.
    result = page(
        context,
        found,
        member="tools",
        cursor=cursor,
        key=lambda tool: f" {tool.name}" if tool.name == "list_models" else tool.name,
    )
    asks = any(asks_site(tool, rights) for tool in tools)
    is_constant = not asks and (actions is None or actions.is_constant())
    if cursor is None and is_constant and is_plain(context.principal.user):
        kept_lists.of(context.principal)[get_language()] = tools, result
    return result


#: By language: the first page of a principal who is known, behind the tools that it is made from.
kept_lists = CachePerPrincipal[str | None, tuple[tuple[Tool, ...], ListResult]]()


def kept_list(principal: Principal, params: dict[str, Any]) -> ListResult | None:
    """What `list_tools` would answer, if that is known. Asks nobody, so it is for event loops."""
    tools, result = kept_lists.of(principal).get(get_language(), ((), None))
    return result if tools == every_tool() and params.keys() <= {"_meta"} else None


def asks_site(tool: Tool, rights: Rights) -> bool:
    """Whether code of the site decides who may know of the tool."""
    if isinstance(tool, WriteTool):
        return write_rights.asks_site(rights)
    if isinstance(tool, HistoryTool):
        return not tool.is_constant(rights)
    if tool.name in RECORD_TOOLS:
        return False
    is_ours = isinstance(tool, FunctionTool) and type(tool).exists_for is FunctionTool.exists_for
    return not is_ours or callable(tool.permission)  # type: ignore[attr-defined]  # is_ours


def existing_tool(context: CallContext, rights: Rights, name: str) -> Tool | None:
    """Return the tool of this name if this caller may know of it."""
    tool = find_tool(name)
    if tool is None and (actions := action_tools(context, rights)) is not None:
        tool = actions.find(name)
    return tool if tool is not None and tool_exists(rights, tool) else None


def check_grantable_scopes(context: CallContext, name: str) -> None:
    """Raise ProtocolError with status 403 if the tool would exist with more scopes.

    Nothing is done with these scopes but to look (MCP 2025-11-25, scope challenge handling).
    """
    principal = context.principal

    def opens(scopes: Collection[str]) -> bool:
        rights = Rights(context.request, principal.with_scopes(scopes))
        return existing_tool(context, rights, name) is not None

    missing = [scope for scope in SCOPES if scope in principal.grantable - principal.scopes]
    if not missing or not opens(missing):
        return
    choices = (combinations(missing, size) for size in range(1, len(missing) + 1))
    needed = next(filter(opens, chain.from_iterable(choices)), missing)
    wanted = [scope for scope in SCOPES if scope in principal.scopes.union(needed)]
    raise ProtocolError(
        INVALID_REQUEST,
        f"This needs the scope {' and '.join(needed)}. Sign in again and allow it.",
        status=403,
        headers=(("WWW-Authenticate", bearer_challenge(wanted, error="insufficient_scope")),),
    )


def call_tool(context: CallContext, params: dict[str, Any]) -> Outcome:
    call = parse_params("tools/call", params)
    rights = Rights(context.request, context.principal)
    tool = existing_tool(context, rights, call.name)
    if tool is None:
        check_grantable_scopes(context, call.name)
        missing = NotFound("There is no such tool.")
        raise ProtocolError(INVALID_PARAMS, f"Unknown tool: {named(call.name)}") from missing
    arguments: Mapping[str, Any] = call.arguments or {}
    if (resolve := getattr(tool, "resolve", None)) is not None:
        try:
            tool, arguments = resolve(rights, arguments)
        except ToolError as error:
            return ToolResult.of_error(error)
    context.may_write = not tool_definition(rights, tool).annotations.read_only
    # Not sooner: whether a tool has such headers is a secret of those who may see it.
    if context.sent_params is not None:
        check_params(context.sent_params, arguments, tool.definition.param_headers)
    decided = rights.exposed.decisions.tools.get(tool.name)
    is_tried = is_dry_run(tool.name, arguments)
    try:
        check_tool(context, tool.name, limit=None if decided is None else decided.calls_per_minute)
        with dry_running(context) if is_tried else nullcontext():
            return tool.call(context, rights, approved(context, rights, tool, arguments))
    except ToolError as error:
        return ToolResult.of_error(error if is_tried else count_refused_write(context, error))
