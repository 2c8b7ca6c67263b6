"""One JSON value -> what a browser would send once a person had put it into a field.

The field's own widget is rendered with the value and its controls are read back, which needs no
knowledge of the widget. Where a widget reads one text by the field's name, as most do, that text
is all there is to send.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, TypeAlias

from django.contrib.admin.widgets import ManyToManyRawIdWidget, RelatedFieldWidgetWrapper
from django.core.exceptions import ValidationError
from django.forms import fields, widgets
from django.forms.models import ModelChoiceField, ModelMultipleChoiceField
from django.http import QueryDict
from django.utils import timezone
from django.utils.datastructures import MultiValueDict

from mcp_django.exposure.admin_controls import read_page, successful
from mcp_django.exposure.admin_parsing import (
    EXACT,
    Unfit,
    is_same,
    parsed,
    shown_value,
    takes_text,
)
from mcp_django.exposure.admin_uploads import is_taken_away, uploaded

Pair: TypeAlias = tuple[str, str]
#: What a key or a text means to a field of related records: a key, keys, or None. Raises Unfit.
Find: TypeAlias = Callable[[Any, Any], Any]

#: Choices that a sentence names.
MOST_ALLOWED = 20
#: Records or choices in one list.
MOST_ITEMS = 1000
#: What reads one text, or several, by the name of the field.
PLAIN_READERS = (
    widgets.Widget.value_from_datadict,
    widgets.ChoiceWidget.value_from_datadict,
    widgets.SelectMultiple.value_from_datadict,
)


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """What is posted of one field."""

    pairs: list[Pair]
    file: Any = None


def encode(bound: Any, value: Any, *, find: Find) -> Encoded:
    """What is posted of a bound field to give it this value. Raises Unfit."""
    field = bound.field
    if isinstance(field, fields.FileField):
        if value is None:
            return Encoded(pairs=[is_taken_away(bound)])
        return Encoded(pairs=[], file=uploaded(value))
    if isinstance(field, ModelChoiceField):
        pairs = related_pairs(bound, find(field, value))
    elif isinstance(field, fields.ChoiceField):
        pairs = choice_pairs(bound, value)
    else:
        pairs = value_pairs(bound, parsed(field, value))
    if field.show_hidden_initial:
        # Without it a value that is already there would count as changed.
        pairs += successful(bound.as_hidden(only_initial=True))
    return Encoded(pairs=pairs)


def as_shown(bound: Any) -> list[Pair]:
    """What is posted of a field that nobody touched."""
    field = bound.field
    if isinstance(field, ModelChoiceField) and reads_plainly(field):
        # A list of thousands need not be rendered for one of them.
        given = bound.value()
        pairs = related_pairs(bound, list(given or []) if is_list(field) else given)
        hidden = bound.as_hidden(only_initial=True) if field.show_hidden_initial else ""
        return pairs + successful(hidden)
    return successful(str(bound))


def related_pairs(bound: Any, found: Any) -> list[Pair]:
    field, name = bound.field, bound.html_name
    if not reads_plainly(field):
        return rendered(bound, found)
    if not is_list(field):
        return [(name, "" if found is None else str(field.prepare_value(found)))]
    keys = [str(field.prepare_value(one)) for one in found]
    if isinstance(inner(field.widget), ManyToManyRawIdWidget):
        return [(name, ",".join(keys))]
    return [(name, key) for key in keys]


def choice_pairs(bound: Any, value: Any) -> list[Pair]:
    """Checked first: a select that does not know a value sends its first option."""
    field, name = bound.field, bound.html_name
    if isinstance(field, fields.MultipleChoiceField):
        if not isinstance(value, list) or len(value) > MOST_ITEMS:
            raise Unfit(f"{shown_value(value)} is not a list of choices.")
        texts = [chosen(field, one) for one in value]
        if reads_plainly(field):
            return [(name, text) for text in texts]
        return rendered(bound, texts)
    text = "" if value is None or value == "" else chosen(field, value)
    return [(name, text)] if reads_plainly(field) else rendered(bound, text)


def chosen(field: Any, value: Any) -> str:
    # Some fields are open, with choices as suggestions.
    if isinstance(value, (str, int, float)) and field.valid_value(str(value)):
        return str(value)
    allowed = [str(key) for key in flat_keys(field.choices) if key not in ("", None)]
    names = ", ".join(allowed[:MOST_ALLOWED]) + (", ..." if allowed[MOST_ALLOWED:] else "")
    raise Unfit(f"{shown_value(value)} is not one of: {names}.")


def flat_keys(choices: Any) -> list[Any]:
    keys: list[Any] = []
    for key, label in choices:
        is_group = isinstance(label, (list, tuple))
        keys += [one for one, _ in label] if is_group else [key]
    return keys


def value_pairs(bound: Any, value: Any) -> list[Pair]:
    pairs = pairs_of(bound, value)
    if value is None or isinstance(value, EXACT):
        check_understood(bound, pairs, value)
    return pairs


def pairs_of(bound: Any, value: Any) -> list[Pair]:
    field, name = bound.field, bound.html_name
    if isinstance(value, datetime) and isinstance(field.widget, widgets.SplitDateTimeWidget):
        # Rendering would cut the microseconds.
        local = timezone.make_naive(value) if timezone.is_aware(value) else value
        suffixes: list[str] = field.widget.widgets_names  # type: ignore[attr-defined]  # stubs
        texts = (local.date().isoformat(), local.time().isoformat())
        return [(name + suffix, text) for suffix, text in zip(suffixes, texts, strict=True)]
    if reads_plainly(field):
        text = text_of(field, value)
        if text is not None:
            return [(name, text)]
    return rendered(bound, value)


def text_of(field: fields.Field, value: Any) -> str | None:
    """The text that means a value whatever the language. None: the widget knows."""
    if value is None and not isinstance(field, fields.JSONField):
        return ""
    if isinstance(value, str) and takes_text(field):
        return value
    if isinstance(value, Decimal) and not field.localize:
        return f"{value:f}"
    if isinstance(value, (date, time)):
        try:
            field.to_python(value.isoformat())
        except ValidationError:
            return None
        return value.isoformat()
    return None


def check_understood(bound: Any, pairs: list[Pair], meant: Any) -> None:
    """Raise Unfit where the field would take the value for another one, as a list of years does
    that ends before it. What it refuses itself it says itself.
    """
    data = QueryDict(mutable=True)
    for name, value in pairs:
        data.appendlist(name, value)
    field = bound.field
    try:
        given = field.widget.value_from_datadict(data, MultiValueDict(), bound.html_name)
        got = field.clean(given)
    except ValidationError:
        return
    if meant is None and got not in field.empty_values:
        raise Unfit("This field must have a value.")
    if meant is not None and not is_same(meant, got):
        raise Unfit(f"This field cannot hold {shown_value(str(meant))}.")


def rendered(bound: Any, value: Any) -> list[Pair]:
    field, name = bound.field, bound.html_name
    try:
        pairs = successful(render(bound, field.prepare_value(value)))
        empty = read_page(render(bound, None)).loose.controls
    except Exception:  # Widgets were written for what their own pages send.
        raise Unfit(f"{shown_value(value)} is not a value for this field.") from None
    if not {key for key, _ in pairs} <= {name, *(control.name for control in empty)}:
        # A widget that does not escape what it shows must not fill in other fields.
        raise Unfit(f"{shown_value(value)} is not a value for this field.")
    return pairs


def render(bound: Any, value: Any) -> str:
    return str(
        bound.field.widget.render(
            bound.html_name, value, attrs={"id": "x"}, renderer=bound.form.renderer
        )
    )


def reads_plainly(field: fields.Field) -> bool:
    widget = inner(field.widget)
    return type(widget).value_from_datadict in PLAIN_READERS or isinstance(
        widget, ManyToManyRawIdWidget
    )


def is_list(field: fields.Field) -> bool:
    return isinstance(field, ModelMultipleChoiceField)


def inner(widget: widgets.Widget) -> Any:
    """Without the buttons that the admin puts beside it."""
    return widget.widget if isinstance(widget, RelatedFieldWidgetWrapper) else widget
