"""Which fields records show, and what else they are good for: one table of checkboxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from django.core.exceptions import ValidationError
from django.forms import Field, Widget
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

#: By use: the chosen names, or None for those of code.
Chosen: TypeAlias = "dict[str, list[str] | None]"


@dataclass(frozen=True, kw_only=True)
class Use:
    """A column of the table: one use of fields, and the names that code allows for it."""

    name: str
    title: str
    allowed: Sequence[str]


class FieldChoicesWidget(Widget):
    template = "mcp_django/field_choices.html"

    def __init__(self) -> None:
        super().__init__()
        self.uses: Sequence[Use] = ()
        #: Names that the row has and code does not.
        self.gone: Sequence[str] = ()

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Chosen:
        return {
            use.name: None
            if data.get(f"{name}-{use.name}-code")
            else list(data.getlist(f"{name}-{use.name}"))
            for use in self.uses
        }

    def id_for_label(self, id_: str) -> str:
        return ""  # each checkbox has a name of its own

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        chosen: Mapping[str, Any] = value or {}
        names = dict.fromkeys(path for use in self.uses for path in use.allowed)
        context = {
            "name": name,
            "attrs": attrs or {},
            "uses": [(use, chosen.get(use.name) is None) for use in self.uses],
            "rows": [(path, [cell(use, path, chosen) for use in self.uses]) for path in names],
            "gone": self.gone,
        }
        return SafeString(render_to_string(self.template, context))


def cell(use: Use, path: str, chosen: Mapping[str, Any]) -> tuple[Use, bool, bool]:
    """The column, whether code allows the field there, and whether it is ticked."""
    listed = chosen.get(use.name)
    ticked = use.allowed if listed is None else listed
    return use, path in use.allowed, path in ticked


class FieldChoicesField(Field):
    """Its value has a list for each use that staff narrowed. Names that code has not are wrong."""

    widget: FieldChoicesWidget

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, widget=FieldChoicesWidget(), **options)

    def clean(self, value: Chosen) -> Chosen:
        for use in self.widget.uses:
            unknown = sorted(set(value[use.name] or ()) - set(use.allowed))
            if unknown:
                names = ", ".join(name[:60] for name in unknown[:5])
                raise ValidationError(
                    f"{use.title}: code does not allow {names}. Nothing was saved."
                )
        # In the order of code, and each once.
        return {
            use.name: None
            if value[use.name] is None
            else [path for path in use.allowed if path in set(value[use.name] or ())]
            for use in self.widget.uses
        }
