"""What a real client can get wrong."""

from __future__ import annotations

import pytest
from mcp import MCPError

pytestmark = pytest.mark.asyncio
FIVE_MEGABYTES = 5 * 1024 * 1024


async def test_an_unknown_tool_is_an_error_of_the_protocol(desk, user, era):
    async with desk.connect(user, era) as assistant:
        with pytest.raises(MCPError) as caught:
            await assistant.client.call_tool("launch_rocket", {})

        assert (caught.value.code, caught.value.message) == (-32602, "Unknown tool: launch_rocket")
        assert await assistant.models(), "The connection goes on."


async def test_after_a_body_of_five_megabytes_the_client_goes_on(desk, server):
    async with desk.connect("dispatcher", "modern", server=server) as assistant:
        with pytest.raises(MCPError):
            await assistant.find("flights.flight", search="x" * FIVE_MEGABYTES)

        assert await assistant.models()


@pytest.mark.parametrize("wrong", ["mcp_" + "a" * 49, "nonsense", "a b"])
async def test_a_wrong_token_does_not_connect(desk, era, server, wrong):
    desk.tokens["wrong"] = wrong

    with pytest.raises(MCPError) as caught:
        async with desk.connect("wrong", era, server=server):
            pass

    assert "redential" in caught.value.message


async def test_a_token_that_was_revoked_ends_an_open_connection(desk, era):
    desk.make_token("short-lived", "analyst", "--scope", "mcp:read")

    async with desk.connect("short-lived", era) as assistant:
        assert await assistant.models()
        desk.ask("run", "mcp_token", "revoke", str(desk.token_ids["short-lived"]))
        with pytest.raises(MCPError, match="credential"):
            await until_it_fails(assistant)


async def until_it_fails(assistant):
    """Who a token belongs to may be remembered for a second. The connection has a deadline."""
    while True:
        await assistant.models()
