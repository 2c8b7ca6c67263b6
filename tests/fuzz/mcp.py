"""What assistants are offered of the shop, of tests/workshop and of tests/library."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

from django import forms
from django.http import Http404, HttpRequest

import mcp_django as mcp
from mcp_django.exposure.registry import registry
from tests.fuzz.admin import sees_hidden, site
from tests.fuzz.models import Customer, Label, Line, Memo, Order, Payment, Review
from tests.library.rights import EXPOSED as LIBRARY
from tests.workshop.exposed import EXPOSED as WORKSHOP

WRITE = mcp.Level.WRITE
EXPOSED: dict[Any, dict[str, Any]] = {
    Customer: {
        "fields": ["id", "name", "country", "logo"],
        "filter_fields": ["id", "name", "country", "orders__number", "orders__lines__sku"],
        "search_fields": ["name", "orders__number"],
        "label_fields": ["name"],
    },
    Label: {
        "fields": ["id", "name", "parent"],
        "filter_fields": ["id", "name", "parent", "parent__name", "orders__number"],
        "search_fields": ["name", "parent__name"],
        "label_fields": ["name"],
    },
    Order: {
        "fields": [
            *("id", "number", "customer", "customer__name", "status", "total", "placed_at"),
            *("details", "contract"),
        ],
        "filter_fields": [
            *("id", "number", "customer", "customer__name", "customer__country", "status"),
            *("total", "placed_at", "details", "labels", "labels__name", "labels__parent__name"),
            *("lines__sku", "lines__amount", "memos__text", "payments__amount", "reviews__text"),
        ],
        "order_fields": ["id", "number", "total", "placed_at", "status", "customer__name"],
        "search_fields": ["number", "customer__name", "labels__name", "lines__sku"],
        "label_fields": ["number"],
        "actions": ["mark_paid", "ship", "list_numbers"],
    },
    Line: {
        "fields": ["id", "order", "order__number", "sku", "amount"],
        "filter_fields": ["id", "order", "order__number", "order__labels__name", "sku", "amount"],
        "search_fields": ["sku", "order__number"],
        "label_fields": ["sku"],
    },
    Payment: {"fields": ["id", "order", "amount"]},
    Review: {"fields": ["id", "order", "text"], "search_fields": ["text", "order__number"]},
}
for model, attributes in EXPOSED.items():
    mcp.register(model, **{"level": WRITE, **attributes})
# One raises what the caller asks for, and one counts as far: neither would be a mistake of ours.
registry.remove_tool("fail")
registry.remove_tool("count_to")
for others in (WORKSHOP, LIBRARY):
    for model, attributes in others.items():
        mcp.register(model, **{"level": WRITE, **attributes})


@mcp.register(Memo)
class MemoExposure(mcp.ModelExposure):
    fields = ["id", "order", "text"]
    search_fields = ["text"]
    label_fields = ["text"]
    level = WRITE

    def get_queryset(self, request):
        rows = Memo.objects.all()
        return rows if sees_hidden(request) else rows.filter(is_hidden=False)


def orders(request: HttpRequest):
    return site.get_model_admin(Order).get_queryset(request)


@mcp.tool(read_only=True, permission="fuzz.view_order")
def revenue(
    request: HttpRequest,
    since: date,
    until: date,
    statuses: list[Literal["new", "paid"]] | None = None,
) -> dict[str, int]:
    """What was ordered between two days.

    Args:
        since: First day.
        until: Last day, included.
        statuses: Only orders in one of these.
    """
    rows = orders(request).filter(placed_at__date__gte=since, placed_at__date__lte=until)
    if statuses:
        rows = rows.filter(status__in=statuses)
    return {"orders": rows.count()}


@mcp.tool(read_only=True, permission="fuzz.view_order")
def count_slowly(ctx: mcp.Context, number: int) -> str:
    """Count, with progress."""
    for step in range(min(number, 20)):
        ctx.progress(step, message=f"at {step}")
    return f"Counted to {number}."


class RefundForm(forms.Form):
    reason = forms.CharField(max_length=40)
    amount = forms.IntegerField(min_value=1, max_value=100, initial=1)


@mcp.tool(asks=True, destructive=False, permission="fuzz.change_order")
def refund(ctx: mcp.Context, number: str) -> str:
    """Give money back. The person is asked how much."""
    order = orders(ctx.request).filter(number=number).first()
    if order is None:
        raise mcp.ToolError(f"There is no order {number[:60]!r}. Look for it with find_records.")
    answer = ctx.ask("refund", RefundForm, f"How much of order {order.number}?")
    return f"{answer['amount']} for {answer['reason']}."


def numbers(request: HttpRequest, value: str, given: Any = None) -> list[str]:
    found = orders(request).filter(number__icontains=value).order_by("pk")
    return list(found.values_list("number", flat=True)[:100])


@mcp.prompt(permission="fuzz.view_order", completions={"number": numbers})
def about_order(
    request: HttpRequest, number: str, tone: Literal["warm", "formal"] = "warm"
) -> str:
    """Write about an order.

    Args:
        number: Number of the order.
    """
    order = orders(request).filter(number=number).first()
    if order is None:
        raise Http404
    return f"Write a {tone} letter about {order.number}."


@mcp.resource(
    "shop://orders/{number}", permission="fuzz.view_order", completions={"number": numbers}
)
def order_text(request: HttpRequest, number: str) -> str:
    """An order in one line."""
    order = orders(request).filter(number=number).first()
    if order is None:
        raise Http404
    return f"{order.number}: {order.total}"
