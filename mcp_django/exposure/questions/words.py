"""What a person is asked to agree to, in words: a title, the records by their labels, and the
values by the labels of fields and choices.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from unicodedata import category

from django.apps import apps
from django.db.models import Model
from django.forms import ChoiceField, FileField
from django.forms.models import ModelChoiceField
from django.forms.utils import pretty_name
from django.utils.choices import flatten_choices
from django.utils.text import Truncator, get_text_list
from django.utils.translation import gettext

from mcp_django.exposure.forms.html import folded
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.related import visible_labels

#: Records that a question names.
MOST_RECORDS_NAMED = 5
LONGEST_LABEL = 80
#: Characters of a value, and of all values.
LONGEST_SAID, LONGEST_LINES = 500, 3000
CUT_HERE = "… (cut here)"
#: What titles of actions end with.
ENDING = " .:?!…"


def question(
    title: str, *, labels: Sequence[str] = (), count: int = 0, parts: Iterable[str] = ()
) -> str:
    """The text of a question: what is to be done, to which records, and what else there is to
    know, each part a paragraph. `labels` are those of the first of `count` records.
    """
    asked = f"{folded(title).rstrip(ENDING)}?"
    if count:
        asked = f"{asked} {named_records(labels, count)}."
    return visible("\n\n".join(part for part in (asked, *parts) if part))


#: They join letters and emoji. Every other character that nobody sees can change how the rest of a
#: question is read, such as those that turn its direction round.
JOINERS = "\u200c\u200d"


def visible(text: str) -> str:
    return "".join(
        char for char in text if char in f"\n{JOINERS}" or category(char) not in ("Cc", "Cf")
    )


#: It says when the page of an action was made, which differs each time.
TIME_OF_DAY = re.compile(r"\b\d{1,2}:\d{2}(:\d{2})?\b")


def without_times(text: str) -> str:
    return TIME_OF_DAY.sub("", text)


def named_records(labels: Sequence[str], count: int) -> str:
    """ "2 records: A-1, A-2", or "14 records: " with five of them "and 9 more"."""
    more = f" and {count - len(labels)} more" if count > len(labels) else ""
    noun = "record" if count == 1 else "records"
    return f"{count} {noun}: {', '.join(labels)}{more}" if labels else f"{count} {noun}"


def record_labels(rights: Rights, model: type[Model], keys: Sequence[Any]) -> list[str]:
    """The labels of the first of these records, which this caller sees: their keys where the
    exposure names no label.
    """
    first = list(keys[:MOST_RECORDS_NAMED])
    labels = visible_labels(rights, model, first) if len(model._meta.pk_fields) == 1 else {}
    texts = [", ".join(map(str, key)) if isinstance(key, tuple) else key for key in first]
    return [short_line(labels.get(key) or text) for key, text in zip(first, texts, strict=True)]


def counted_names(numbers: Mapping[str, int]) -> str:
    """ "3 order lines and 1 invoice", of numbers by the label of a model."""
    named = []
    for label, count in numbers.items():
        opts = apps.get_model(label)._meta
        noun = opts.verbose_name if count == 1 else opts.verbose_name_plural
        if count > 0:
            named.append(f"{count} {noun}")
    return get_text_list(named, "and")


def short_line(text: Any) -> str:
    """On one line: nobody can write a line of their own into a question."""
    return Truncator(folded(str(text))).chars(LONGEST_LABEL)


# Values, a line for each. What a value says on further lines is indented, so that no value looks
# like the line of another one.


def value_lines(values: Mapping[str, Any]) -> str:
    """Values by their names: "Text: hello". There is no form that they are for."""
    lines = (value_line(pretty_name(str(name)), said(value)) for name, value in values.items())
    return cut_short("\n".join(lines), LONGEST_LINES)


def value_line(label: Any, text: str) -> str:
    label = folded(str(label)).rstrip(":")
    return f"{label}:{text}" if text.startswith("\n") else f"{label}: {text}"


def said(value: Any) -> str:
    """A value of JSON, for a person."""
    if value is None or value == "":
        return gettext("None")
    if isinstance(value, bool):
        return gettext("Yes") if value else gettext("No")
    if isinstance(value, list) and any(isinstance(item, (list, dict)) for item in value):
        value = {str(at): item for at, item in enumerate(value, start=1)}
    if isinstance(value, list):
        return listed_words(map(said, value))
    if isinstance(value, Mapping):
        lines = value_lines(value).splitlines() or [gettext("None")]
        return "".join(f"\n    {line}" for line in lines)
    lines = cut_short(str(value), LONGEST_SAID).splitlines()
    return "".join(f"\n    {line}" for line in lines) if len(lines) > 1 else "".join(lines)


def listed_words(texts: Iterable[str]) -> str:
    return cut_short(", ".join(texts) or gettext("None"), LONGEST_SAID)


def cut_short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}{CUT_HERE}"


#: The label of the record that a value means to a field of records.
RelatedWords = Callable[[Any, Any], str]


def field_line(bound: Any, value: Any, *, related: RelatedWords) -> str:
    """A value for a bound field of a form: "Carrier: DHL"."""
    return value_line(
        bound.label or pretty_name(bound.name), field_words(bound.field, value, related)
    )


def field_words(field: Any, value: Any, related: RelatedWords) -> str:
    if isinstance(value, list):
        return listed_words(field_words(field, item, related) for item in value)
    if isinstance(field, ModelChoiceField):
        if isinstance(value, Mapping):
            changes = (
                f"{name} {field_words(field, member, related)}" for name, member in value.items()
            )
            return "; ".join(changes)
        return said(value) if value in (None, "") else short_line(related(field, value))
    if isinstance(field, FileField) and isinstance(value, Mapping):
        return short_line(value.get("filename", ""))
    if isinstance(field, FileField) and value:
        return short_line(related(field, value))
    if isinstance(field, ChoiceField):
        choices: Any = field.choices
        pairs: Iterable[tuple[Any, Any]] = flatten_choices(choices)
        labels = {str(key): label for key, label in pairs}
        return said(str(labels.get(str(value), value)))
    return said(value)


def choice_words(schema: Mapping[str, Any], value: Any) -> str:
    """A value for a control of which only the HTML is known, by the titles in its schema."""
    if isinstance(value, list):
        return listed_words(choice_words(schema.get("items", {}), item) for item in value)
    choices = schema.get("oneOf") or schema.get("anyOf") or ()
    titles = {choice.get("const"): choice.get("title") for choice in choices}
    return said(titles.get(str(value)) or value)
