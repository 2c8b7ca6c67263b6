"""The page on which staff decide about prompts of code and of files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import Group
from django.forms import TypedChoiceField
from django.http import HttpRequest

from mcp_django.admin.decided import DecisionAdmin, told_fields
from mcp_django.admin.decision_forms import AS_IN_CODE, DecisionForm, names_of_groups
from mcp_django.admin.tool_forms import WORDS, enabled_of
from mcp_django.admin.tools import Listed
from mcp_django.exposure.registry import registry
from mcp_django.models import ExposedPrompt
from mcp_django.principal import DEFAULT_SERVER

#: Where prompts come from.
SOURCES = {"code": "Code", "file": "File"}


class ExposedPromptForm(DecisionForm):
    enabled = TypedChoiceField(required=False, coerce=enabled_of, empty_value=None, label="State")

    class Meta:
        model = ExposedPrompt
        fields = ("enabled", "title", "description", "groups")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.prompt = registry.prompts.get(self.instance.name)
        # For people who only look there are no fields of the row.
        if self.prompt is None or "title" not in self.fields:
            return
        enabled: Any = self.fields["enabled"]
        enabled.choices = [("", f"{AS_IN_CODE} (on)"), ("on", "on"), ("off", "off")]
        self.initial["enabled"] = {True: "on", False: "off"}.get(self.instance.enabled, "")
        # Attributes are escaped; help texts are not.
        self.fields["title"].widget.attrs["placeholder"] = self.prompt.definition.title
        self.fields["description"].widget.attrs["placeholder"] = self.prompt.definition.description

    def is_known(self) -> bool:
        return self.prompt is not None

    def told(self, row: Any, groups: Iterable[Group]) -> dict[str, str]:
        return {
            "state": WORDS[row.enabled],
            "title": row.title or AS_IN_CODE,
            "description": row.description or AS_IN_CODE,
            "groups": names_of_groups(groups),
        }


TOLD = told_fields(ExposedPromptForm, ("state", "title", "description", "groups"))


@admin.register(ExposedPrompt)
class ExposedPromptAdmin(DecisionAdmin):
    """Every prompt that code or a file brings along. Staff switch them off and reword them."""

    form = ExposedPromptForm
    key = "name"

    def exists(self, key: str) -> bool:
        return key in registry.prompts

    def listed(self, request: HttpRequest) -> dict[str, Any]:
        words = request.GET.get("q", "")[:100].lower().split()
        every = list(self._every(request))
        return {
            "lines": [one for one in every if one.holds(words)],
            "total": len(every),
            "asked": {"q": request.GET.get("q", "")[:100]},
        }

    def _every(self, request: HttpRequest) -> Iterator[Listed]:
        rows = {
            row.name: row
            for row in self.get_queryset(request)
            .filter(server=DEFAULT_SERVER)
            .prefetch_related("groups")
        }
        for name, prompt in sorted(registry.prompts.items()):
            row = rows.pop(name, None)
            yield Listed(
                name=name,
                url=self.change_url(name),
                state="off" if row is not None and row.enabled is False else "on",
                title=row.title if row is not None and row.title else prompt.definition.title,
                source=SOURCES["code" if name in registry.code_prompts else "file"],
                is_decided=row is not None and row.enabled is not None,
                groups="everybody" if row is None else names_of_groups(row.groups.all()),
            )
        for name, row in sorted(rows.items()):
            yield Listed(name=name, url=self.change_url(str(row.pk)), state="gone")

    # The page of one prompt

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if not self.has_change_permission(request, obj):
            return [(None, {"fields": ["about", *TOLD]})]
        if not self.exists(obj.name):
            return [(None, {"fields": ["about", "reset", "based_on"]})]
        return [
            (None, {"fields": ["about", "enabled", "groups"]}),
            ("What people are told", {"fields": ["title", "description"]}),
            ("Start again", {"fields": ["reset", "based_on"]}),
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ["about", *TOLD]

    @admin.display(description="prompt")
    def about(self, row: ExposedPrompt) -> str:
        prompt = registry.prompts.get(row.name)
        if prompt is None:
            return f"{row.name}: code has no such prompt any more, so this decides nothing."
        return f"{row.name}. {prompt.definition.description}"
