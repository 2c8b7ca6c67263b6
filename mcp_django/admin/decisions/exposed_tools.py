"""The page on which staff decide about tools: whether they are there, and what is said of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.core.validators import MinValueValidator
from django.forms import CheckboxSelectMultiple, MultipleChoiceField

from mcp_django.admin.decisions.base import SwitchAdmin, SwitchForm, column, filter_by
from mcp_django.admin.decisions.exposed_models import known_models, word_of
from mcp_django.exposure.admin_bridge.compat import AdminAction
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
from mcp_django.models.exposure import STRICTER
from mcp_django.protocol.results import ToolDefinition

# Every tool that there can be: ours, functions of the site and actions of the admin.


@dataclass(frozen=True, kw_only=True)
class KnownTool:
    """One tool as code has it, whoever may call it."""

    definition: ToolDefinition
    #: "generic", "function" or "admin action".
    source: str
    #: Whether it is there while staff decided nothing.
    is_on: bool = True
    confirms_itself: bool = False
    #: The model of an action.
    label: str = ""
    #: Verbs of an action of which one is enough. Who may view may run what declares none.
    permissions: tuple[str, ...] = ("view",)
    #: What staff should know before they switch it on.
    warning: str = ""


def known_tools() -> dict[str, KnownTool]:
    """Return them by name."""
    tools = [
        KnownTool(
            definition=tool.definition,
            source=source,
            confirms_itself=tool.confirms_itself,
        )
        for source, tools in (("generic", RECORD_TOOLS), ("function", registry.tools))
        for tool in tools.values()
    ]
    return {tool.definition.name: tool for tool in (*tools, *known_actions())}


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
            source="admin action",
            is_on=code is not None and action in code.actions,
            confirms_itself=True,
            label=label,
            permissions=("view",) if made.permissions is None else made.permissions,
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
    stricter = MultipleChoiceField(
        required=False,
        widget=CheckboxSelectMultiple,
        label="Stricter hints for clients",
        help_text="Clients then ask their users for permission more often.",
    )

    def offer(self, thing: KnownTool) -> None:
        super().offer(thing)
        self.fields["calls_per_minute"].validators.append(MinValueValidator(1))
        # What is stricter than code, and nothing else.
        stricter: Any = self.fields["stricter"]
        annotations = thing.definition.annotations
        stricter.choices = [
            (name, text)
            for name, text in ANNOTATIONS.items()
            if getattr(annotations, MEMBERS[name]) is not STRICTER[name]
        ]
        stricter.initial = list(self.instance.annotations)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if "stricter" in cleaned:
            self.instance.annotations = {name: STRICTER[name] for name in cleaned["stricter"]}
        return cleaned


class ExposedToolAdmin(SwitchAdmin):
    """Every tool that there can be. Staff switch off what code offers, and on what admins have."""

    form = ExposedToolForm
    things = staticmethod(known_tools)
    columns = ("state", "decided by", "source", "effect", "remarks")
    list_display = ("name", *map(column, columns))
    list_filter = (
        *SwitchAdmin.list_filter,
        filter_by("source", "generic", "function", "admin action"),
    )
    search_help_text = (
        "Every tool that assistants could get. Actions of the admin are off until code or staff "
        "switch them on. Each person still gets only what the admin would let them do."
    )
    fieldsets = (
        (None, {"fields": ("about", "enabled", "groups", "based_on")}),
        ("What clients are told", {"fields": ("title", "description", "stricter")}),
        ("Limits", {"fields": ("needs_confirmation", "calls_per_minute")}),
    )

    def line(self, row: Any) -> dict[str, str]:
        tool, annotations = row.thing, row.thing.definition.annotations
        effect = "adds or changes"
        if annotations.read_only and "readOnlyHint" not in row.annotations:
            effect = "only reads"
        elif annotations.destructive or "destructiveHint" in row.annotations:
            effect = "may overwrite or delete"
        of = f" of {tool.label}" if tool.label else ""
        asks = " It always asks for a confirmation." if tool.confirms_itself else ""
        return {
            **super().line(row),
            "source": tool.source,
            "effect": effect,
            "remarks": ". ".join(self.remarks(tool, row)),
            "about": f"{row.name}. {tool.source.capitalize()}{of}. "
            f"{tool.definition.description}{asks}",
        }

    def remarks(self, tool: KnownTool, row: Any) -> Iterator[str]:
        """Yield limits, why a tool that is on is not there yet, and what to know of it."""
        if row.groups.all():
            yield f"Only for {row.words['groups']}"
        if row.needs_confirmation:
            yield "Needs confirmation"
        if row.calls_per_minute is not None:
            yield f"{row.calls_per_minute} calls per minute"
        exposure = row.exposed.by_label.get(tool.label)
        level = Level.HIDDEN if exposure is None else exposure.standard_level
        if tool.label and self.is_on(row) and level < Level.ACT:
            name = word_of(level)
            yield f"Nobody gets it: {tool.label} is at the level “{name}”, and actions need “act”"
        elif tool.warning:
            yield tool.warning
