"""The page on which staff decide what there is of each model for assistants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import URLPattern

from mcp_django.admin.decided import DecisionAdmin, told_fields
from mcp_django.admin.decision_forms import names_of_groups
from mcp_django.admin.exposure_forms import USES, ExposedModelForm, candidate
from mcp_django.admin.looking import page_urls
from mcp_django.exposure.decisions import read_decisions
from mcp_django.exposure.declarations import Declaration
from mcp_django.exposure.guard import RETURN
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.overrides import Exposed
from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from mcp_django.models import ExposedModel
from mcp_django.principal import DEFAULT_SERVER

#: Why there is as much of a model as there is.
REASONS = {
    "code": "Code",
    "staff": "Staff",
    "waiting": "Waits for staff",
    "gone": "Not in code any more",
}

#: What people read who may only look.
TOLD = told_fields(
    ExposedModelForm,
    ("level", "groups", "notes", *(title.lower() for _, title in USES.values())),
)


@dataclass(frozen=True, kw_only=True)
class Listed:
    """One line of the list."""

    label: str
    title: str
    url: str
    reason: str
    level: Level = Level.HIDDEN
    shown: int = 0
    possible: int = 0
    groups: str = ""
    notes: str = ""

    @property
    def why(self) -> str:
        return REASONS[self.reason]

    @property
    def level_name(self) -> str:
        """Its first word: "read"."""
        return self.level.label.partition(":")[0]

    def holds(self, words: Iterable[str]) -> bool:
        text = f"{self.label} {self.title} {self.notes} {self.groups}".lower()
        return all(word in text for word in words)


@admin.register(ExposedModel)
class ExposedModelAdmin(DecisionAdmin):
    """Every model that there can be. Staff narrow what code opened, or open what it did not."""

    form = ExposedModelForm
    key = "label"

    def exists(self, key: str) -> bool:
        return candidate(key) is not None

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        row = super().get_object(request, object_id, from_field)
        if row is not None:
            row.label = row.label.lower()
        return row

    def get_urls(self) -> list[URLPattern]:
        # No label of a model is the name of one of these pages: labels have a dot.
        return [*page_urls(self), *super().get_urls()]

    # The list

    def listed(self, request: HttpRequest) -> dict[str, Any]:
        words = request.GET.get("q", "")[:100].lower().split()
        level, reason = request.GET.get("level", ""), request.GET.get("why", "")
        every = list(self._every(request))
        found = [
            one
            for one in every
            if one.holds(words)
            and level in ("", str(one.level.value))
            and reason in ("", one.reason)
        ]
        return {
            "lines": found,
            "total": len(every),
            "levels": [(str(one.value), one.label.partition(":")[0]) for one in Level],
            "reasons": list(REASONS.items()),
            "asked": {"q": request.GET.get("q", "")[:100], "level": level, "why": reason},
        }

    def _every(self, request: HttpRequest) -> Iterator[Listed]:
        rows = {
            row.label.lower(): row
            for row in self.get_queryset(request)
            .filter(server=DEFAULT_SERVER)
            .prefetch_related("groups")
        }
        # As the rows are now, and not as this process knew them a moment ago.
        exposed = Exposed(registry.candidates, read_decisions(DEFAULT_SERVER))
        for code in registry.candidates.values():
            row = rows.pop(code.label, None)
            yield self._line(code, row, exposed.exposures.get(code.model))
        for label, row in sorted(rows.items()):
            yield Listed(label=label, title="", url=self.change_url(str(row.pk)), reason="gone")

    def _line(
        self, code: ModelExposure, row: ExposedModel | None, found: ModelExposure | None
    ) -> Listed:
        reason = "code" if code.is_offered else "waiting"
        return Listed(
            label=code.label,
            title=str(code.model._meta.verbose_name_plural),
            url=self.change_url(code.label),
            reason=reason if row is None else "staff",
            level=Level.HIDDEN if found is None else found.standard_level,
            shown=0 if found is None else len(Declaration(found).paths[RETURN]),
            possible=len(Declaration(code).paths[RETURN]),
            groups=audience(row, found),
            notes="" if row is None else row.notes,
        )

    # The page of one model

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if not self.has_change_permission(request, obj):
            return [(None, {"fields": ["about", *TOLD]})]
        if candidate(obj.label) is None:
            return [(None, {"fields": ["about", "reset", "based_on"]})]
        return [
            (None, {"fields": ["about", "level", "groups", "notes"]}),
            ("Fields", {"fields": ["uses"]}),
            ("Start again", {"fields": ["reset", "based_on"]}),
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ["about", *TOLD]

    @admin.display(description="model")
    def about(self, row: ExposedModel) -> str:
        code = candidate(row.label)
        if code is None:
            return f"{row.label}: code has no such model any more, so this decides nothing."
        opened = "Code opened it" if code.is_offered else "It is in the admin and waits for staff"
        most = code.highest_level.label.partition(":")[0]
        name = code.model._meta.verbose_name
        return f"{row.label} ({name}). {opened}. Code allows at most: {most}."


def audience(row: ExposedModel | None, found: ModelExposure | None) -> str:
    if found is None:
        return "nobody"
    return names_of_groups([] if row is None else row.groups.all())
