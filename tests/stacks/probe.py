"""Load and call the tools of a server through one stack, in an environment that has that stack.

    python tests/stacks/probe.py NAME URL TOKEN

Prints one line of JSON. Imports nothing of the project.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

Call = Callable[[dict[str, Any]], Awaitable[Any]]
#: A call with arguments of several kinds, and something that its answer has in it.
FIND = {"model": "flights.airport", "filters": {"iata": "FRA"}, "fields": ["iata"], "limit": 1}


@asynccontextmanager
async def smolagents(url: str, headers: dict[str, str]) -> AsyncIterator[dict[str, Call]]:
    from smolagents import ToolCollection

    where = {"url": url, "transport": "streamable-http", "headers": headers}
    with ToolCollection.from_mcp(where, trust_remote_code=True, structured_output=False) as found:

        def caller(tool: Any) -> Call:
            async def call(arguments: dict[str, Any]) -> Any:
                return await asyncio.to_thread(tool, **arguments)

            return call

        yield {tool.name: caller(tool) for tool in found.tools}


@asynccontextmanager
async def autogen(url: str, headers: dict[str, str]) -> AsyncIterator[dict[str, Call]]:
    from autogen_core import CancellationToken
    from autogen_ext.tools.mcp import StreamableHttpServerParams, mcp_server_tools

    tools = await mcp_server_tools(StreamableHttpServerParams(url=url, headers=headers))

    def caller(tool: Any) -> Call:
        return lambda arguments: tool.run_json(arguments, CancellationToken())

    yield {tool.name: caller(tool) for tool in tools}


@asynccontextmanager
async def langchain(url: str, headers: dict[str, str]) -> AsyncIterator[dict[str, Call]]:
    from langchain_mcp_adapters.client import MultiServerMCPClient

    where = {"url": url, "transport": "streamable_http", "headers": headers}
    tools = await MultiServerMCPClient({"demo": where}).get_tools()
    yield {tool.name: tool.ainvoke for tool in tools}


@asynccontextmanager
async def pydantic_ai(url: str, headers: dict[str, str]) -> AsyncIterator[dict[str, Call]]:
    from pydantic_ai.mcp import MCPToolset

    async with MCPToolset(url, headers=headers) as toolset:
        tools = await toolset.list_tools()

        def caller(name: str) -> Call:
            return lambda arguments: toolset.direct_call_tool(name, arguments)

        yield {tool.name: caller(tool.name) for tool in tools}


@asynccontextmanager
async def openai_agents(url: str, headers: dict[str, str]) -> AsyncIterator[dict[str, Call]]:
    from agents.mcp import MCPServerStreamableHttp, MCPUtil

    async with MCPServerStreamableHttp(params={"url": url, "headers": headers}) as server:
        tools = [
            MCPUtil.to_function_tool(tool, server, True)  # as strict as its schema allows
            for tool in await server.list_tools()
        ]

        def caller(name: str) -> Call:
            return lambda arguments: server.call_tool(name, arguments)

        yield {tool.name: caller(tool.name) for tool in tools}


@asynccontextmanager
async def google_adk(url: str, headers: dict[str, str]) -> AsyncIterator[dict[str, Call]]:
    from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams

    where = StreamableHTTPConnectionParams(url=url, headers=headers)
    toolset = McpToolset(connection_params=where)
    tools = await toolset.get_tools()
    declared = {tool._get_declaration().name: tool for tool in tools}

    def caller(tool: Any) -> Call:
        async def call(arguments: dict[str, Any]) -> Any:
            session = await toolset._mcp_session_manager.create_session()
            return await session.call_tool(tool.name, arguments=arguments)

        return call

    yield {name: caller(tool) for name, tool in declared.items()}
    await toolset.close()


LOADERS = (smolagents, autogen, langchain, pydantic_ai, openai_agents, google_adk)
STACKS = {loader.__name__: loader for loader in LOADERS}


async def probe(name: str, url: str, token: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    async with STACKS[name](url, headers) as tools:
        listed = str(await tools["list_models"]({}))
        found = str(await tools["find_records"](FIND))
        return {
            "loaded": len(tools),
            "list_models": "flights.airport" in listed,
            "find_records": "FRA" in found,
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(probe(*sys.argv[1:]))))
