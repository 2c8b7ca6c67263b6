"""Test your exposures and tools as an assistant sees them.

from mcp_django.testing import Client

def test_clerks_see_no_margins(django_user_model):
    client = Client(user=clerk)
    page = client.call_tool("find_records", model="shop.order")
    assert "margin" not in page.records[0]
"""

from __future__ import annotations

from mcp_django.testing.client import (
    ACCEPT,
    CANCEL,
    DECLINE,
    Client,
    HTTPAnswer,
    ProtocolFailure,
    ToolAnswer,
    Unanswered,
)

__all__ = [
    "ACCEPT",
    "CANCEL",
    "DECLINE",
    "Client",
    "HTTPAnswer",
    "ProtocolFailure",
    "ToolAnswer",
    "Unanswered",
]
