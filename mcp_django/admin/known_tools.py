"""Every tool that there can be: ours, functions of the site and actions of the admin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mcp_django.admin.exposure_forms import candidate
from mcp_django.exposure.action_definitions import UNDECLARED, definition_of
from mcp_django.exposure.action_names import action_names, actions_of
from mcp_django.exposure.compat import AdminAction
from mcp_django.exposure.guarded_calls import confirms_itself, takes_token
from mcp_django.exposure.record_tools import RECORD_TOOLS
from mcp_django.exposure.registry import registry
from mcp_django.exposure.tools import Tool
from mcp_django.protocol.results import ToolDefinition

#: Where tools come from.
SOURCES = {"generic": "Generic", "function": "Function", "action": "Admin action"}


@dataclass(frozen=True, kw_only=True)
class KnownTool:
    """One tool as code has it, whoever may call it."""

    definition: ToolDefinition
    source: str
    #: Whether it is there while staff decided nothing.
    is_on: bool = True
    confirms_itself: bool = False
    can_be_confirmed: bool = True
    #: The model of an action.
    label: str = ""
    #: What staff should know before they switch it on.
    warning: str = ""

    @property
    def name(self) -> str:
        return self.definition.name


def known_tools() -> dict[str, KnownTool]:
    """By name, in the order of sources and names."""
    found = [
        *(plain(tool, source="generic") for tool in RECORD_TOOLS.values()),
        *(plain(tool, source="function") for tool in registry.tools.values()),
        *known_actions(),
    ]
    order = list(SOURCES)
    return {one.name: one for one in sorted(found, key=lambda one: order.index(one.source))}


def plain(tool: Tool, *, source: str) -> KnownTool:
    return KnownTool(
        definition=tool.definition,
        source=source,
        confirms_itself=confirms_itself(tool),
        can_be_confirmed=takes_token(tool),
    )


def known_actions() -> Iterator[KnownTool]:
    names = action_names(registry)
    functions: dict[tuple[str, str], Any] = {}
    for key, function in actions_of(registry):
        # What an admin class tells comes after what only an exposure names.
        functions[key] = function or functions.get(key)
    for name, (label, action) in sorted(names.keys.items()):
        function = functions.get((label, action))
        text = getattr(function, "short_description", "") or getattr(function, "label", "")
        made = AdminAction(
            name=action,
            function=function,
            description=str(text) or action.replace("_", " ").capitalize(),
        )
        code = candidate(label)
        yield KnownTool(
            definition=definition_of(name, made),
            source="action",
            is_on=code is not None and action in code.actions,
            confirms_itself=True,
            label=label,
            warning=UNDECLARED if function is not None and made.permissions is None else "",
        )
