"""The form in which staff decide about one tool."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Group
from django.forms import (
    CheckboxSelectMultiple,
    IntegerField,
    MultipleChoiceField,
    TypedChoiceField,
)

from mcp_django.admin.decision_forms import AS_IN_CODE, DecisionForm, names_of_groups
from mcp_django.admin.known_tools import KnownTool, known_tools
from mcp_django.exposure.tool_decisions import MEMBERS
from mcp_django.models import ExposedTool
from mcp_django.models.exposure import STRICTER

#: What each stricter annotation tells clients.
ANNOTATIONS = {
    "readOnlyHint": "It changes something",
    "destructiveHint": "What it changes may be lost",
    "openWorldHint": "It reaches beyond this site",
}
WORDS = {None: AS_IN_CODE, True: "on", False: "off"}


def enabled_of(value: str) -> bool | None:
    return {"on": True, "off": False}.get(value)


class ExposedToolForm(DecisionForm):
    enabled = TypedChoiceField(required=False, coerce=enabled_of, empty_value=None, label="State")
    calls_per_minute = IntegerField(
        required=False,
        min_value=1,
        max_value=1_000_000,
        help_text="For each user. Empty: only the limit over all tools.",
    )
    stricter = MultipleChoiceField(
        required=False,
        widget=CheckboxSelectMultiple,
        label="Tell clients more strictly",
        help_text="Clients that are told so ask their people more often.",
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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tool = known_tools().get(self.instance.name)
        # For people who only look there are no fields of the row.
        if self.tool is not None and "title" in self.fields:
            self._fit(self.tool)

    def _fit(self, tool: KnownTool) -> None:
        """Offer what is stricter than code, and nothing else."""
        enabled: Any = self.fields["enabled"]
        enabled.choices = [
            ("", f"{AS_IN_CODE} ({WORDS[tool.is_on]})"),
            ("on", "on"),
            ("off", "off"),
        ]
        self.initial["enabled"] = {True: "on", False: "off"}.get(self.instance.enabled, "")
        # Attributes are escaped; help texts are not.
        self.fields["title"].widget.attrs["placeholder"] = tool.definition.title
        self.fields["description"].widget.attrs["placeholder"] = tool.definition.description
        stricter: Any = self.fields["stricter"]
        stricter.choices = [
            (name, text) for name, text in ANNOTATIONS.items() if not is_strict(tool, name)
        ]
        stricter.initial = list(self.instance.annotations)
        # Not what a tool without an argument for it would never be called with.
        if not tool.can_be_confirmed:
            confirmation = self.fields["needs_confirmation"]
            confirmation.disabled = True
            confirmation.help_text = (
                "This tool cannot be asked about: it has an argument of its own that is called "
                "“confirmation”."
            )

    def is_known(self) -> bool:
        return self.tool is not None

    def told(self, row: Any, groups: Iterable[Group]) -> dict[str, str]:
        limit = row.calls_per_minute
        return {
            "state": WORDS[row.enabled],
            "title": row.title or AS_IN_CODE,
            "description": row.description or AS_IN_CODE,
            "stricter": ", ".join(sorted(row.annotations)) or AS_IN_CODE,
            "confirmation": "needed" if row.needs_confirmation else AS_IN_CODE,
            "calls per minute": "no limit of its own" if limit is None else str(limit),
            "groups": names_of_groups(groups),
        }

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if "stricter" in cleaned:
            self.instance.annotations = {name: STRICTER[name] for name in cleaned["stricter"]}
        return cleaned


def is_strict(tool: KnownTool, annotation: str) -> bool:
    value = getattr(tool.definition.annotations, MEMBERS[annotation])
    return bool(value is STRICTER[annotation])
