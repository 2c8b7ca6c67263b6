"""A field of a form that is a list of small forms: rows that people add, fill in and order.

As a field it needs no place of its own in a page, so every skin of the admin shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.forms import Field, Form, Widget
from django.forms.formsets import BaseFormSet
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

if TYPE_CHECKING:
    Rows = BaseFormSet[Form]
else:
    Rows = BaseFormSet  # it takes no subscript when it runs


class FormsetWidget(Widget):
    """Copied for each form, so it holds the rows of that form: with what is wrong with them."""

    template = "mcp_django/formset.html"

    def __init__(self, formset_class: type[Rows], *, row: str) -> None:
        super().__init__()
        self.formset_class = formset_class
        self.row = row
        #: What the rows were before, to tell those that people did not touch.
        self.initial: list[dict[str, Any]] = []
        self._rows: Rows | None = None

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> Rows:
        if self._rows is None or self._rows.data is not data:
            self._rows = self.formset_class(data, prefix=name, initial=self.initial)
        return self._rows

    def id_for_label(self, id_: str) -> str:
        return ""  # each input in it has a label of its own

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        rows = value
        if not isinstance(rows, BaseFormSet):
            rows = self.formset_class(prefix=name, initial=value or [])
        return render_to_string(
            self.template, {"formset": rows, "name": name, "row": self.row, "attrs": attrs}
        )


class FormsetField(Field):
    """Its value is a list of the rows' cleaned data, in the order that people gave them."""

    widget: FormsetWidget

    def __init__(self, formset_class: type[Rows], *, row: str, **options: Any) -> None:
        widget = FormsetWidget(formset_class, row=row)
        super().__init__(required=False, widget=widget, **options)

    def clean(self, value: Rows) -> list[dict[str, Any]]:
        if not value.is_valid():
            errors = value.non_form_errors()
            raise ValidationError(list(errors) or f"Correct the {self.widget.row}s below.")
        return [form.cleaned_data for form in rows_of(value)]

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(data.has_changed())


def rows_of(formset: Rows) -> list[Form]:
    """The rows that count, in their order: without those that are empty or deleted."""
    ordered = formset.ordered_forms if formset.can_order else formset.forms
    return [form for form in ordered if form.has_changed() or form.initial]
