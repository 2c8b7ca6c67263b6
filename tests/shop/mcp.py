"""What the test site exposes."""

from __future__ import annotations

import asyncio
from datetime import date

from django.contrib.auth import get_user_model
from django.http import HttpRequest
from msgspec import Struct

import mcp_django as mcp
from tests.shop.models import Memo, Order


@mcp.register(Order)
class OrderExposure(mcp.ModelExposure):
    fields = ["id", "number", "customer", "status", "total", "placed_at"]
    filter_fields = ["id", "number", "status", "total", "placed_at", "customer__country"]
    search_fields = ["number", "customer__name"]
    label_fields = ["number"]
    description = "Orders of the shop. Totals are in euros."


mcp.register(Memo, fields=["id", "text", "code", "scan"])


class Echo(Struct):
    text: str
    user: str


@mcp.tool(read_only=True)
def echo(request: HttpRequest, text: str) -> Echo:
    """Say it again."""
    return Echo(text=text, user=request.user.get_username())


@mcp.tool(read_only=True)
async def echo_later(request: HttpRequest, text: str) -> Echo:
    """Say it again, in a coroutine that asks the database."""
    await asyncio.sleep(0)
    count = await get_user_model().objects.filter(pk=request.user.pk).acount()
    return Echo(text=text * count, user=request.user.get_username())


@mcp.tool(read_only=True)
def count_to(ctx: mcp.Context, number: int) -> str:
    """Count, and say how far."""
    for step in range(1, number + 1):
        ctx.progress(step, total=number, message=f"at {step}")
    return f"Counted to {number}."


@mcp.tool(read_only=True)
def fail(kind: str) -> str:
    """Fail in a way of your choice."""
    if kind == "tool":
        raise mcp.ToolError("There is no such day. Ask for one that exists.")
    raise RuntimeError(f"secret-{kind}")


@mcp.tool(permission="shop.change_order", destructive=False)
def pay(request: HttpRequest, number: str, day: date | None = None) -> str:
    """Mark an order as paid."""
    changed = Order.objects.filter(number=number).update(status=Order.Status.PAID)
    if not changed:
        raise mcp.ToolError(f"There is no order {number}.")
    return f"{number} is paid."
