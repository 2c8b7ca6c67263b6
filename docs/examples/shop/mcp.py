from __future__ import annotations

# docs: start mcp
import mcp_django as mcp
from shop.models import Customer, Order


@mcp.register(Customer)
class CustomerExposure(mcp.ModelExposure):
    fields = ["id", "name", "country"]
    search_fields = ["name"]
    label_fields = ["name"]


@mcp.register(Order)
class OrderExposure(mcp.ModelExposure):
    description = "Orders of the shop. Totals are in euros, times in UTC."
    fields = ["id", "number", "customer", "status", "total", "placed_at"]
    search_fields = ["=number", "customer__name"]
    ordering = ["-placed_at"]


# docs: end mcp


from django.http import HttpRequest

from shop.models import Ticket


# docs: start tickets
@mcp.register(Ticket)
class TicketExposure(mcp.ModelExposure):
    fields = ["id", "subject", "is_open"]

    def get_queryset(self, request: HttpRequest):
        return Ticket.objects.filter(customer_login=request.user.pk)

    def has_view_permission(self, request: HttpRequest, obj=None):
        return request.user.is_authenticated


# docs: end tickets


from shop import prompts as prompts
from shop import questions as questions
from shop import resources as resources
from shop import rest_tools as rest_tools
from shop import serializer_tools as serializer_tools
from shop import tools as tools
