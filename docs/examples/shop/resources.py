"""Functions of the shop as resources. Registered by import, as `mcp.py` of a site would."""

from __future__ import annotations

# docs: start report
from decimal import Decimal

from django.contrib import admin
from django.db.models import Count, Sum
from django.http import HttpRequest
from msgspec import Struct

import mcp_django as mcp
from shop.models import Order


class Report(Struct):
    year: int
    orders: int
    total: Decimal


def years(request: HttpRequest, value: str, given) -> list[int]:
    orders = admin.site.get_model_admin(Order).get_queryset(request)
    return [day.year for day in orders.dates("placed_at", "year")]


@mcp.resource(
    "shop://reports/{year}",
    permission="shop.view_order",
    completions={"year": years},
)
def report(request: HttpRequest, year: int) -> Report:
    """What was sold in a year."""
    orders = admin.site.get_model_admin(Order).get_queryset(request).filter(placed_at__year=year)
    found = orders.aggregate(orders=Count("pk"), total=Sum("total", default=Decimal(0)))
    if not found["orders"]:
        raise Order.DoesNotExist
    return Report(year=year, **found)


# docs: end report


# docs: start terms
@mcp.resource(
    "shop://terms",
    title="Terms of delivery",
    mime_type="text/markdown",
    annotations=mcp.Annotations(audience=["assistant"], priority=0.9),
    permission=lambda request: request.user.is_authenticated,
)
def terms() -> str:
    """What the shop promises. Read it before you promise anything."""
    return "Parcels leave within *two* days."


# docs: end terms


# docs: start label
@mcp.resource("shop://labels/{number}.txt", permission="shop.view_order")
async def label(request: HttpRequest, number: str) -> mcp.ResourceContents:
    """The label of a parcel, by the number of its order."""
    orders = admin.site.get_model_admin(Order).get_queryset(request)
    order = await orders.select_related("customer").aget(number=number)
    return mcp.ResourceContents(
        uri=f"shop://labels/{number}.txt",
        mime_type="text/plain",
        text=f"{order.customer.name}\n{order.customer.country}",
    )


# docs: end label
