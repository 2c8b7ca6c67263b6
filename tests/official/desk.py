"""A flight desk in processes of its own, and the official client in front of it."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from mcp_django.testing.client import rows_as_objects
from tests.children import start
from tests.demo.state import ROOT, Demo
from tests.waiting import PATIENCE

#: How the client is told which era to speak, and what it then speaks.
MODES = {"modern": "auto", "pinned": "2026-07-28", "legacy": "legacy"}
NEWEST = {"modern": "2026-07-28", "legacy": "2025-11-25"}

SERVERS = {
    "daphne": ["-m", "daphne", "--fd", "{fd}", "demo_project.asgi:application"],
    "uvicorn": ["-m", "uvicorn", "--fd", "{fd}", "demo_project.asgi:application"],
    "wsgi": ["-m", "tests.official.wsgi", "{fd}"],
}


class Desk(Demo):
    """The state of one flight desk, and whatever runs on it."""

    settings = "tests.official.settings"
    module = "tests.official.inside"

    def __init__(self, state: Path) -> None:
        super().__init__(state)
        self.tokens: dict[str, str] = {}
        self.token_ids: dict[str, int] = {}
        self.urls: dict[str, str] = {}

    def make_token(self, name: str, user: str, *options: str) -> None:
        """With `manage.py mcp_token`, in a process that has Django loaded already."""
        made = json.loads(self.ask("run", "mcp_token", "create", user, *options, "--json"))
        self.tokens[name] = made["token"]
        self.token_ids[name] = made["id"]

    @contextmanager
    def serving(self, server: str) -> Iterator[None]:
        """A server in a process of its own. What it logged must not be a traceback."""
        log = self.state / f"{server}.log"
        # Bound and listening before the server runs: a client may connect at once, and waits.
        with socket.create_server(("127.0.0.1", 0), backlog=64) as listener, log.open("w") as out:
            address = f"http://127.0.0.1:{listener.getsockname()[1]}"
            process = start(
                [sys.executable, *(part.format(fd=listener.fileno()) for part in SERVERS[server])],
                cwd=ROOT,
                env=self.environment(DEMO_PUBLIC_URL=address),
                pass_fds=[listener.fileno()],
                stdout=out,
                stderr=out,
            )
        self.urls[server] = f"{address}/mcp"
        try:
            yield
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE)
        assert "Traceback" not in log.read_text(), log.read_text()

    @asynccontextmanager
    async def connect(
        self,
        token: str,
        era: str,
        *,
        server: str = "daphne",
        transport: str = "streamable_http",
        **options: Any,
    ) -> AsyncIterator[Assistant]:
        """The official client, connected as whoever owns the token of that name."""
        headers = {"Authorization": f"Bearer {self.tokens[token]}"}
        http = httpx2.AsyncClient(headers=headers, timeout=PATIENCE, verify=False)
        streams = (
            sse_client(f"{self.urls[server]}/sse", headers=headers)
            if transport == "http_sse"
            else streamable_http_client(self.urls[server], http_client=http)
        )
        async with http, connected(streams, era, **options) as assistant:
            yield assistant


@asynccontextmanager
async def connected(streams: Any, era: str, **options: Any) -> AsyncIterator[Assistant]:
    """The official client at the streams of a transport."""
    try:
        async with (
            asyncio.timeout(PATIENCE),
            Client(streams, mode=MODES[era], cache=None, **options) as client,
        ):
            yield Assistant(client)
    except BaseExceptionGroup as group:
        # The client's task groups wrap what a test raises, once or several times.
        raise only(group) from None


class Assistant:
    """A connected client, with the shortest words for what tests do all the time."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """The answer of a tool that must succeed, as JSON."""
        result = await self.client.call_tool(tool, arguments)
        block, *links = result.content
        assert {link.type for link in links} <= {"resource_link"}
        assert not result.is_error, block.text
        answer = json.loads(block.text)
        assert result.structured_content in (None, answer)
        # For tests, rows with the names of their columns are easier to read.
        return {**answer, "records": rows_as_objects(answer)} if "rows" in answer else answer

    async def refusal(self, tool: str, /, **arguments: Any) -> str:
        """The sentence of a tool that must fail."""
        result = await self.client.call_tool(tool, arguments)
        (block,) = result.content
        assert result.is_error, block.text
        return block.text

    async def find(self, model: str, /, **arguments: Any) -> list[dict[str, Any]]:
        """The records of all pages."""
        found: list[dict[str, Any]] = []
        arguments = {"model": model, "limit": 200, **arguments}
        while True:
            page = await self.call("find_records", **arguments)
            found += page["records"]
            if "next" not in page:
                return found
            arguments["cursor"] = page["next"]

    async def models(self) -> dict[str, int]:
        """The models that list_models shows, and how many records of each."""
        overview = await self.call("list_models")
        return {one["model"]: one["records"] for one in overview["models"]}

    async def read(self, uri: str) -> Any:
        """The decoded JSON of a resource."""
        (contents,) = (await self.client.read_resource(uri)).contents
        assert contents.uri == uri
        assert contents.mime_type == "application/json"
        answer = json.loads(contents.text)
        return {**answer, "records": rows_as_objects(answer)} if "rows" in answer else answer


def only(group: BaseExceptionGroup) -> BaseException:
    """The one exception in a group of groups, or the group where there are several."""
    inner: BaseException = group
    while isinstance(inner, BaseExceptionGroup) and len(inner.exceptions) == 1:
        inner = inner.exceptions[0]
    return inner
