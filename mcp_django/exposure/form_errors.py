"""What is wrong with a form, by the place of each fault, for those who filled it in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from django.core.exceptions import NON_FIELD_ERRORS
from django.forms.fields import ChoiceField
from django.forms.models import ModelChoiceField

from mcp_django.exposure.form_schemas import Describer
from mcp_django.exposure.form_values import options

#: Each with a message, a code, and for a wrong choice some that are right.
Errors: TypeAlias = dict[str, list[dict[str, Any]]]

#: Faults that are told of one call.
MOST_ERRORS = 20
MOST_ALLOWED = 20


def errors_of(
    form: Any, formsets: Iterable[Any] = (), *, describer: Describer | None = None
) -> Errors:
    """The faults of a bound form and its formsets, by path.

    A path is the name of a field, `parts-0.qty` in a row of the formset `parts`, `parts-0` for
    the row, `parts` for all rows together, and "" for the whole record.
    """
    describer = Describer() if describer is None else describer
    found: Errors = {}
    told = 0
    for path, error in all_errors(form, formsets, describer):
        if told < MOST_ERRORS:
            found.setdefault(path, []).append(error)
        told += 1
    if told > MOST_ERRORS:
        more = {"message": f"There are {told - MOST_ERRORS} more.", "code": "more"}
        found.setdefault("", []).append(more)
    return found


def all_errors(
    form: Any, formsets: Iterable[Any], describer: Describer
) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from form_errors(form, describer)
    for formset in formsets:
        for error in formset.non_form_errors().get_json_data():
            yield formset.prefix, error
        for at, row in enumerate(formset.forms):
            place = f"{formset.prefix}-{at}"
            for path, error in form_errors(row, describer):
                yield f"{place}.{path}" if path else place, error


def form_errors(form: Any, describer: Describer) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, errors in form.errors.get_json_data().items():
        for error in errors:
            if name == NON_FIELD_ERRORS:
                yield "", error
            elif error["code"] == "invalid_choice":
                yield name, {**error, **allowed(form.fields[name], describer)}
            else:
                yield name, error


def allowed(field: Any, describer: Describer) -> dict[str, Any]:
    """Some values that would have been right."""
    if isinstance(field, ModelChoiceField):
        choices = describer.records(field) or []
    elif isinstance(field, ChoiceField):
        given: Any = field.choices
        choices = list(options(given))
    else:
        return {}
    return {"allowed": [value for value, _ in choices[:MOST_ALLOWED]]} if choices else {}
