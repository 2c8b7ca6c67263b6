"""The form in which staff decide about one model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib.auth.models import Group
from django.forms import TypedChoiceField

from mcp_django.admin.decision_forms import AS_IN_CODE, DecisionForm, names_of_groups
from mcp_django.admin.field_choices import FieldChoicesField, Use
from mcp_django.exposure.declarations import Declaration
from mcp_django.exposure.guard import FILTER, GROUP, ORDER, RETURN
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from mcp_django.models import ExposedModel

#: Members of a row, with the use of fields that each narrows, and what people call it.
USES = {
    "fields": (RETURN, "Shown"),
    "filter_fields": (FILTER, "Filter"),
    "order_fields": (ORDER, "Order"),
    "group_fields": (GROUP, "Group"),
}


def candidate(label: str) -> ModelExposure | None:
    """What code allows of a model, before anybody decided."""
    found = (one for one in registry.candidates.values() if one.label == label.lower())
    return next(found, None)


def uses_of(code: ModelExposure) -> list[Use]:
    paths = Declaration(code).paths
    return [
        Use(name=name, title=title, allowed=[path.text for path in paths[use]])
        for name, (use, title) in USES.items()
    ]


def gone_from(code: ModelExposure, row: ExposedModel) -> list[str]:
    """Names that the row lists and code does not have any more."""
    return sorted(
        {
            str(name)
            for use in uses_of(code)
            for name in getattr(row, use.name) or ()
            if name not in use.allowed
        }
    )


class ExposedModelForm(DecisionForm):
    level = TypedChoiceField(
        required=False,
        coerce=int,
        empty_value=None,
        help_text="Each level holds those before it. What code does not allow is not offered.",
    )
    uses = FieldChoicesField(label="Fields")

    class Meta:
        model = ExposedModel
        fields = ("level", "groups", "notes")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.code = code = candidate(self.instance.label)
        if code is None:
            return
        self.fields["level"].choices = [  # type: ignore[attr-defined]  # a field with choices
            ("", f"{AS_IN_CODE} ({code.standard_level.label})"),
            *(choice for choice in Level.choices if choice[0] <= code.highest_level),
        ]
        uses = self.fields["uses"]
        uses.widget.uses = uses_of(code)
        uses.widget.gone = gone_from(code, self.instance)
        uses.initial = {name: getattr(self.instance, name) for name in USES}

    def is_known(self) -> bool:
        return self.code is not None

    def told(self, row: Any, groups: Iterable[Group]) -> dict[str, str]:
        return {
            "level": AS_IN_CODE if row.level is None else Level(row.level).label,
            **{title.lower(): told_names(getattr(row, name)) for name, (_, title) in USES.items()},
            "groups": names_of_groups(groups),
            "notes": row.notes or "none",
        }

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        for name, chosen in cleaned.get("uses", {}).items():
            setattr(self.instance, name, chosen)
        return cleaned


def told_names(names: Sequence[str] | None) -> str:
    if names is None:
        return AS_IN_CODE
    return ", ".join(str(name) for name in names) or "none"
