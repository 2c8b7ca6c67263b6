"""The page on which staff decide about prompts of code and of files."""

from __future__ import annotations

from typing import Any

from mcp_django.admin.decisions.base import SwitchAdmin, column
from mcp_django.exposure.registry import registry


class ExposedPromptAdmin(SwitchAdmin):
    """Every prompt that code or a file brings along. Staff switch them off and reword them."""

    things = staticmethod(lambda: registry.prompts)
    columns = ("title", "state", "decided by", "source", "groups")
    list_display = ("name", *map(column, columns))
    search_help_text = (
        "Every prompt that is defined in code or in a file. Prompts that staff write are under "
        "“Prompt templates”."
    )
    fieldsets = (
        (None, {"fields": ("about", "enabled", "groups", "based_on")}),
        ("What people are told", {"fields": ("title", "description")}),
    )

    def line(self, row: Any) -> dict[str, str]:
        source = "code" if row.name in registry.code_prompts else "file"
        about = f"{row.name}. {row.thing.definition.description}"
        return {**super().line(row), "source": source, "about": about}
