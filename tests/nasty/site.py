"""Exposures of the nasty schema, and callers of many kinds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from django.test import RequestFactory

from mcp_django.exceptions import QueryError
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query import aggregates, find
from mcp_django.exposure.query.arguments import AggregateRecords, FindRecords
from mcp_django.exposure.query.serializers import encoder
from mcp_django.exposure.registry import Registry
from mcp_django.principal import SCOPES, Principal
from mcp_django.testing.client import rows_as_objects
from tests.nasty import models


class Narrowable(ModelExposure):
    """Shows the rows and the fields that the test puts on the request."""

    def get_queryset(self, request):
        rows = super().get_queryset(request)
        narrow = request.narrow.get(self.model)
        return narrow(rows) if narrow else rows

    def get_fields(self, request):
        return request.shown.get(self.model)


ORDER = {
    "fields": "id number status customer customer__name total placed_at due at took ref ip gift "
    "weight quantity double payload attachment remark",
    "filter_fields": "id number status customer customer__name customer__country total quantity "
    "double weight gift placed_at due at took ref ip payload attachment tags tags__slug "
    "tags__parent__slug lines lines__sku lines__amount watchers__username notes__text notes "
    "customer__region__name tricky__year tricky__contains rushorder__courier word",
    "order_fields": "number total placed_at due at took ref quantity weight gift status customer "
    "customer__name",
    "search_fields": "=number ^customer__name tags__slug id",
}
EXPOSED = {
    models.Order: ORDER,
    models.Customer: {
        "fields": "name country",
        "filter_fields": "name country orders__number orders__status",
        "order_fields": "name",
        "label_fields": "name",
    },
    models.Tag: {"fields": "slug"},
    models.Line: {
        "fields": "sku amount",
        "filter_fields": "order order__status order__customer__country order__tags__slug sku",
    },
    models.Person: {
        "fields": "username",
        "filter_fields": "username watched__number manager__manager__username",
        "order_fields": "",
    },
    models.Region: {"fields": "name"},
    models.Note: {"fields": "text"},
    models.Watch: {"fields": "person"},
    models.Tricky: {
        "fields": "key year contains",
        "filter_fields": "year contains order__number",
        "order_fields": "year",
    },
    models.Seat: {
        "fields": "hall number label price",
        "filter_fields": "hall number label",
        "order_fields": "hall number label price",
    },
    models.RushOrder: {
        "fields": "number courier total customer__name",
        "filter_fields": "id number courier status customer customer__country tags__slug "
        "lines__sku notes__text",
        "order_fields": "number courier",
    },
    models.PaidOrder: {
        "fields": "number",
        "filter_fields": "number lines__sku",
        "order_fields": "number",
    },
    models.Odd: {"fields": "word"},
}


#: Options that are texts and no lists of names.
TEXTS = ("description", "modified_field")


def registry(changes=None, *, base=Narrowable):
    """The exposures above with changes by model: options, or None to leave the model out."""
    found = Registry()
    for model, options in (EXPOSED | (changes or {})).items():
        if options is None:
            continue
        attributes = {
            name: value.split() if isinstance(value, str) and name not in TEXTS else value
            for name, value in options.items()
        }
        bases = attributes.pop("bases", (base,))
        found.register(model, type(f"{model.__name__}Exposure", bases, attributes))
    return found


REGISTRY = registry()


def caller(*, pk=1, may=lambda perm: True, narrow=None, shown=None, tables=REGISTRY, **principal):
    """The rights of somebody who may do what `may` says and sees what the others leave."""
    user = SimpleNamespace(has_perm=may, is_active=True, is_staff=True, pk=pk)
    request: Any = RequestFactory().get("/")
    request.user, request.narrow, request.shown = user, narrow or {}, shown or {}
    scopes = frozenset(SCOPES)
    found = Principal(user=user, scopes=scopes, method="test", **principal)
    return Rights(request, found, registry=tables)


def page(who, model, /, **arguments):
    exposure = who.registry.exposures[model]
    return find.find_records(who, exposure, FindRecords(model=exposure.label, **arguments))


def records(who, model, /, **arguments):
    return objects(page(who, model, **arguments).table)


def objects(table):
    """The rows of an answer as objects, with the labels of foreign keys."""
    return [with_objects(one) for one in msgspec.json.decode(encoder.encode(table.objects()))]


def with_objects(record):
    """A record whose related records are objects."""
    return {
        name: {"count": value["count"], "records": rows_as_objects(value), **rest_of(value)}
        if isinstance(value, dict) and "rows" in value
        else value
        for name, value in record.items()
    }


def rest_of(related):
    return {"rest": related["rest"]} if "rest" in related else {}


def record(who, model, pk, **options):
    encoded = find.get_record(who, who.registry.exposures[model], pk, **options)
    return with_objects(msgspec.json.decode(encoded))


def aggregate(who, model=models.Order, /, **arguments):
    exposure = who.registry.exposures[model]
    asked = AggregateRecords(model=exposure.label, **arguments)
    answer = aggregates.aggregate_records(who, exposure, asked)
    said = msgspec.json.decode(answer.encoded)
    return {"truncated": False, **said, "groups": objects(answer.table)}


def groups(who=None, model=models.Order, /, **arguments):
    """The groups of an aggregate that has all of them."""
    answer = aggregate(who or caller(), model, **arguments)
    assert not answer["truncated"]
    return answer["groups"]


def count(who, model, **options):
    return find.count_records(who, who.registry.exposures[model], **options)


def numbers(who=None, model=models.Order, **arguments):
    """The numbers of the orders that a call finds, in their order."""
    arguments = {"order_by": ["number"], "fields": ["number"], **arguments}
    return [row["number"] for row in records(who or caller(), model, **arguments)]


def refusal(call, /, *arguments, **options):
    """The sentence of the QueryError that must answer a call of one of the functions above."""
    with pytest.raises(QueryError) as caught:
        call(*arguments, **options)
    return str(caught.value)
