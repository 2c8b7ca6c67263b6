"""What assistants are offered of the shop, of tests/workshop and of tests/library."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

from django import forms
from django.http import Http404, HttpRequest

import mcp_django as mcp
from mcp_django.exposure.registry import registry
from tests.fuzz.admin import sees_hidden, site
from tests.fuzz.models import Customer, Label, Line, Memo, Order, Parcel, Payment, Review, Stamp
from tests.library.rights import EXPOSED as LIBRARY
from tests.workshop.exposed import EXPOSED as WORKSHOP

EXPOSED: dict[Any, dict[str, Any]] = {
    Customer: {
        "fields": ["id", "name", "country", "logo"],
        "search_fields": ["name", "orders__number"],
        "label_fields": ["name"],
    },
    Label: {"fields": ["id", "name", "parent"], "label_fields": ["name"]},
    Order: {
        "fields": [
            "id", "number", "customer", "status", "total", "placed_at", "details", "contract",
        ],
        "more_filter_fields": ["labels", "labels__name", "lines__sku", "memos__text"],
        "search_fields": ["number", "customer__name", "labels__name", "lines__sku"],
        "label_fields": ["number"],
        "actions": ["mark_paid", "ship"],
    },
    Line: {"fields": ["id", "order", "sku", "amount"], "label_fields": ["sku"]},
    Payment: {"fields": ["id", "order", "amount"]},
    Review: {"fields": ["id", "order", "text"]},
    Parcel: {"fields": [one.name for one in Parcel._meta.fields]},
    Stamp: {"fields": ["id", "parcel", "face", "value", "printed_on", "is_used"]},
}  # fmt: skip
for model, attributes in {**EXPOSED, **WORKSHOP, **LIBRARY}.items():
    mcp.register(model, **{"level": mcp.Level.WRITE, **attributes})
# One raises what the caller asks for, and one counts as far: neither would be a mistake of ours.
registry.remove("tool", "fail")
registry.remove("tool", "count_to")


@mcp.register(Memo)
class MemoExposure(mcp.ModelExposure):
    fields = ["id", "order", "text"]
    search_fields = ["text"]
    label_fields = ["text"]
    level = mcp.Level.WRITE

    def get_queryset(self, request):
        rows = Memo.objects.all()
        return rows if sees_hidden(request) else rows.filter(is_hidden=False)


def orders(request: HttpRequest):
    return site.get_model_admin(Order).get_queryset(request)


def order_of(request: HttpRequest, number: str) -> Order:
    order = orders(request).filter(number=number).first()
    if order is None:
        raise Http404
    return order


@mcp.tool(read_only=True, permission="fuzz.view_order")
def revenue(
    ctx: mcp.Context, since: date, until: date, statuses: list[Literal["new", "paid"]]
) -> dict[str, int]:
    """What was ordered between two days, with progress."""
    counts = {}
    for step, status in enumerate(statuses):
        ctx.progress(step, message=f"at {status}")
        rows = orders(ctx.request).filter(status=status, placed_at__date__range=(since, until))
        counts[status] = rows.count()
    return counts


class RefundForm(forms.Form):
    reason = forms.CharField(max_length=40)
    amount = forms.IntegerField(min_value=1, max_value=100, initial=1)


@mcp.tool(asks=True, destructive=False, permission="fuzz.change_order")
def refund(ctx: mcp.Context, number: str) -> str:
    """Give money back. The person is asked how much."""
    answer = ctx.ask("refund", RefundForm, f"How much of {order_of(ctx.request, number)}?")
    return f"{answer['amount']} for {answer['reason']}."


def numbers(request: HttpRequest, value: str, given: Any = None) -> list[str]:
    found = orders(request).filter(number__icontains=value).order_by("pk")
    return list(found.values_list("number", flat=True)[:100])


@mcp.prompt(permission="fuzz.view_order", completions={"number": numbers})
def about_order(
    request: HttpRequest, number: str, tone: Literal["warm", "formal"] = "warm"
) -> str:
    """Write about an order."""
    return f"Write a {tone} letter about {order_of(request, number).number}."


@mcp.resource(
    "shop://orders/{number}", permission="fuzz.view_order", completions={"number": numbers}
)
def order_text(request: HttpRequest, number: str) -> str:
    """An order in one line."""
    return f"{number}: {order_of(request, number).total}"
