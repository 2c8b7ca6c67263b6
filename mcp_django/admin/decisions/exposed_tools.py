"""The page on which staff decide about tools: whether they are there, and what is said of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import Group
from django.forms import CheckboxSelectMultiple, IntegerField, MultipleChoiceField

from mcp_django.admin.decisions.base import (
    AS_IN_CODE,
    BulkDecision,
    DecisionAdmin,
    ListedThing,
    SwitchForm,
    names_of_groups,
)
from mcp_django.admin.decisions.exposed_models import known_models
from mcp_django.exposure.admin_bridge.compat import AdminAction
from mcp_django.exposure.decisions import Exposed
from mcp_django.exposure.primitives import Tool
from mcp_django.exposure.registry import registry
from mcp_django.exposure.tools.actions import (
    UNDECLARED,
    action_definition,
    action_names,
    actions_of,
)
from mcp_django.exposure.tools.decisions import MEMBERS
from mcp_django.exposure.tools.records import RECORD_TOOLS
from mcp_django.levels import Level
from mcp_django.models import ExposedTool
from mcp_django.models.exposure import STRICTER
from mcp_django.protocol.results import ToolDefinition

# Every tool that there can be: ours, functions of the site and actions of the admin.

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
        *(known_tool(tool, source="generic") for tool in RECORD_TOOLS.values()),
        *(known_tool(tool, source="function") for tool in registry.tools.values()),
        *known_actions(),
    ]
    order = list(SOURCES)
    return {one.name: one for one in sorted(found, key=lambda one: order.index(one.source))}


def known_tool(tool: Tool, *, source: str) -> KnownTool:
    return KnownTool(
        definition=tool.definition,
        source=source,
        confirms_itself=tool.confirms_itself,
    )


def known_actions() -> Iterator[KnownTool]:
    names, models = action_names(registry), known_models()
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
        code = models.get(label)
        yield KnownTool(
            definition=action_definition(name, made),
            source="action",
            is_on=code is not None and action in code.actions,
            confirms_itself=True,
            label=label,
            warning=UNDECLARED if function is not None and made.permissions is None else "",
        )


# The form in which staff decide about one tool.

#: What each stricter annotation tells clients.
ANNOTATIONS = {
    "readOnlyHint": "It may change something",
    "destructiveHint": "It may overwrite or delete data",
    "openWorldHint": "It uses systems outside this site",
}


class ExposedToolForm(SwitchForm):
    calls_per_minute = IntegerField(
        required=False,
        min_value=1,
        max_value=1_000_000,
        help_text="For each user. Empty: only the limit over all tools.",
    )
    stricter = MultipleChoiceField(
        required=False,
        widget=CheckboxSelectMultiple,
        label="Stricter hints for clients",
        help_text="Clients then ask their users for permission more often.",
    )

    class Meta:
        model = ExposedTool
        fields = (
            "enabled",
            "title",
            "description",
            "groups",
            "needs_confirmation",
            "calls_per_minute",
        )

    @staticmethod
    def find(row: ExposedTool) -> KnownTool | None:
        return known_tools().get(row.name)

    def offer(self, thing: KnownTool) -> None:
        super().offer(thing)
        # What is stricter than code, and nothing else.
        stricter: Any = self.fields["stricter"]
        annotations = thing.definition.annotations
        stricter.choices = [
            (name, text)
            for name, text in ANNOTATIONS.items()
            if getattr(annotations, MEMBERS[name]) is not STRICTER[name]
        ]
        stricter.initial = list(self.instance.annotations)

    @staticmethod
    def words(row: Any, groups: Iterable[Group]) -> dict[str, str]:
        limit = row.calls_per_minute
        return {
            **SwitchForm.words(row, groups),
            "stricter": ", ".join(sorted(row.annotations)) or AS_IN_CODE,
            "confirmation": "needed" if row.needs_confirmation else AS_IN_CODE,
            "calls per minute": "no limit of its own" if limit is None else str(limit),
        }

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if "stricter" in cleaned:
            self.instance.annotations = {name: STRICTER[name] for name in cleaned["stricter"]}
        return cleaned


@dataclass(frozen=True, kw_only=True)
class ListedTool(ListedThing):
    """One line of the list."""

    source: str = ""
    label: str = ""
    #: Whether it is so because staff decided it.
    is_decided: bool = False
    annotation: str = ""
    extras: str = ""
    warning: str = ""

    searched = ("name", "title", "label", "groups")

    @property
    def source_name(self) -> str:
        return SOURCES.get(self.source, "")


def switch_on(tool: KnownTool, row: ExposedTool) -> bool:
    is_on = tool.is_on if row.enabled is None else row.enabled
    row.enabled = True
    return not is_on


def switch_off(tool: KnownTool, row: ExposedTool) -> bool:
    is_on = tool.is_on if row.enabled is None else row.enabled
    row.enabled = False
    return is_on


class ExposedToolAdmin(DecisionAdmin):
    """Every tool that there can be. Staff switch off what code offers, and on what admins have."""

    form = ExposedToolForm
    things = staticmethod(known_tools)
    line_class = ListedTool
    filters = {"state": ("state", ListedTool.states), "source": ("source", SOURCES)}
    bulk = {
        "on": BulkDecision(title="Switch on", decide=switch_on),
        "off": BulkDecision(title="Switch off", decide=switch_off),
    }
    decided_fieldsets = [
        (None, {"fields": ["about", "enabled", "groups"]}),
        ("What clients are told", {"fields": ["title", "description", "stricter"]}),
        ("Limits", {"fields": ["needs_confirmation", "calls_per_minute"]}),
    ]

    def line(self, tool: KnownTool, row: ExposedTool | None, exposed: Exposed) -> ListedTool:
        is_decided = row is not None and row.enabled is not None
        is_on = bool(row.enabled) if row is not None and is_decided else tool.is_on
        return ListedTool(
            name=tool.name,
            url=self.change_url(tool.name),
            state="on" if is_on else "off",
            title=row.title if row is not None and row.title else tool.definition.title,
            source=tool.source,
            label=tool.label,
            is_decided=is_decided,
            annotation=annotation_of(tool, row),
            extras=extras_of(row),
            groups="everybody" if row is None else names_of_groups(row.groups.all()),
            warning=warning_of(tool, exposed) if is_on else tool.warning,
        )

    @admin.display(description="tool")
    def about(self, row: ExposedTool) -> str:
        tool = known_tools().get(row.name)
        if tool is None:
            return f"{row.name}: code no longer has this tool, so this has no effect."
        of = f" of {tool.label}" if tool.label else ""
        asks = " It always asks for a confirmation." if tool.confirms_itself else ""
        return f"{row.name}. {SOURCES[tool.source]}{of}. {tool.definition.description}{asks}"


def annotation_of(tool: KnownTool, row: ExposedTool | None) -> str:
    """What the annotations say that the tool does."""
    stricter = {} if row is None else row.annotations
    annotations = tool.definition.annotations
    if annotations.read_only and "readOnlyHint" not in stricter:
        return "only reads"
    if annotations.destructive or "destructiveHint" in stricter:
        return "may overwrite or delete"
    return "adds or changes"


def extras_of(row: ExposedTool | None) -> str:
    if row is None:
        return ""
    found = ["needs confirmation"] if row.needs_confirmation else []
    if row.calls_per_minute is not None:
        found.append(f"{row.calls_per_minute} calls per minute")
    return ", ".join(found)


def warning_of(tool: KnownTool, exposed: Exposed) -> str:
    """Why a tool that is on is not there yet, or what to know of it."""
    if not tool.label:
        return tool.warning
    exposure = exposed.by_label.get(tool.label)
    level = Level.HIDDEN if exposure is None else exposure.standard_level
    if level >= Level.ACT:
        return tool.warning
    name = level.label.partition(":")[0]
    return f"Nobody gets it: {tool.label} is at the level “{name}”, and actions need “act”."
