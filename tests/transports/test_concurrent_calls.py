from __future__ import annotations

import asyncio

import pytest

import mcp_django as mcp
from tests.spec import requirement
from tests.transports.wire import PATIENCE, Connection, speaking


@requirement("http:one-stream", "http:related-messages", "http:concurrent-requests")
@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_calls_of_one_client_at_the_same_time_have_each_their_own_messages(
    client, revision, add_tool
):
    both = asyncio.Barrier(2)
    loop = asyncio.get_running_loop()

    def meet(ctx: mcp.Context, word: str) -> str:
        """Report while another call is here, and answer behind its report."""
        asyncio.run_coroutine_threadsafe(both.wait(), loop).result(PATIENCE)
        ctx.progress(1)
        asyncio.run_coroutine_threadsafe(both.wait(), loop).result(PATIENCE)
        return word

    add_tool(meet)
    client = speaking(client, revision)
    first, second = (Connection.calling(client, "meet", token=one, word=one) for one in "ab")
    await asyncio.gather(first.whole(), second.whole())

    assert first.messages[-1]["id"] != second.messages[-1]["id"]
    for call, word in ((first, "a"), (second, "b")):
        *reports, answer = call.messages
        assert [report["params"]["progressToken"] for report in reports] == [word]
        assert answer["result"]["content"][0]["text"] == word
