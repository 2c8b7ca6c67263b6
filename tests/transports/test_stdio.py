from __future__ import annotations

import pytest

from mcp_django.auth.stdio import NamedUser
from mcp_django.transports.stdio_callers import Caller
from tests.transports.pipes import talking

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def caller(staff):
    return Caller(recognise=NamedUser(staff.get_username()).authenticate)


async def test_discovery_is_answered_without_a_handshake(caller):
    async with talking(caller) as peer:
        answer = await peer.answer(peer.ask("server/discover"))

    assert answer["result"]["supportedVersions"] == ["2026-07-28"]
