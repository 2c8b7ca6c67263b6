"""Forms of the admin as JSON Schemas, with no more about related records than the caller sees."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.admin.widgets import (
    AutocompleteMixin,
    ForeignKeyRawIdWidget,
    RelatedFieldWidgetWrapper,
)
from django.forms import Field

from mcp_django.exposure.form_errors import Errors
from mcp_django.exposure.form_errors import errors_of as plain_errors_of
from mcp_django.exposure.form_schemas import (
    MOST_RECORDS,
    NEWEST,
    Describer,
    Schema,
)
from mcp_django.exposure.form_values import Choice
from mcp_django.exposure.labels import shows_column, shows_records, visible_labels
from mcp_django.exposure.permissions import Rights
from mcp_django.protocol.revisions import Features


def field_schema(
    field: Field, *, rights: Rights, flat: bool = False, features: Features = NEWEST
) -> Schema:
    """As `form_schemas.field_schema`."""
    describer = AdminDescriber(rights, flat=flat, features=features)
    return describer.field(field, field.initial)


def form_schema(
    form: Any,
    *,
    rights: Rights,
    flat: bool = False,
    partial: bool = False,
    features: Features = NEWEST,
) -> Schema:
    """As `form_schemas.form_schema`."""
    return AdminDescriber(rights, flat=flat, partial=partial, features=features).form(form)


def formset_schema(formset: Any, *, rights: Rights) -> Schema:
    """As `form_schemas.formset_schema`."""
    return AdminDescriber(rights, partial=True).formset(formset)


def errors_of(form: Any, formsets: Iterable[Any] = (), *, rights: Rights) -> Errors:
    """As `form_errors.errors_of`."""
    return plain_errors_of(form, formsets, describer=AdminDescriber(rights))


class AdminDescriber(Describer):
    """Lists related records as the caller would find them, whatever the form would show.

    A form of the admin offers every row of the default manager, by its `str()`, also to those
    who may not view the model.
    """

    def __init__(self, rights: Rights, **options: Any) -> None:
        super().__init__(**options)
        self.rights = rights

    def records(self, field: Any) -> list[Choice] | None:
        model = field.queryset.model
        if is_searched(field) or not shows_records(self.rights, model):
            return None
        if not shows_column(self.rights, model, field.to_field_name or "pk"):
            return None
        found = list(field.queryset.all()[: MOST_RECORDS + 1])
        if len(found) > MOST_RECORDS:
            return None
        labels = visible_labels(self.rights, model, [one.pk for one in found])
        return [
            (key := str(field.prepare_value(one)), labels[one.pk] or key)
            for one in found
            if one.pk in labels
        ]

    def key_hint(self, field: Any) -> str:
        model = field.queryset.model
        if not shows_records(self.rights, model):
            return "Key of a record."
        return f"Key of a {model._meta.label_lower}, or text that finds exactly one."


def is_searched(field: Any) -> bool:
    """Whether the admin has a search in place of a list, which means that it would be long."""
    widget = field.widget
    if isinstance(widget, RelatedFieldWidgetWrapper):
        widget = widget.widget
    return isinstance(widget, (ForeignKeyRawIdWidget, AutocompleteMixin))
