"""How people connect each client: steps, and text to copy. Docs: howto/clients."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings
from django.http import HttpRequest

from mcp_django.auth.resource import endpoint_path, endpoint_url, issuers
from mcp_django.conf import get_config


def address_for_clients(request: HttpRequest) -> str:
    """Return the address for clients, or "" where nobody can say what comes first.

    Only on a developer's machine it is that of the request.
    """
    address = endpoint_url()
    if not address and settings.DEBUG:
        return request.build_absolute_uri(endpoint_path())
    return address


@dataclass(frozen=True, kw_only=True)
class ClientCard:
    title: str
    steps: str
    #: To copy: an address, a command, or the content of a file.
    text: str
    #: Opens the client with the address filled in, where it can be opened so.
    link: str = ""


def client_cards(url: str, *, credential: str = "") -> list[ClientCard]:
    """Return a card for each client: signing in, or with a personal token.

    Without a credential the cards are those for people who sign in, if this site lets them; else
    `TOKEN` stands in its place. No link holds a credential: browsers keep addresses.
    """
    if not credential and issuers():
        return [*cards_for_cloud(url), *cards_for_computer(url)]
    return list(cards_for_computer(url, f"Bearer {credential or 'TOKEN'}"))


def cards_for_cloud(url: str) -> Iterator[ClientCard]:
    """Yield the clients that connect from the servers of their makers, and take no token."""
    yield ClientCard(
        title="Claude on the web, on the desktop and on phones",
        steps="In the settings, under Connectors, add a custom connector with this address.",
        text=url,
        link="https://claude.ai/settings/connectors",
    )
    yield ClientCard(
        title="ChatGPT",
        steps=(
            "In the settings, under Apps and connectors, turn developer mode on under Advanced. "
            "Then create a connector with this address, and OAuth as its authentication."
        ),
        text=url,
        link="https://chatgpt.com/#settings/Connectors",
    )


def cards_for_computer(url: str, header: str = "") -> Iterator[ClientCard]:
    name = re.sub(r"[^a-z0-9]+", "-", get_config().name.lower()).strip("-") or "django"
    headers = {"headers": {"Authorization": header}} if header else {}
    option = f' --header "Authorization: {header}"' if header else ""
    yield ClientCard(
        title="Claude Code",
        steps="Run this command." + ("" if header else " Then sign in with /mcp."),
        text=f"claude mcp add --transport http {name} {url}{option}",
    )
    server = {"type": "http", "url": url, **headers}
    install = quote(json.dumps({"name": name, **server}), safe="")
    yield ClientCard(
        title="VS Code",
        steps="Put this into .vscode/mcp.json.",
        text=indented({"servers": {name: server}}),
        link="" if header else f"vscode:mcp/install?{install}",
    )
    config = b64encode(json.dumps({"url": url}).encode()).decode()
    install = urlencode({"name": name, "config": config})
    yield ClientCard(
        title="Cursor",
        steps="Put this into ~/.cursor/mcp.json.",
        text=indented({"mcpServers": {name: {"url": url, **headers}}}),
        link="" if header else f"cursor://anysphere.cursor-deeplink/mcp/install?{install}",
    )
    yield ClientCard(
        title="Gemini CLI",
        steps="Put this into ~/.gemini/settings.json.",
        text=indented({"mcpServers": {name: {"httpUrl": url, **headers}}}),
    )
    yield ClientCard(
        title="MCP Inspector",
        steps=(
            "Run this command. In the page that opens, choose Streamable HTTP and enter "
            + (f"{url} and the header Authorization: {header}." if header else f"{url}.")
        ),
        text="npx @modelcontextprotocol/inspector",
    )
    command: dict[str, Any] = {"command": "npx", "args": ["-y", "mcp-remote", url]}
    if header:
        # On Windows, programs break an argument at a space.
        command["args"] += ["--header", "Authorization:${AUTHORIZATION}"]
        command["env"] = {"AUTHORIZATION": header}
    yield ClientCard(
        title="Programs that only start commands, by mcp-remote",
        steps="Put this into the file where the program lists its servers.",
        text=indented({"mcpServers": {name: command}}),
    )
    yield ClientCard(
        title="Many others",
        steps="Put this into the file where the program lists its servers.",
        text=indented({"mcpServers": {name: server}}),
    )


def indented(config: dict[str, Any]) -> str:
    return json.dumps(config, indent=2, ensure_ascii=False)
