"""One JSON value -> what a browser would send after a person had put it into a field.

Where a widget reads one text by the field's name, as most do, that text is all there is to send.
Other widgets are rendered, and their controls are read back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

from django.conf import settings
from django.contrib.admin.widgets import ManyToManyRawIdWidget, RelatedFieldWidgetWrapper
from django.core.exceptions import ValidationError
from django.forms import fields, widgets
from django.forms.models import ModelChoiceField, ModelMultipleChoiceField
from django.http import QueryDict
from django.utils import timezone
from django.utils.datastructures import MultiValueDict
from django.utils.dateparse import parse_date, parse_datetime, parse_duration, parse_time

from mcp_django.exposure.fields import log_once
from mcp_django.exposure.forms.files import FORM, file_of
from mcp_django.exposure.forms.html import read_page, successful
from mcp_django.exposure.forms.schemas import InvalidValue, example_of_parts, options
from mcp_django.exposure.functions.arguments import MOST_DIGITS, shown

# JSON values -> the Python values that form fields mean by them, before any locale is asked.


def parsed(field: fields.Field, value: Any) -> Any:
    """What the value means to this field; None if it is empty. Raises InvalidValue."""
    if isinstance(field, fields.BooleanField) and not isinstance(field, fields.NullBooleanField):
        return boolean(value)
    for kind, parse in PARSERS:
        if isinstance(field, kind):
            return None if value is None or value == "" else parse(value)
    if takes_text(field) and not (value is None or isinstance(value, str)):
        raise InvalidValue(f"{shown_value(value)} is not a text.")
    return value


def takes_text(field: fields.Field) -> bool:
    """Whether values are texts as they are. Fields of JSON and of arrays are CharFields, too."""
    is_own = type(field).prepare_value in (fields.Field.prepare_value, UUID_TEXT)
    return isinstance(field, fields.CharField) and is_own


UUID_TEXT = fields.UUIDField.prepare_value


def number(value: Any) -> Decimal:
    """Not parsed by the form: "1234.125" in a German form is 1234125."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise InvalidValue(f"{shown_value(value)} is not a number.")
    try:
        found = Decimal(str(value).strip())
    except InvalidOperation:
        raise InvalidValue(f"{shown_value(value)} is not a number.") from None
    # Written out, 1e999999999 would fill the memory.
    if not found.is_finite() or abs(found.adjusted()) > MOST_DIGITS:
        raise InvalidValue(f"{shown_value(value)} is out of range.")
    return found


def boolean(value: Any) -> bool:
    """Strictly: the text "false" would tick a box."""
    if not isinstance(value, bool):
        raise InvalidValue(f"{shown_value(value)} is not true or false.")
    return value


def by(parse: Callable[[str], Any], what: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        try:
            found = parse(value.strip()) if isinstance(value, str) else None
        except (ValueError, OverflowError):
            found = None
        if found is None:
            raise InvalidValue(f"{shown_value(value)} is not {what}.")
        return found

    return read


def instant(text: str) -> datetime | None:
    """A point in time. A day stands for its first instant."""
    found = parse_datetime(text)
    if found is not None and timezone.is_aware(found):
        local = timezone.localtime(found)
        return local if settings.USE_TZ else local.replace(tzinfo=None)
    return found


PARSERS: tuple[tuple[type[fields.Field], Callable[[Any], Any]], ...] = (
    (fields.NullBooleanField, boolean),
    (fields.IntegerField, number),
    (fields.SplitDateTimeField, by(instant, "a time such as 2026-01-31T14:30:00+00:00")),
    (fields.DateTimeField, by(instant, "a time such as 2026-01-31T14:30:00+00:00")),
    (fields.DateField, by(parse_date, "a day such as 2026-01-31")),
    (fields.TimeField, by(parse_time, "a time of day such as 14:30:00")),
    (fields.DurationField, by(parse_duration, "a duration such as P1DT2H30M")),
)
#: What forms compare by its value, so that it can be checked whether they understood it.
EXACT = (Decimal, bool, date, time, timedelta)


def is_same(meant: Any, got: Any) -> bool:
    if isinstance(meant, Decimal) and isinstance(got, float):
        return float(meant) == got
    if isinstance(meant, datetime) and isinstance(got, datetime):
        if timezone.is_naive(meant) and timezone.is_aware(got):
            got = timezone.make_naive(got)
        elif timezone.is_aware(meant):
            # Of times in the hour that comes twice no two zones are ever equal.
            meant, got = meant.astimezone(UTC), got.astimezone(UTC)
    return bool(meant == got)


def shown_value(value: Any) -> str:
    if value is None or isinstance(value, (str, int, float)):
        return shown(value)
    return "A list" if isinstance(value, list) else "An object"


# What is posted of a field.


#: A name and a text, or the list of an array.
Pair: TypeAlias = tuple[str, Any]
#: Takes a field of related records and a value of the call; returns a key, keys, or None. Raises
#: InvalidValue.
Find: TypeAlias = Callable[[Any, Any], Any]

#: Choices that a sentence names.
MOST_ALLOWED = 20
#: Records or choices in one list.
MOST_ITEMS = 1000
#: Methods that read one text, or several, by the name of the field.
PLAIN_READERS = (
    widgets.Widget.value_from_datadict,
    widgets.ChoiceWidget.value_from_datadict,
    widgets.SelectMultiple.value_from_datadict,
)


class Post:
    """What is posted of forms."""

    def __init__(self, *, user: Any) -> None:
        #: Whose uploads are files.
        self.user = user
        self.pairs: list[Pair] = []
        self.files: dict[str, Any] = {}

    def fill_in(self, bound: Any, value: Any, *, find: Find) -> None:
        """Give a bound field this value. Raises InvalidValue."""
        field = bound.field
        if isinstance(field, fields.FileField):
            if value is None:
                checkbox = getattr(field.widget, "clear_checkbox_name", None)
                if field.required or checkbox is None:
                    raise InvalidValue(f"This file cannot be taken away. To replace it: {FORM}.")
                self.pairs.append((checkbox(bound.html_name), "on"))
            else:
                self.files[bound.html_name] = file_of(value, user=self.user)
            return
        meant = meaning(field, value, find=find)
        pairs = pairs_of(bound, meant)
        is_exact = meant is None or isinstance(meant, EXACT)
        if is_exact and not isinstance(field, fields.ChoiceField) and not has_parts(field):
            check_understood(bound, pairs, meant)
        # Without its initial value a value that is already there would count as changed.
        self.pairs += pairs + initial_pairs(bound)


def as_shown(bound: Any) -> list[Pair]:
    """What is posted of a field that nobody touched, with the hidden controls that some fields are
    compared with.
    """
    field = bound.field
    if isinstance(field, ModelChoiceField) and reads_plainly(field):
        # A list of thousands need not be made for one of them.
        value, is_list = bound.value(), isinstance(field, ModelMultipleChoiceField)
        pairs = text_pairs(bound, list(value or []) if is_list else value) or []
    else:
        pairs = successful(bound.as_widget())
    return pairs + initial_pairs(bound)


def initial_pairs(bound: Any) -> list[Pair]:
    if not bound.field.show_hidden_initial:
        return []
    return successful(bound.as_hidden(only_initial=True))


def browser_only(form: Any) -> frozenset[str]:
    """The fields of an unbound form that cannot be sent without a browser: what they show cannot
    be read back. Some widgets are filled in by scripts, and code of a site may fail.
    """
    return frozenset(
        name
        for name, field in form.fields.items()
        if not (isinstance(field, fields.FileField) or is_djangos(field.widget))
        and untouched(form[name]) is None
    )


def untouched(bound: Any) -> list[Pair] | None:
    """What is posted of a field that nobody touched. None: its widget cannot show or read it."""
    try:
        pairs = as_shown(bound)
        if not reads_plainly(bound.field):
            read_back(bound, pairs)
    except Exception as error:
        model = getattr(getattr(bound.form, "_meta", None), "model", None)
        place = type(bound.form).__name__ if model is None else model._meta.label
        log_once(f"{place}.{bound.name}", "has a widget that needs a browser.", error)
        return None
    return pairs


def read_back(bound: Any, pairs: list[Pair]) -> Any:
    """What the widget of a field makes of what is posted."""
    widget, name = bound.field.widget, bound.html_name
    return widget.value_from_datadict(query_dict(pairs), MultiValueDict(), name)


def query_dict(pairs: Iterable[Pair]) -> Any:
    found = QueryDict(mutable=True)
    for name, value in pairs:
        found.appendlist(name, value)
    found._mutable = False
    return found


def meaning(field: fields.Field, value: Any, *, find: Find) -> Any:
    """The value as its widget takes it. Raises InvalidValue for a choice that is not offered: a
    select would send its first option.
    """
    if isinstance(field, ModelChoiceField):
        return find(field, value)
    if isinstance(field, fields.MultipleChoiceField):
        if not isinstance(value, list) or len(value) > MOST_ITEMS:
            raise InvalidValue(f"{shown_value(value)} is not a list of choices.")
        return [chosen(field, one) for one in value]
    if isinstance(field, fields.ChoiceField):
        return "" if value is None or value == "" else chosen(field, value)
    if not has_parts(field):
        return parsed(field, value)
    if value is None:
        return None
    parts = field.fields  # type: ignore[attr-defined]  # has_parts
    if not isinstance(value, list) or len(value) != len(parts):
        raise InvalidValue(
            f"{shown_value(value)} is not a list of {len(parts)} parts, "
            f"such as {example_of_parts(field)}."
        )
    return [meaning(part, one, find=find) for part, one in zip(parts, value, strict=True)]


def chosen(field: Any, value: Any) -> str:
    # Some fields are open, with choices as suggestions.
    if isinstance(value, (str, int, float)) and field.valid_value(str(value)):
        return str(value)
    allowed = [key for key, _ in options(field.choices)]
    names = ", ".join(allowed[:MOST_ALLOWED]) + (", ..." if allowed[MOST_ALLOWED:] else "")
    raise InvalidValue(f"{shown_value(value)} is not one of: {names}.")


def has_parts(field: fields.Field) -> bool:
    """Whether a value is a list with a part for each of several fields, as of money."""
    return isinstance(field, fields.MultiValueField) and not isinstance(
        field, fields.SplitDateTimeField
    )


def pairs_of(bound: Any, value: Any) -> list[Pair]:
    field, name = bound.field, bound.html_name
    if isinstance(value, datetime) and isinstance(field.widget, widgets.SplitDateTimeWidget):
        # The widget would cut the microseconds.
        local = timezone.make_naive(value) if timezone.is_aware(value) else value
        suffixes: list[str] = field.widget.widgets_names  # type: ignore[attr-defined]  # stubs
        texts = (local.date().isoformat(), local.time().isoformat())
        return [(name + suffix, text) for suffix, text in zip(suffixes, texts, strict=True)]
    pairs = text_pairs(bound, value) if reads_plainly(field) else None
    return rendered(bound, value) if pairs is None else pairs


def text_pairs(bound: Any, value: Any) -> list[Pair] | None:
    """What means a value whatever the language. None: the widget knows."""
    field, name = bound.field, bound.html_name
    if isinstance(field, (ModelMultipleChoiceField, fields.MultipleChoiceField)):
        texts = [str(field.prepare_value(one)) for one in value]
        if isinstance(inner(field.widget), ManyToManyRawIdWidget):
            texts = [",".join(texts)]
        return [(name, text) for text in texts]
    if value is None and not isinstance(field, fields.JSONField):
        return [(name, "")]
    if isinstance(value, list) and hasattr(field, "base_field"):
        # An array takes the list. In a text its elements would end at each comma.
        return [(name, value)]
    if isinstance(field, fields.ChoiceField):
        return [(name, str(field.prepare_value(value)))]
    if isinstance(value, str) and takes_text(field):
        return [(name, value)]
    if isinstance(value, Decimal) and not field.localize:
        return [(name, f"{value:f}")]
    if isinstance(value, (date, time)):
        with suppress(ValidationError):
            field.to_python(value.isoformat())
            return [(name, value.isoformat())]
    return None


def check_understood(bound: Any, pairs: list[Pair], meant: Any) -> None:
    """Raise InvalidValue if the field would take the value for another one: a list of years may
    end before it. What the field refuses is reported by the form.
    """
    field = bound.field
    try:
        got = field.clean(read_back(bound, pairs))
    except ValidationError:
        return
    if meant is None and got not in field.empty_values:
        raise InvalidValue("This field must have a value.")
    if meant is not None and not is_same(meant, got):
        raise InvalidValue(f"This field cannot hold {shown_value(str(meant))}.")


def rendered(bound: Any, value: Any) -> list[Pair]:
    """What is posted of the widget of a field that shows this value. Raises InvalidValue."""
    field, name, renderer = bound.field, bound.html_name, bound.form.renderer
    refusal = InvalidValue(f"{shown_value(value)} is not a value for this field.")
    try:
        pairs = successful(html_of(field.widget, name, field.prepare_value(value), renderer))
        empty = read_page(html_of(field.widget, name, None, renderer)).loose.controls
    except Exception:  # Widgets were written for what their own pages send.
        raise refusal from None
    if not {key for key, _ in pairs} <= {name, *(control.name for control in empty)}:
        # A widget that does not escape what it shows must not fill in other fields.
        raise refusal
    return pairs


def html_of(widget: Any, name: str, value: Any, renderer: Any) -> str:
    return str(widget.render(name, value, attrs={"id": "x"}, renderer=renderer))


def reads_plainly(field: fields.Field) -> bool:
    widget = inner(field.widget)
    return type(widget).value_from_datadict in PLAIN_READERS or isinstance(
        widget, ManyToManyRawIdWidget
    )


def is_djangos(widget: widgets.Widget) -> bool:
    """Return whether Django itself reads what is posted of it."""
    module: str = type(inner(widget)).value_from_datadict.__module__
    return module.startswith("django.")


def inner(widget: widgets.Widget) -> Any:
    """Without the buttons that the admin puts beside it."""
    return widget.widget if isinstance(widget, RelatedFieldWidgetWrapper) else widget
