"""Forms that a person fills in far away: what they show, and what comes back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.core.exceptions import NON_FIELD_ERRORS
from django.forms import BaseForm, BooleanField, Field, Form
from django.forms.widgets import MultiWidget
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_django.exposure.form_schemas import form_schema
from mcp_django.exposure.function_arguments import check_plain
from mcp_django.protocol.revisions import Features


class ConfirmForm(Form):
    """Yes or no. Who sends it without a tick says no."""

    confirm = BooleanField(label=gettext_lazy("Yes, do this"), required=False)


class AskedForm:
    """One form as a question, and as the reader of what comes back."""

    def __init__(self, form: BaseForm | type[BaseForm], *, features: Features) -> None:
        self.form = form() if isinstance(form, type) else form
        self.schema = form_schema(self.form, flat=True, features=features)

    def is_valid(self, content: Mapping[str, Any]) -> bool:
        """Fill the form in, as a browser would have. `form.errors` says what is wrong."""
        form, shown = self.form, self.schema["properties"]
        strange = [
            name for name in shown if name in content and not fits(content[name], shown[name])
        ]
        form.data = dict(self._data({**content, **dict.fromkeys(strange)}))
        form.is_bound = True
        form.full_clean()
        for name in strange:
            form.errors.pop(name, None)
            form.add_error(name, _("This cannot be an answer."))
        return form.is_valid()

    def faults(self) -> str:
        """What is wrong with the answer, for a person."""
        lines = []
        for name, errors in self.form.errors.items():
            label = "" if name == NON_FIELD_ERRORS else f"{self.form[name].label}: "
            lines.append(label + " ".join(str(one) for one in errors))
        return "\n".join(lines)

    def _data(self, content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        form, shown = self.form, self.schema["properties"]
        for name, field in form.fields.items():
            if name in shown and name in content:
                value = written(content[name], shown[name])
            else:
                # What nobody was shown, or left as it was.
                value = field.prepare_value(form.get_initial_for_field(field, name))
            yield from controls(form.add_prefix(name), field, value)


def written(value: Any, schema: Mapping[str, Any]) -> Any:
    """As a browser would send it: fields for texts take a number for one."""
    is_number = isinstance(value, (int, float))
    return str(value) if is_number and schema["type"] == "string" else value


def controls(name: str, field: Field, value: Any) -> Iterator[tuple[str, Any]]:
    """The names under which the widget of a field looks for a value."""
    widget = field.widget
    if not isinstance(widget, MultiWidget):
        yield name, value
        return
    whole = read_moment(value) if isinstance(value, str) else value
    parts = [value] if isinstance(whole, str) else widget.decompress(whole) or []
    names: list[str] = widget.widgets_names  # type: ignore[attr-defined]  # not in the stubs
    for suffix, part in zip(names, parts, strict=False):
        yield name + suffix, part


def read_moment(text: str) -> Any:
    """A date with a time, or the text where it is none."""
    try:
        return parse_datetime(text) or text
    except ValueError:
        return text


def fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether the form may look at it: fields make a text, or a yes, of anything."""
    try:
        check_plain(value, deepest=1)
    except (ValueError, RecursionError):
        return False
    if schema["type"] == "boolean":
        return isinstance(value, bool)
    if schema["type"] == "array":
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    return value is None or (isinstance(value, (str, int, float)) and not isinstance(value, bool))
