"""JSON values -> what the fields of forms take: their data, or what a browser would send of them.

The forms of records take the value itself. Those of pages that an action shows are made by code of
the site from a POST, and get what their widgets show of the value.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from mimetypes import guess_type
from typing import Any, TypeAlias

from django.conf import settings
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.core.exceptions import SuspiciousFileOperation, ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile
from django.forms import fields, widgets
from django.forms.models import ModelChoiceField, ModelMultipleChoiceField
from django.http import QueryDict
from django.utils import timezone
from django.utils.choices import flatten_choices
from django.utils.datastructures import MultiValueDict
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.text import get_valid_filename

from mcp_django.conf import get_config
from mcp_django.exposure.fields import boolean, duration, iso_time, quoted
from mcp_django.exposure.forms.schemas import (
    MOST_ALLOWED,
    InvalidValue,
    example_of_parts,
    kind_of_form_field,
    options,
)
from mcp_django.exposure.functions.arguments import MOST_DIGITS
from mcp_django.models.uploads import LONGEST_NAME, SCHEME, Upload

# JSON values -> the Python values that form fields mean by them, before any locale is asked.


def parsed(field: fields.Field, value: Any) -> Any:
    """What the value means to this field; None if it is empty. Raises InvalidValue."""
    if isinstance(field, fields.BooleanField) and not isinstance(field, fields.NullBooleanField):
        return tick(value)
    for kind, parse in PARSERS:
        if isinstance(field, kind):
            return None if value is None or value == "" else parse(value)
    # What a schema calls a text is one as it is.
    is_text = kind_of_form_field(field) == "text" and not hasattr(field, "mcp_schema")
    if is_text and not (value is None or isinstance(value, str)):
        raise InvalidValue(f"{shown_value(value)} is not a text.")
    return value


def by(parse: Callable[[Any], Any], what: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        try:
            text = value.strip() if isinstance(value, str) else value
            # Django takes the empty text for a duration of zero.
            found = None if text == "" else parse(text)
        except (ValueError, TypeError, OverflowError, InvalidOperation):
            found = None
        if found is None:
            raise InvalidValue(f"{shown_value(value)} is not {what}.")
        return found

    return read


def number(value: Any) -> Decimal:
    """Not parsed by the form: "1234.125" in a German form is 1234125."""
    # Python takes "__5" for 5.
    if isinstance(value, bool) or not isinstance(value, (int, float, str)) or "_" in str(value):
        raise TypeError
    found = Decimal(str(value))
    # Written out, 1e999999999 would fill the memory.
    if not found.is_finite() or abs(found.adjusted()) > MOST_DIGITS:
        raise InvalidValue(f"{shown_value(value)} is out of range.")
    return found


def instant(text: str) -> datetime | None:
    """A point in time. A day stands for its first instant."""
    found = parse_datetime(text)
    if found is not None and timezone.is_aware(found):
        local = timezone.localtime(found)
        return local if settings.USE_TZ else local.replace(tzinfo=None)
    return found


#: Before the form: the text "false" would tick a box.
tick = by(boolean, "true or false")
PARSERS: tuple[tuple[type[fields.Field], Callable[[Any], Any]], ...] = (
    (fields.NullBooleanField, tick),
    (fields.IntegerField, by(number, "a number")),
    (fields.SplitDateTimeField, by(instant, "a time such as 2026-01-31T14:30:00+00:00")),
    (fields.DateTimeField, by(instant, "a time such as 2026-01-31T14:30:00+00:00")),
    (fields.DateField, by(parse_date, "a day such as 2026-01-31")),
    (fields.TimeField, by(iso_time, "a time of day such as 14:30:00")),
    (fields.DurationField, by(duration, "a duration such as P1DT2H30M")),
)
#: What forms compare by its value, so that it can be checked whether they understood it.
EXACT = (Decimal, bool, date, time, timedelta, list)


def is_same(meant: Any, got: Any) -> bool:
    if isinstance(meant, list):
        # A field of several parts makes one value of them. An array is not split at its commas.
        return not isinstance(got, (list, tuple)) or len(meant) == len(got)
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
        return quoted(value)
    return "A list" if isinstance(value, list) else "An object"


# What a field of a form takes.

#: A name and a text.
Pair: TypeAlias = tuple[str, str]
#: Takes a value of the call and the field that it is for. Returns the file of a field of files; of
#: one of related records a key, keys, or None. Raises InvalidValue.
Find: TypeAlias = Callable[[Any, Any], Any]

#: Records or choices in one list.
MOST_ITEMS = 1000


def takes_json(field: fields.Field) -> bool:
    """Return whether a value can be sent without a browser. If not, both the field and its widget
    are of the site's own, and only scripts of its page may know what is posted.
    """
    parts = field.fields if isinstance(field, fields.MultiValueField) else ()
    if any(isinstance(part, fields.FileField) for part in parts):
        return False  # what stands for "keep the file" depends on the package
    reader = type(inner(field.widget)).value_from_datadict
    own = (type(field).to_python, type(field).clean)
    return isinstance(field, fields.FileField) or is_djangos(reader) or all(map(is_djangos, own))


def is_djangos(method: Any) -> bool:
    return str(method.__module__).startswith("django.")


def data_of(field: fields.Field, meant: Any) -> Any:
    """Return a value as `field.clean` takes it, in whatever language the form is read."""
    if isinstance(field, fields.JSONField):
        return field.prepare_value(meant)
    if isinstance(field, fields.MultiValueField) and not isinstance(meant, list):
        # Not the widget's `decompress`, which may cut the microseconds.
        local = timezone.make_naive(meant) if meant and timezone.is_aware(meant) else meant
        return [local.date(), local.time()] if local else [None] * len(field.fields)
    if isinstance(meant, Decimal) and isinstance(field, fields.IntegerField):
        return int(meant) if meant == meant.to_integral_value() else meant
    if isinstance(meant, (date, time)) and not is_djangos(type(field).to_python):
        return meant.isoformat()
    return meant


def data_of_initial(field: fields.Field, initial: Any) -> Any:
    """Return what a browser would send of a field that begins with a value, for `field.clean`."""
    if isinstance(field, fields.FileField):
        return None
    if isinstance(field, ModelMultipleChoiceField):
        return field.prepare_value(list(initial or ()))
    is_chosen = isinstance(field, fields.ChoiceField) and initial is not None
    if is_chosen or isinstance(field, ModelChoiceField):
        return field.prepare_value(initial)
    if has_parts(field) and not isinstance(initial, list):
        return field.widget.decompress(initial)
    if initial is None and isinstance(field.widget, widgets.Select):
        # Without a choice the first option is shown, and sent.
        return next((key for key, _ in flatten_choices(field.widget.choices)), None)
    return data_of(field, initial)


def check_understood(clean: Callable[..., Any], *args: Any, meant: Any) -> Any:
    """Clean the data of a field. Raises ValidationError where that makes another value of them
    than was meant.
    """
    try:
        got = clean(*args)
    except (TypeError, ValueError, AttributeError, LookupError):
        # A field of a package was written for what its own widget sends.
        raise ValidationError(cannot_hold(meant)) from None
    if isinstance(meant, EXACT) and not is_same(meant, got):
        raise ValidationError(cannot_hold(meant))
    return got


def cannot_hold(meant: Any) -> str:
    return f"This field cannot hold {shown_value(str(meant))}."


class Post:
    """What is posted of forms that code of the site makes."""

    def __init__(self, *, find: Find) -> None:
        self.find = find
        self.pairs: list[Pair] = []
        self.files: dict[str, Any] = {}

    def fill_in(self, bound: Any, value: Any) -> None:
        """Give a bound field this value. Raises InvalidValue."""
        field = bound.field
        meant = meaning(field, value, find=self.find)
        if isinstance(field, fields.FileField):
            if meant is False:
                self.pairs.append((bound.field.widget.clear_checkbox_name(bound.html_name), "on"))
            else:
                self.files[bound.html_name] = meant
            return
        try:
            pairs = pairs_of(field.widget, bound.html_name, field.prepare_value(meant))
        except Exception:  # Widgets were written for what their own pages send.
            raise InvalidValue(f"{shown_value(value)} is not a value for this field.") from None
        if isinstance(meant, EXACT) and not has_parts(field):
            # What the field refuses is reported by the form.
            with suppress(ValidationError):
                posted = query_dict(pairs), MultiValueDict[str, Any](), bound.html_name
                got = field.clean(field.widget.value_from_datadict(*posted))
                if not is_same(meant, got):
                    raise InvalidValue(cannot_hold(meant))
        self.pairs += pairs


def query_dict(pairs: Iterable[Pair]) -> Any:
    found = QueryDict(mutable=True)
    for name, value in pairs:
        found.appendlist(name, value)
    found._mutable = False
    return found


def meaning(field: fields.Field, value: Any, *, find: Find) -> Any:
    """Return what a value means to a field: of a file False to take it away, of a choice its text.
    Raises InvalidValue, also for a choice that is not offered: a select would send its first one.
    """
    if isinstance(field, fields.FileField):
        can_clear = hasattr(field.widget, "clear_checkbox_name") and not field.required
        if value is None and not can_clear:
            raise InvalidValue(f"This file cannot be taken away. To replace it: {FORM}.")
        return value is not None and find(field, value)
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
    # Some choices are the texts "true" and "false". Some fields are open, with suggestions.
    texts = [str(value), *([str(value).lower()] if isinstance(value, bool) else [])]
    for text in texts if isinstance(value, (str, int, float)) else []:
        if field.valid_value(text):
            return text
    allowed = [key for key, _ in options(field.choices)]
    names = ", ".join(allowed[:MOST_ALLOWED]) + (", ..." if allowed[MOST_ALLOWED:] else "")
    raise InvalidValue(f"{shown_value(value)} is not one of: {names}.")


def has_parts(field: fields.Field) -> bool:
    """Whether a value is a list with a part for each of several fields, as of money."""
    return isinstance(field, fields.MultiValueField) and not isinstance(
        field, fields.SplitDateTimeField
    )


def pairs_of(widget: Any, name: str, value: Any) -> list[Pair]:
    """Return what a browser would send of a widget of this name that shows this value."""
    widget = inner(widget)
    if hasattr(widget, "widgets_names"):  # a MultiWidget
        values = value if isinstance(value, list) else widget.decompress(value)
        parts = zip(widget.widgets, widget.widgets_names, values, strict=False)
        return [pair for part, end, own in parts for pair in pairs_of(part, name + end, own)]
    if isinstance(widget, widgets.CheckboxInput):
        return [(name, "on")] if value else []
    shown = widget.format_value(value)
    if isinstance(shown, dict):  # the parts of SelectDateWidget
        return [(f"{name}_{part}", str(text or "")) for part, text in shown.items()]
    texts = shown if isinstance(shown, list) else [shown]
    return [(name, "" if text is None else str(text)) for text in texts]


def inner(widget: widgets.Widget) -> Any:
    """Without the buttons that the admin puts beside it."""
    return widget.widget if isinstance(widget, RelatedFieldWidgetWrapper) else widget


# A file in the arguments of a call: a name and its bytes, or the address of an upload.

FORM = '{"filename": "note.txt", "data": "aGVsbG8="} with the bytes as base64'
UPLOADED = (
    f'"{SCHEME}..." of a file that the person put into the admin, under '
    f"{str(Upload._meta.verbose_name_plural).capitalize()}"
)
NO_NAME = "This is not a name for a file. Use letters, digits and dots."


def file_of(value: Any, *, user: Any) -> SimpleUploadedFile:
    """The file that an argument holds or names. Raises InvalidValue for anything else, in the
    same words for an upload that is missing and for one of somebody else.
    """
    if isinstance(value, str) and value.startswith(SCHEME):
        found = upload_of(value, user=user)
        if found is None:
            raise InvalidValue(
                "There is no such file, or it has expired. The person can put it into the admin "
                "again, and say its new address."
            )
        return named_file(found.filename, bytes(found.data))
    is_whole = isinstance(value, dict) and value.keys() == {"filename", "data"}
    if not is_whole or not all(isinstance(part, str) for part in value.values()):
        raise InvalidValue(f"A file is {FORM}, or {UPLOADED}.")
    try:
        content = base64.b64decode(value["data"], validate=True)
    except ValueError:
        raise InvalidValue(f"The data are not base64. A file is {FORM}.") from None
    most = get_config().max_file
    if len(content) > most:
        raise InvalidValue(f"The file is larger than {most} bytes. Take {UPLOADED}.")
    return named_file(value["filename"], content)


def upload_of(address: str, *, user: Any) -> Upload | None:
    reference = address.removeprefix(SCHEME)
    if "\x00" in reference:  # no database takes it
        return None
    return Upload.usable(user).filter(reference=reference).first()


def named_file(name: str, content: bytes) -> SimpleUploadedFile:
    """A file with the last part of a name. Raises InvalidValue where no storage takes it."""
    # Of a path only the last part counts, whatever system it comes from.
    last = name.replace("\\", "/").rpartition("/")[2]
    if not last.isprintable():
        raise InvalidValue(NO_NAME)
    if len(last.encode()) > LONGEST_NAME:
        raise InvalidValue(f"The name of the file is too long: at most {LONGEST_NAME} bytes.")
    try:
        # As the storage will: nothing may be left of a name.
        get_valid_filename(last)
        return SimpleUploadedFile(last, content, guess_type(last)[0] or "application/octet-stream")
    except SuspiciousFileOperation:
        raise InvalidValue(NO_NAME) from None
