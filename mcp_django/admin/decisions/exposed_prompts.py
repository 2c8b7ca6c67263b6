"""The page on which staff decide about prompts of code and of files."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import admin

from mcp_django.admin.decisions.base import (
    DecisionAdmin,
    ListedThing,
    SwitchForm,
    names_of_groups,
)
from mcp_django.exposure.decisions import Exposed
from mcp_django.exposure.primitives import Prompt
from mcp_django.exposure.registry import registry
from mcp_django.models import ExposedPrompt


class ExposedPromptForm(SwitchForm):
    class Meta:
        model = ExposedPrompt
        fields = ("enabled", "title", "description", "groups")

    @staticmethod
    def find(row: ExposedPrompt) -> Prompt | None:
        return registry.prompts.get(row.name)


@dataclass(frozen=True, kw_only=True)
class ListedPrompt(ListedThing):
    """One line of the list."""

    source: str = ""
    #: Whether it is so because staff decided it.
    is_decided: bool = False


class ExposedPromptAdmin(DecisionAdmin):
    """Every prompt that code or a file brings along. Staff switch them off and reword them."""

    form = ExposedPromptForm
    line_class = ListedPrompt
    decided_fieldsets = [
        (None, {"fields": ["about", "enabled", "groups"]}),
        ("What people are told", {"fields": ["title", "description"]}),
    ]

    def things(self) -> dict[str, Prompt]:
        return dict(sorted(registry.prompts.items()))

    def line(self, prompt: Prompt, row: ExposedPrompt | None, exposed: Exposed) -> ListedPrompt:
        name = prompt.definition.name
        return ListedPrompt(
            name=name,
            url=self.change_url(name),
            state="off" if row is not None and row.enabled is False else "on",
            title=row.title if row is not None and row.title else prompt.definition.title,
            source="Code" if name in registry.code_prompts else "File",
            is_decided=row is not None and row.enabled is not None,
            groups="everybody" if row is None else names_of_groups(row.groups.all()),
        )

    @admin.display(description="prompt")
    def about(self, row: ExposedPrompt) -> str:
        prompt = registry.prompts.get(row.name)
        if prompt is None:
            return f"{row.name}: code no longer has this prompt, so this has no effect."
        return f"{row.name}. {prompt.definition.description}"
