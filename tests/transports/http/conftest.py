from __future__ import annotations

import pytest_asyncio

from tests.transports.http_sse_client import HTTPSSEClient


@pytest_asyncio.fixture
async def sse(client):
    """Make clients of HTTP+SSE, whose sessions end with the test."""
    sessions = []

    def make(client=client, **options):
        sessions.append(HTTPSSEClient(client, **options))
        return sessions[-1]

    yield make
    for session in sessions:
        await session.leave()
