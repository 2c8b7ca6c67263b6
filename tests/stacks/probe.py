"""Load and call the tools of a server through one stack, in an environment that has that stack.

    python tests/stacks/probe.py NAME URL TOKEN <CALLS

CALLS is JSON, the arguments by the name of the tool. Prints one line of JSON: what the stack would
send to a model, and what each call answered, both by the name of the tool. Imports nothing of the
project.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

Call = Callable[[dict[str, Any]], Awaitable[Any]]
Headers = dict[str, str]
#: How each tool is called, and how the stack describes it to a model.
Tools = AsyncIterator[Iterable[tuple[Call, Any]]]
#: What to install for a stack, and its loader. No stack needs torch.
STACKS: dict[str, tuple[tuple[str, ...], Any]] = {}
#: Many import what mcp 2 no longer has.
MCP1 = "mcp>=1.26,<2"


def stack(*packages: str) -> Callable[[Callable[[str, Headers], Tools]], None]:
    def register(loader: Callable[[str, Headers], Tools]) -> None:
        STACKS[loader.__name__] = packages, asynccontextmanager(loader)

    return register


@asynccontextmanager
async def session(url: str, headers: Headers) -> AsyncIterator[Any]:
    """The session of either major version of the official SDK, which many stacks ask for."""
    from mcp import ClientSession
    from mcp.client import streamable_http

    async with AsyncExitStack() as exits:
        if hasattr(streamable_http, "streamablehttp_client"):
            streams = streamable_http.streamablehttp_client(url, headers=headers)
        else:
            import httpx2

            http = await exits.enter_async_context(httpx2.AsyncClient(headers=headers))
            streams = streamable_http.streamable_http_client(url, http_client=http)
        read, write, *_ = await exits.enter_async_context(streams)
        client = await exits.enter_async_context(ClientSession(read, write))
        await client.initialize()
        yield client


def by_keywords(function: Callable[..., Awaitable[Any]]) -> Call:
    return lambda arguments: function(**arguments)


def in_thread(function: Callable[..., Any]) -> Call:
    return lambda arguments: asyncio.to_thread(function, **arguments)


def described(tool: Any, schema: Any) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": schema}


# mcpadapt imports what only mcp[ws] brings.
@stack("smolagents[mcp]>=1.26,<2", "mcpadapt>=0.1.19,<0.2", "mcp[ws]>=1.26,<2")
async def smolagents(url: str, headers: Headers) -> Tools:
    from smolagents import ToolCollection
    from smolagents.models import get_tool_json_schema

    where = {"url": url, "transport": "streamable-http", "headers": headers}
    with ToolCollection.from_mcp(where, trust_remote_code=True, structured_output=False) as loaded:
        yield [(in_thread(tool), get_tool_json_schema(tool)) for tool in loaded.tools]


@stack("autogen-core>=0.7.5,<0.8", "autogen-ext[mcp]>=0.7.5,<0.8", MCP1)
async def autogen(url: str, headers: Headers) -> Tools:
    from autogen_core import CancellationToken
    from autogen_ext.tools.mcp import StreamableHttpServerParams, mcp_server_tools

    tools = await mcp_server_tools(StreamableHttpServerParams(url=url, headers=headers))
    token = CancellationToken()
    yield [(partial(tool.run_json, cancellation_token=token), tool.schema) for tool in tools]


@stack("langchain-mcp-adapters>=0.3.2,<0.4")
async def langchain(url: str, headers: Headers) -> Tools:
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langchain_mcp_adapters.client import MultiServerMCPClient

    where = {"url": url, "transport": "streamable_http", "headers": headers}
    tools = await MultiServerMCPClient({"demo": where}).get_tools()
    yield [(tool.ainvoke, convert_to_openai_tool(tool)) for tool in tools]


@stack("pydantic-ai-slim[mcp]>=2.68,<3")
async def pydantic_ai(url: str, headers: Headers) -> Tools:
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer as Transformer

    async with MCPToolset(url, headers=headers) as toolset:
        tools = await toolset.list_tools()
        calls = [partial(toolset.direct_call_tool, tool.name) for tool in tools]
        sent = [described(tool, Transformer(tool.input_schema).walk()) for tool in tools]
        yield zip(calls, sent, strict=True)


@stack("openai-agents>=0.24,<1")
async def openai_agents(url: str, headers: Headers) -> Tools:
    from agents.mcp import MCPServerStreamableHttp, MCPUtil
    from agents.models.openai_responses import Converter

    async with MCPServerStreamableHttp(params={"url": url, "headers": headers}) as server:
        # As strict as its schema allows.
        tools = [MCPUtil.to_function_tool(t, server, True) for t in await server.list_tools()]
        sent = Converter.convert_tools(tools, []).tools
        yield [(partial(server.call_tool, tool["name"]), tool) for tool in sent]


@stack("google-adk[mcp]>=2.13,<3")
async def google_adk(url: str, headers: Headers) -> Tools:
    from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams

    toolset = McpToolset(
        connection_params=StreamableHTTPConnectionParams(url=url, headers=headers)
    )
    client = await toolset._mcp_session_manager.create_session()
    tools = await toolset.get_tools()
    yield [(partial(client.call_tool, tool.name), tool._get_declaration()) for tool in tools]
    await toolset.close()


@stack("fastmcp>=4.2,<5")
async def fastmcp(url: str, headers: Headers) -> Tools:
    from fastmcp import Client
    from fastmcp.client.transports import StreamableHttpTransport

    async with Client(StreamableHttpTransport(url, headers=headers)) as client:
        tools = await client.list_tools()
        yield [(partial(client.call_tool, tool.name), tool) for tool in tools]


@stack("llama-index-tools-mcp>=0.6,<0.7")
async def llama_index(url: str, headers: Headers) -> Tools:
    from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

    tools = await McpToolSpec(BasicMCPClient(url, headers=headers)).to_tool_list_async()
    sent = [tool.metadata.to_openai_tool(skip_length_check=True) for tool in tools]
    yield zip([by_keywords(tool.acall) for tool in tools], sent, strict=True)


@stack("agno>=3.1,<4", "fastmcp>=4.2,<5", "openai>=3,<4")
async def agno(url: str, headers: Headers) -> Tools:
    from agno.tools.function import FunctionCall
    from agno.tools.mcp import MCPTools, StreamableHTTPClientParams

    def caller(function: Any) -> Call:
        return lambda given: FunctionCall(function=function, arguments=given).aexecute()

    where = StreamableHTTPClientParams(url=url, headers=headers)
    async with MCPTools(transport="streamable-http", server_params=where) as toolkit:
        functions = toolkit.functions.values()
        yield [(caller(function), function.to_dict()) for function in functions]


@stack("mcp-haystack>=2.1,<3")
async def haystack(url: str, headers: Headers) -> Tools:
    from haystack_integrations.tools.mcp import MCPToolset, StreamableHttpServerInfo

    where = StreamableHttpServerInfo(url=url, headers=headers)
    toolset = await asyncio.to_thread(MCPToolset, where, eager_connect=True)
    yield [(in_thread(tool.invoke), tool.tool_spec) for tool in toolset]


@stack("strands-agents>=1.62,<2")
async def strands(url: str, headers: Headers) -> Tools:
    from strands.tools.mcp import MCPClient

    with MCPClient(url=url, headers=headers) as client:
        sent = [tool.tool_spec for tool in client.list_tools_sync()]
        call = partial(partial, asyncio.to_thread, client.call_tool_sync, "1")
        yield [(call(tool["name"]), tool) for tool in sent]


@stack("mcp-agent>=0.2.6,<0.3", MCP1)
async def mcp_agent(url: str, headers: Headers) -> Tools:
    from mcp_agent.agents.agent import Agent
    from mcp_agent.app import MCPApp
    from mcp_agent.config import LoggerSettings, MCPServerSettings, MCPSettings, Settings

    where = MCPServerSettings(transport="streamable_http", url=url, headers=headers)
    servers, logger = MCPSettings(servers={"demo": where}), LoggerSettings(transports=["none"])
    app = MCPApp("demo", settings=Settings(mcp=servers, logger=logger))
    demo = partial(Agent, name="demo", server_names=["demo"])
    async with app.run() as run, demo(context=run.context) as agent:
        tools = (await agent.list_tools()).tools
        yield [(partial(agent.call_tool, tool.name), tool) for tool in tools]


@stack("dspy>=3.4,<4", "mcp>=2,<3")
async def dspy(url: str, headers: Headers) -> Tools:
    from dspy import Tool

    async with session(url, headers) as client:
        tools = [Tool.from_mcp_tool(client, tool) for tool in (await client.list_tools()).tools]
        yield [(by_keywords(tool.acall), tool.format_as_litellm_function_call()) for tool in tools]


@stack("semantic-kernel[mcp]>=1.45,<2")
async def semantic_kernel(url: str, headers: Headers) -> Tools:
    from semantic_kernel import Kernel
    from semantic_kernel.connectors.ai import function_calling_utils as utils
    from semantic_kernel.connectors.mcp import MCPStreamableHttpPlugin as Plugin

    kernel = Kernel()
    convert = utils.kernel_function_metadata_to_function_call_format
    async with Plugin("demo", url=url, headers=headers, load_prompts=False) as plugin:
        functions = kernel.add_plugin(plugin).functions.values()
        calls = [by_keywords(partial(function.invoke, kernel)) for function in functions]
        yield zip(calls, [convert(function.metadata) for function in functions], strict=True)


@stack("ag2[mcp,openai]>=1.2,<2")
async def ag2(url: str, headers: Headers) -> Tools:
    from ag2 import Context, MemoryStream
    from ag2.config.openai.mappers import tool_to_api
    from ag2.events import ToolCallEvent
    from ag2.tools.toolkits import MCPToolkit
    from ag2.tools.toolkits.mcp_server.types import MCPServerConfig

    toolkit = MCPToolkit(MCPServerConfig(server_url=url, headers=headers))
    context = Context(MemoryStream())
    await toolkit.schemas(context)

    async def call(tool: Any, arguments: dict[str, Any]) -> Any:
        event = await tool(ToolCallEvent(tool.name, arguments=json.dumps(arguments)), context)
        # The repr of a text is shortened.
        return [getattr(part, "content", part) for part in event.result.parts]

    yield [(partial(call, tool), tool_to_api(tool.schema)) for tool in toolkit.tools]


@stack("litellm>=1.110,<2", "mcp>=2,<3")
async def litellm(url: str, headers: Headers) -> Tools:
    from litellm.mcp_client import call_openai_tool, load_mcp_tools

    def caller(client: Any, name: str) -> Call:
        return lambda arguments: call_openai_tool(
            client, {"function": {"name": name, "arguments": json.dumps(arguments)}}
        )

    async with session(url, headers) as client:
        tools = await load_mcp_tools(client, format="openai")
        yield [(caller(client, tool["function"]["name"]), tool) for tool in tools]


@stack("agent-framework-core>=1.23,<2", "mcp>=2,<3", "tenacity>=9,<10")
async def agent_framework(url: str, headers: Headers) -> Tools:
    from agent_framework import MCPStreamableHTTPTool as Server

    async def call(function: Any, arguments: dict[str, Any]) -> Any:
        return [content.text for content in await function.invoke(arguments=arguments)]

    async with Server("demo", url, static_headers=headers, load_prompts=False) as server:
        yield [(partial(call, tool), tool.to_json_schema_spec()) for tool in server.functions]


@stack("google-genai>=3.6,<4", "mcp>=2,<3")
async def google_genai(url: str, headers: Headers) -> Tools:
    from google.genai._mcp_utils import mcp_to_gemini_tool

    async with session(url, headers) as client:
        tools = (await client.list_tools()).tools
        sent = [mcp_to_gemini_tool(tool).function_declarations[0] for tool in tools]
        yield [(partial(client.call_tool, tool.name), tool) for tool in sent]


@stack("beeai-framework[mcp]>=0.1.85,<0.2", MCP1)
async def beeai(url: str, headers: Headers) -> Tools:
    from beeai_framework.tools.mcp import MCPTool

    async with session(url, headers) as client:
        tools = await MCPTool.from_client(client)
        yield [
            (tool.run, described(tool, tool.input_schema.model_json_schema())) for tool in tools
        ]


@stack("agentscope>=2,<3")
async def agentscope(url: str, headers: Headers) -> Tools:
    from agentscope.mcp import HttpMCPConfig, MCPClient

    where = HttpMCPConfig(url=url, headers=headers)
    client = MCPClient(name="demo", is_stateful=True, mcp_config=where)
    await client.connect()
    tools = await client.list_tools()
    yield [(by_keywords(tool), described(tool, tool.input_schema)) for tool in tools]
    await client.close()


@stack("anthropic[mcp]>=2.14,<3")
async def anthropic(url: str, headers: Headers) -> Tools:
    from anthropic.lib.tools.mcp import async_mcp_tool

    async with session(url, headers) as client:
        tools = [async_mcp_tool(tool, client) for tool in (await client.list_tools()).tools]
        yield [(tool.call, tool.to_dict()) for tool in tools]


@stack("huggingface_hub[mcp]>=2.4,<3", MCP1)
async def hugging_face(url: str, headers: Headers) -> Tools:
    from huggingface_hub import MCPClient

    async with MCPClient(model="none") as client:
        await client.add_mcp_server("http", url=url, headers=headers)
        names = [(tool.function.name, tool) for tool in client.available_tools]
        yield [(partial(client.sessions[name].call_tool, name), tool) for name, tool in names]


@stack("mistralai[mcp]>=3.7,<4")
async def mistral(url: str, headers: Headers) -> Tools:
    from mistralai.extra.mcp import streamable_http as http

    where = http.StreamableHTTPServerParams(url=url, headers=headers)
    client = http.MCPClientStreamableHTTP(where)
    await client.initialize()
    tools = await client.get_tools()
    yield [(partial(client.execute_tool, tool.function.name), tool) for tool in tools]
    await client.aclose()


@stack("livekit-agents[mcp]>=1.8,<2")
async def livekit(url: str, headers: Headers) -> Tools:
    from livekit.agents.llm.mcp import MCPServerHTTP

    def caller(tool: Any) -> Call:
        return lambda arguments: tool(raw_arguments=arguments)

    server = MCPServerHTTP(url, headers=headers, client_session_timeout_seconds=60)
    await server.initialize()
    yield [(caller(tool), tool.info.raw_schema) for tool in await server.list_tools()]
    await server.aclose()


@stack("inspect-ai>=0.3.285,<0.4", "mcp>=1.26,<3")
async def inspect_ai(url: str, headers: Headers) -> Tools:
    from inspect_ai.tool import ToolDef, mcp_server_http

    async with mcp_server_http(url=url, headers=headers) as server:
        tools = [ToolDef(tool) for tool in await server.tools()]
        yield [(by_keywords(tool.tool), described(tool, plain(tool.parameters))) for tool in tools]


def plain(definition: Any) -> Any:
    if hasattr(definition, "model_dump"):
        return definition.model_dump(mode="json", by_alias=True, exclude_none=True)
    return definition


async def answer(call: Call, arguments: dict[str, Any]) -> str:
    try:
        return str(await call(arguments))
    except Exception as error:  # Many stacks raise what a tool refuses.
        return repr(error)


async def probe(name: str, url: str, token: str) -> dict[str, Any]:
    arguments, sent, answers = json.load(sys.stdin), {}, {}
    async with STACKS[name][1](url, {"Authorization": f"Bearer {token}"}) as tools:
        for call, definition in tools:
            definition = plain(definition)
            # Some put the name of the server before that of the tool.
            tool = re.sub("^(mcp__)?demo[-_]+", "", definition.get("function", definition)["name"])
            sent[tool] = definition
            if tool in arguments:
                answers[tool] = await answer(call, arguments[tool])
    return {"sent": sent, "answers": answers}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(probe(*sys.argv[1:]))))
