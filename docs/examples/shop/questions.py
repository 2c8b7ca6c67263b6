"""Tools of the shop that ask before they answer. Registered by import, as `mcp.py` would."""

from __future__ import annotations

# docs: start ship
from django import forms
from django.contrib import admin
from django.http import HttpRequest

import mcp_django as mcp
from shop.models import Order


class ShippingForm(forms.Form):
    carrier = forms.ChoiceField(choices=[("post", "Post"), ("courier", "Courier")])
    parcels = forms.IntegerField(min_value=1, max_value=20, initial=1)


def find_order(request: HttpRequest, number: str) -> Order:
    orders = admin.site.get_model_admin(Order).get_queryset(request)
    return orders.get(number=number)


@mcp.tool(destructive=False, asks=True, permission="shop.change_order")
def ship_order(ctx: mcp.Context, number: str) -> str:
    """Mark an order as shipped. The person is asked how it was sent."""
    order = find_order(ctx.request, number)
    answer = ctx.ask("shipping", ShippingForm, f"How was order {order.number} sent?")
    order.status = Order.Status.SHIPPED
    order.save(update_fields=["status"])
    return f"{order.number} went by {answer['carrier']} in {answer['parcels']} parcels."


# docs: end ship


# docs: start declined
@mcp.tool(destructive=False, asks=True, permission="shop.change_order")
def ship_by_post(ctx: mcp.Context, number: str) -> str:
    """Mark an order as shipped, by post if the person does not say otherwise."""
    order = find_order(ctx.request, number)
    carrier = "post"
    if ctx.can_ask:
        try:
            carrier = ctx.ask("shipping", ShippingForm, "Sent how?")["carrier"]
        except mcp.Declined as declined:
            if declined.is_explicit:
                return "Not shipped: the person said no."
    order.status = Order.Status.SHIPPED
    order.save(update_fields=["status"])
    return f"{order.number} went by {carrier}."


# docs: end declined


# docs: start confirm
@mcp.tool(asks=True, permission="shop.delete_order")
def remove_order(ctx: mcp.Context, number: str) -> str:
    """Delete an order for good. The person has to agree."""
    order = find_order(ctx.request, number)
    ctx.confirm(f"Delete order {order.number} of {order.total} EUR?", digest=order.status)
    order.delete()
    return f"{number} is deleted."


# docs: end confirm


# docs: start together
class ToneForm(forms.Form):
    tone = forms.ChoiceField(choices=[("formal", "Formal"), ("warm", "Warm")])


@mcp.tool(read_only=True, asks=True, permission="shop.view_order")
def draft_thanks(ctx: mcp.Context, number: str) -> str:
    """Draft a thank-you letter, with the words of the client's own model."""
    order = find_order(ctx.request, number)
    with ctx.together():
        tone = ctx.ask("tone", ToneForm, "In which tone?")
        line = ctx.sample("line", f"One line of thanks for order {order.number}.", max_tokens=60)
    greeting = {"formal": "Dear customer,", "warm": "Hello!"}[tone["tone"]]
    return f"{greeting} {line.text}"


# docs: end together


# docs: start page
@mcp.tool(destructive=False, asks=True, permission="shop.change_order")
def take_payment(ctx: mcp.Context, number: str) -> str:
    """Send the person to the page where an order is paid for."""
    order = find_order(ctx.request, number)
    if order.status == Order.Status.NEW:
        page = f"https://shop.example.com/orders/{order.number}/pay"
        ctx.ask_url("pay", page, f"Pay {order.total} EUR for order {order.number}.")
        order.refresh_from_db()
    return f"Order {order.number} is {order.get_status_display().lower()} now."


# docs: end page


# docs: start async_question
@mcp.tool(destructive=False, asks=True, permission="shop.change_order")
async def ship_later(ctx: mcp.Context, number: str) -> str:
    """Order a parcel service for an order. The person is asked which."""
    answer = await ctx.aask("shipping", ShippingForm, f"How shall {number} be sent?")
    return await order_carrier(number, answer["carrier"])


# docs: end async_question


async def order_carrier(number: str, carrier: str) -> str:
    return f"{number} will be fetched by {carrier}."
