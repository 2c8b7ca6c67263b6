"""Columns of the admin's list that are no fields: methods, properties, callables, annotations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.admin import ModelAdmin
from django.contrib.admin.utils import get_fields_from_path, label_for_field, lookup_field
from django.db.models import F, Model, QuerySet
from django.db.models.expressions import OrderBy
from django.forms.utils import pretty_name
from django.http import HttpRequest

from mcp_django.exposure.options import SECRET_WORDS


@dataclass(frozen=True, kw_only=True)
class ComputedColumn:
    """One column, and what `@admin.display` says of it."""

    name: str
    #: A name or a callable, as `list_display` has it.
    source: Any
    label: Any
    is_boolean: bool
    #: The path that it is ordered by, with "-" where that is descending. Empty: there is none.
    order: str

    def value_of(self, obj: Model, model_admin: ModelAdmin[Any]) -> Any:
        """The value as the list has it, and whatever the code of the site raises."""
        _, _, value = lookup_field(self.source, obj, model_admin)
        return bool(value) if self.is_boolean and value is not None else value


def columns_of(
    model_admin: ModelAdmin[Any], request: HttpRequest, listed: Iterable[Any] | None
) -> dict[str, ComputedColumn]:
    """By name, those that code lists. None: those of the list, as this request gets it, without
    names that look secret.
    """
    items = list(model_admin.get_list_display(request) if listed is None else listed)
    found: dict[str, ComputedColumn] = {}
    for item in items:
        name = column_name(item)
        is_open = listed is not None or not SECRET_WORDS.search(name)
        if is_open and not column_problem(model_admin.model, item):
            found.setdefault(name, computed_column(model_admin, item))
    return found


def computed_column(model_admin: ModelAdmin[Any], item: Any) -> ComputedColumn:
    name = column_name(item)
    attribute: Any = None
    try:
        label, attribute = label_for_field(item, model_admin.model, model_admin, return_attr=True)
    except AttributeError:  # an annotation of `get_queryset`
        label = pretty_name(name)
    if isinstance(attribute, property):
        attribute = attribute.fget
    return ComputedColumn(
        name=name,
        source=item,
        label=label,
        is_boolean=bool(getattr(attribute, "boolean", False)),
        order=ordered_path(getattr(attribute, "admin_order_field", None)),
    )


def ordered_path(order: Any) -> str:
    """The path that `admin_order_field` is, with "-" where it is descending. Empty: it is none."""
    sign = ""
    if isinstance(order, OrderBy):
        sign, order = "-" if order.descending else "", order.expression
    name: Any = getattr(order, "name", None) if type(order) is F else order
    return f"{sign}{name}" if isinstance(name, str) else ""


def column_name(item: Any) -> str:
    return item if isinstance(item, str) else str(getattr(item, "__name__", ""))


def rows_of_list(model_admin: ModelAdmin[Any], request: HttpRequest) -> QuerySet[Any]:
    """All rows of the list, with the related objects that the list reads with them."""
    rows = model_admin.get_queryset(request)
    # The list of the admin asks once for each row.
    generic = [one.name for one in model_admin.opts.private_fields if not one.remote_field]
    rows = rows.prefetch_related(*generic) if generic else rows
    related: Any = model_admin.get_list_select_related(request)
    keys = [field for field in model_admin.opts.concrete_fields if field.is_relation]
    # Django 6.1 deprecates `select_related` without names.
    if related is True:
        related = [field.name for field in keys if not field.null]
    elif related is False:
        listed = model_admin.get_list_display(request)
        related = [field.name for field in keys if field.name in listed]
    return rows.select_related(*related) if related and not rows.query.select_related else rows


# What no computed column can be.


def column_problem(model: type[Model], item: Any) -> str:
    """What is wrong with a column whatever a ModelAdmin has, or an empty text."""
    name = column_name(item)
    if not (isinstance(item, str) or callable(item)):
        return "is neither a name nor a callable"
    if not name.isidentifier():
        return "has no name that a call could use"
    if is_field(model, name):
        return "is a field; list it in fields"
    if item == "__str__" and model.__str__ is not Model.__str__:
        return ""
    if isinstance(item, str) and (hasattr(ModelAdmin, name) or hasattr(Model, name)):
        # Among them are methods that write: `lookup_field` would call them.
        return "is Django's own and no column"
    return ""


def is_field(model: type[Model], name: str) -> bool:
    """Whether it is a field or relation, here or behind others: paths have rules of their own. A
    generic foreign key is none of them: to the list of the admin it is an attribute.
    """
    try:
        last: Any = get_fields_from_path(model, name)[-1]
    except Exception:  # Django has several for what leads nowhere
        return False
    return not (last.is_relation and last.many_to_one and last.related_model is None)


def column_problems(
    model: type[Model], items: Iterable[Any], admins: Sequence[ModelAdmin[Any]]
) -> Iterator[str]:
    """What is wrong with the columns that code lists, a clause about each that is."""
    for item in items:
        problem = column_problem(model, item)
        if not problem and isinstance(item, str) and not is_known(model, item, admins):
            problem = "is neither an attribute of the ModelAdmin or the model, nor an annotation"
        if problem:
            yield f"{ascii(column_name(item) or item)[:60]} {problem}"


def is_known(model: type[Model], name: str, admins: Iterable[ModelAdmin[Any]]) -> bool:
    """Whether something has the name, or the rows of an admin could have it as an annotation."""
    rows: QuerySet[Any] = model._default_manager.get_queryset()
    return (
        hasattr(model, name)
        or name in rows.query.annotations
        or any(
            hasattr(one, name) or type(one).get_queryset is not ModelAdmin.get_queryset
            for one in admins
        )
    )
