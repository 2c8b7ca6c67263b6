"""Tools that serializers of Django REST framework read and write for."""

from __future__ import annotations

# docs: start serializer
from django.http import HttpRequest
from rest_framework import serializers

import mcp_django as mcp
from shop.models import Ticket


class TicketSerializer(serializers.ModelSerializer):
    class Meta:
        model = Ticket
        fields = ["id", "subject", "is_open"]
        extra_kwargs = {"subject": {"help_text": "What is wrong, in a few words."}}


@mcp.tool(
    destructive=False,
    permission="shop.add_ticket",
    serializer=TicketSerializer,
    output_serializer=TicketSerializer,
)
def open_ticket(request: HttpRequest, form: TicketSerializer) -> Ticket:
    """Open a ticket for the caller."""
    return form.save(customer_login=request.user)


# docs: end serializer
