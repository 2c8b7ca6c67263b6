"""Functions of the shop as tools. Registered by import, as `mcp.py` of a site would."""

from __future__ import annotations

# docs: start revenue
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from django.contrib import admin
from django.db.models import Count, Sum
from django.http import HttpRequest

import mcp_django as mcp
from shop.models import Order


@dataclass
class Revenue:
    orders: int
    total: Decimal


@mcp.tool(read_only=True, permission="shop.view_order")
def revenue(request: HttpRequest, since: date, until: date) -> Revenue:
    """What was sold between two days.

    Args:
        since: First day.
        until: Last day, included.
    """
    orders = admin.site.get_model_admin(Order).get_queryset(request)
    orders = orders.filter(placed_at__date__gte=since, placed_at__date__lte=until)
    found = orders.aggregate(orders=Count("pk"), total=Sum("total", default=Decimal(0)))
    return Revenue(**found)


# docs: end revenue


# docs: start mark_paid
@mcp.tool(destructive=False, idempotent=True, atomic=True, permission="shop.change_order")
def mark_paid(request: HttpRequest, number: str) -> str:
    """Mark an order as paid.

    Args:
        number: Number of the order, as A-1.
    """
    order = admin.site.get_model_admin(Order).get_queryset(request).filter(number=number).first()
    if order is None:
        raise mcp.ToolError(f"There is no order {number}. Look for it with find_records.")
    order.status = Order.Status.PAID
    order.save(update_fields=["status"])
    return f"{number} is paid."


# docs: end mark_paid


# docs: start progress
@mcp.tool(read_only=True, permission="shop.view_order")
def check_totals(ctx: mcp.Context) -> str:
    """Look for orders whose total is not above zero. Reports progress."""
    orders = list(admin.site.get_model_admin(Order).get_queryset(ctx.request))
    wrong = []
    for number, order in enumerate(orders, start=1):
        ctx.progress(number, total=len(orders), message=order.number)
        if order.total <= 0:
            ctx.log("warning", f"The total of {order.number} is {order.total}.")
            wrong.append(order.number)
    return f"Wrong totals: {', '.join(wrong) or 'none'}."


# docs: end progress


# docs: start async_tool
@mcp.tool(read_only=True, open_world=True, permission="shop.view_order")
async def parcel(number: str) -> str:
    """Where the parcel of an order is, as the carrier says."""
    order = await Order.objects.filter(number=number).afirst()
    if order is None:
        raise mcp.ToolError(f"There is no order {number}. Look for it with find_records.")
    return await ask_carrier(order.number)


# docs: end async_tool


async def ask_carrier(number: str) -> str:
    return f"The parcel of {number} is on its way."


# docs: start raw_tool
from typing import Any


@mcp.tool(
    read_only=True,
    permission="shop.view_order",
    input_schema={
        "type": "object",
        "properties": {
            "number": {"type": "string", "pattern": "^A-[0-9]+$", "examples": ["A-1"]},
            "customer": {"type": "string", "minLength": 2},
        },
        "oneOf": [{"required": ["number"]}, {"required": ["customer"]}],
        "additionalProperties": False,
    },
    output_schema={"type": "object", "additionalProperties": {"type": "string"}},
)
def order_status(request: HttpRequest, arguments: dict[str, Any]) -> dict[str, str]:
    """How far an order is, or all orders of a customer. Takes a number or a name."""
    orders = admin.site.get_model_admin(Order).get_queryset(request)
    if "number" in arguments:
        orders = orders.filter(number=arguments["number"])
    else:
        orders = orders.filter(customer__name__icontains=arguments["customer"])
    return dict(orders.values_list("number", "status"))


# docs: end raw_tool


# docs: start header
from typing import Annotated

from msgspec import Meta

Country = Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Country"})]


@mcp.tool(read_only=True, permission="shop.view_order")
def orders_from(request: HttpRequest, country: Country) -> int:
    """How many orders came from a country, by its code."""
    orders = admin.site.get_model_admin(Order).get_queryset(request)
    return orders.filter(customer__country=country).count()


# docs: end header
