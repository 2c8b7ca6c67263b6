from __future__ import annotations

import pytest_asyncio

from tests.transports.http_sse_client import HTTPSSEClient


@pytest_asyncio.fixture
async def sse(client):
    """Make clients of HTTP+SSE, which may post to another process. Sessions end with the test."""
    sessions = []

    def make(client=client, posts=None, **options):
        session = HTTPSSEClient(client, **options)
        session.posts = posts or session.posts
        sessions.append(session)
        return session

    yield make
    for session in sessions:
        await session.leave()
