"""A REST API whose endpoints assistants call as tools."""

from __future__ import annotations

# docs: start rest
from rest_framework import permissions, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.response import Response
from rest_framework.routers import DefaultRouter

import mcp_django as mcp
from shop.models import Ticket


class RestTicketSerializer(serializers.ModelSerializer):
    class Meta:
        model = Ticket
        fields = ["id", "subject", "is_open"]


class TicketViewSet(viewsets.ModelViewSet):
    queryset = Ticket.objects.order_by("pk")
    serializer_class = RestTicketSerializer
    permission_classes = [permissions.DjangoModelPermissions]

    @action(detail=True, methods=["post"])
    def close(self, request, pk=None):
        """Close a ticket."""
        ticket = self.get_object()
        ticket.is_open = False
        ticket.save()
        return Response({"is_open": ticket.is_open})


router = DefaultRouter()
router.register("tickets", TicketViewSet)

mcp.register_router(router, description="Tickets as the shop's API has them.")
# docs: end rest
