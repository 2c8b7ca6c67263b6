"""The page on which staff decide about tools: whether they are there, and what is said of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from mcp_django.admin.decided import DecisionAdmin, told_fields
from mcp_django.admin.decision_forms import names_of_groups
from mcp_django.admin.known_tools import SOURCES, KnownTool, known_tools
from mcp_django.admin.tool_forms import ExposedToolForm
from mcp_django.exposure.decisions import read_decisions
from mcp_django.exposure.overrides import Exposed
from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from mcp_django.models import ExposedTool
from mcp_django.principal import DEFAULT_SERVER

STATES = {"on": "On", "off": "Off", "gone": "Not in code any more"}
TOLD = told_fields(
    ExposedToolForm,
    ("state", "title", "description", "stricter", "confirmation", "calls per minute", "groups"),
)


@dataclass(frozen=True, kw_only=True)
class Listed:
    """One line of the list."""

    name: str
    url: str
    state: str
    title: str = ""
    source: str = ""
    label: str = ""
    #: Whether it is so because staff decided it.
    is_decided: bool = False
    annotation: str = ""
    extras: str = ""
    groups: str = ""
    warning: str = ""

    @property
    def state_name(self) -> str:
        return STATES[self.state]

    @property
    def source_name(self) -> str:
        return SOURCES.get(self.source, "")

    def holds(self, words: Iterable[str]) -> bool:
        text = f"{self.name} {self.title} {self.label} {self.groups}".lower()
        return all(word in text for word in words)


@admin.register(ExposedTool)
class ExposedToolAdmin(DecisionAdmin):
    """Every tool that there can be. Staff switch off what code offers, and on what admins have."""

    form = ExposedToolForm
    key = "name"

    def exists(self, key: str) -> bool:
        return key in known_tools()

    def listed(self, request: HttpRequest) -> dict[str, Any]:
        words = request.GET.get("q", "")[:100].lower().split()
        state, source = request.GET.get("state", ""), request.GET.get("source", "")
        every = list(self._every(request))
        found = [
            one
            for one in every
            if one.holds(words) and state in ("", one.state) and source in ("", one.source)
        ]
        return {
            "lines": found,
            "total": len(every),
            "states": list(STATES.items()),
            "sources": list(SOURCES.items()),
            "asked": {"q": request.GET.get("q", "")[:100], "state": state, "source": source},
        }

    def _every(self, request: HttpRequest) -> Iterator[Listed]:
        rows = {
            row.name: row
            for row in self.get_queryset(request)
            .filter(server=DEFAULT_SERVER)
            .prefetch_related("groups")
        }
        # As the rows are now, and not as this process knew them a moment ago.
        exposed = Exposed(registry.candidates, read_decisions(DEFAULT_SERVER))
        for tool in known_tools().values():
            yield self._line(tool, rows.pop(tool.name, None), exposed)
        for name, row in sorted(rows.items()):
            yield Listed(name=name, url=self.change_url(str(row.pk)), state="gone")

    def _line(self, tool: KnownTool, row: ExposedTool | None, exposed: Exposed) -> Listed:
        is_on = tool.is_on if row is None or row.enabled is None else row.enabled
        return Listed(
            name=tool.name,
            url=self.change_url(tool.name),
            state="on" if is_on else "off",
            title=row.title if row is not None and row.title else tool.definition.title,
            source=tool.source,
            label=tool.label,
            is_decided=row is not None and row.enabled is not None,
            annotation=annotation_of(tool, row),
            extras=extras_of(row),
            groups="everybody" if row is None else names_of_groups(row.groups.all()),
            warning=warning_of(tool, exposed) if is_on else tool.warning,
        )

    # The page of one tool

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if not self.has_change_permission(request, obj):
            return [(None, {"fields": ["about", *TOLD]})]
        if not self.exists(obj.name):
            return [(None, {"fields": ["about", "reset", "based_on"]})]
        return [
            (None, {"fields": ["about", "enabled", "groups"]}),
            ("What clients are told", {"fields": ["title", "description", "stricter"]}),
            ("Limits", {"fields": ["needs_confirmation", "calls_per_minute"]}),
            ("Start again", {"fields": ["reset", "based_on"]}),
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ["about", *TOLD]

    @admin.display(description="tool")
    def about(self, row: ExposedTool) -> str:
        tool = known_tools().get(row.name)
        if tool is None:
            return f"{row.name}: code has no such tool any more, so this decides nothing."
        of = f" of {tool.label}" if tool.label else ""
        asks = " It asks for a confirmation by itself." if tool.confirms_itself else ""
        return f"{row.name}. {SOURCES[tool.source]}{of}. {tool.definition.description}{asks}"


def annotation_of(tool: KnownTool, row: ExposedTool | None) -> str:
    """What clients are told that it does."""
    stricter = {} if row is None else row.annotations
    annotations = tool.definition.annotations
    if annotations.read_only and "readOnlyHint" not in stricter:
        return "reads"
    return "destroys" if annotations.destructive or "destructiveHint" in stricter else "changes"


def extras_of(row: ExposedTool | None) -> str:
    if row is None:
        return ""
    found = ["confirmed"] if row.needs_confirmation else []
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
