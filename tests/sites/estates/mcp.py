from __future__ import annotations

import mcp_django as mcp
from tests.shop.models import Customer


def is_staff(request):
    return request.user.is_staff


@mcp.tool(read_only=True, permission=is_staff)
async def customers_later() -> str:
    """Name the customers, in a coroutine."""
    return ", ".join([customer.name async for customer in Customer.objects.order_by("pk")])
