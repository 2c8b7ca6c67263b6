"""Functions of the shop as prompts."""

from __future__ import annotations

# docs: start reply
from typing import Literal

from django.contrib import admin
from django.http import Http404, HttpRequest

import mcp_django as mcp
from shop.models import Order


def numbers(request: HttpRequest, value: str) -> list[str]:
    orders = admin.site.get_model_admin(Order).get_queryset(request)
    return list(orders.filter(number__icontains=value).values_list("number", flat=True)[:100])


@mcp.prompt(permission="shop.view_order", completions={"number": numbers})
def reply(request: HttpRequest, number: str, tone: Literal["warm", "formal"] = "warm") -> str:
    """Draft a reply to the customer of an order.

    Args:
        number: Number of the order, as A-1.
    """
    order = admin.site.get_model_admin(Order).get_queryset(request).filter(number=number).first()
    if order is None:
        raise Http404
    return (
        f"Draft a {tone} e-mail about order {order.number}, which is {order.get_status_display()}."
    )


# docs: end reply


# docs: start new_orders
@mcp.prompt(title="New orders", permission="shop.view_order")
def new_orders() -> list[mcp.PromptMessage]:
    """Look through the new orders for mistakes."""
    link = mcp.ResourceLink(uri="django://objects/shop.order?status=new", name="New orders")
    return [
        mcp.PromptMessage(content=mcp.Text("Look through these orders for mistakes.")),
        mcp.PromptMessage(content=link),
        mcp.PromptMessage(role="assistant", content=mcp.Text("I compare the totals first.")),
    ]


# docs: end new_orders
