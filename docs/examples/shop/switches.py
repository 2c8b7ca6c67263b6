"""Switches of the shop."""

from __future__ import annotations

# docs: start switches
from mcp_django.models import ServerSettings


def close_server(*, is_closed=True):
    ServerSettings.objects.update_or_create(server="default", defaults={"closed": is_closed})


# docs: end switches
