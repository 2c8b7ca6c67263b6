"""How people connect each client: steps, and text to copy. Docs: howto/clients."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from django.apps import apps
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
    """Return a card for each client: for signing in, or with a personal token.

    Clients that this site does not let register, and all of them where nobody can sign in, get the
    credential, or `TOKEN` in its place. No link holds one: browsers keep addresses.
    """
    token = f"Bearer {credential or 'TOKEN'}"
    if credential or not issuers():
        return list(cards_for_computer(url, publishing=token, registering=token))
    is_ours = apps.is_installed("mcp_django.oauth")
    registration = get_config().registration if is_ours else "cimd+dcr"
    return [
        *cards_for_cloud(url, needs_id=registration == "manual"),
        *cards_for_computer(
            url,
            publishing=token if registration == "manual" else "",
            registering="" if registration == "cimd+dcr" else token,
        ),
    ]


def cards_for_cloud(url: str, *, needs_id: bool) -> Iterator[ClientCard]:
    """Yield the clients that connect from the servers of their makers, and take no token."""
    more = " Enter the client ID that the people who run this site gave you." if needs_id else ""
    yield ClientCard(
        title="Claude on the web, on the desktop and on phones",
        steps=f"Under Customize, Connectors, add a custom connector with this address.{more}",
        text=url,
        link="https://claude.ai/customize/connectors",
    )
    yield ClientCard(
        title="ChatGPT",
        steps=(
            "Under Settings, Apps, Advanced settings, switch developer mode on. Then create an "
            f"app with this address, and choose OAuth.{more}"
        ),
        text=url,
    )


def cards_for_computer(url: str, *, publishing: str, registering: str) -> Iterator[ClientCard]:
    """Yield the clients on the computer of a person, with a value for Authorization or "".

    Some publish a document about themselves, others only register themselves.
    """
    name = re.sub(r"[^a-z0-9]+", "-", get_config().name.lower()).strip("-") or "django"
    option = f' --header "Authorization: {publishing}"' if publishing else ""
    yield ClientCard(
        title="Claude Code",
        steps=token_steps("Run this command.", publishing)
        if publishing
        else "Run this command. Then sign in with /mcp.",
        text=f"claude mcp add --transport http {name} {url}{option}",
    )
    headers: dict[str, Any]
    headers = {"headers": {"Authorization": publishing}} if publishing else {}
    server = {"type": "http", "url": url, **headers}
    yield config_card(
        "VS Code",
        ".vscode/mcp.json",
        {"servers": {name: server}},
        header=publishing,
        link=f"vscode:mcp/install?{quote(json.dumps({'name': name, **server}), safe='')}",
    )
    headers = {"headers": {"Authorization": registering}} if registering else {}
    server = {"url": url, **headers}
    config = b64encode(json.dumps(server).encode()).decode()
    query = urlencode({"name": name, "config": config})
    yield config_card(
        "Cursor",
        "~/.cursor/mcp.json",
        {"mcpServers": {name: server}},
        header=registering,
        link=f"cursor://anysphere.cursor-deeplink/mcp/install?{query}",
    )
    servers = {"mcpServers": {name: {"httpUrl": url, **headers}}}
    yield config_card("Gemini CLI", "~/.gemini/settings.json", servers, header=registering)
    header = f" and the header Authorization: {registering}" if registering else ""
    page = f"Run this command. In the page that opens, choose Streamable HTTP, and enter {url}"
    yield ClientCard(
        title="MCP Inspector",
        steps=token_steps(f"{page}{header}.", registering),
        text="npx @modelcontextprotocol/inspector",
    )
    command: dict[str, Any] = {"command": "npx", "args": ["-y", "mcp-remote", url]}
    if registering:
        # On Windows, programs break an argument at a space.
        command["args"] += ["--header", "Authorization:${AUTHORIZATION}"]
        command["env"] = {"AUTHORIZATION": registering}
    file, servers = "the file where the program lists its servers", {"mcpServers": {name: command}}
    title = "Programs that only start commands, by mcp-remote"
    yield config_card(title, file, servers, header=registering)
    servers = {"mcpServers": {name: {"type": "http", "url": url, **headers}}}
    yield config_card("Other clients", file, servers, header=registering)


def config_card(
    title: str, file: str, config: dict[str, Any], *, header: str, link: str = ""
) -> ClientCard:
    return ClientCard(
        title=title,
        steps=token_steps(f"Put this into {file}.", header),
        text=json.dumps(config, indent=2, ensure_ascii=False),
        link="" if header else link,
    )


def token_steps(steps: str, header: str) -> str:
    replaced = " Put a personal token in the place of TOKEN."
    return f"{steps}{replaced}" if header.endswith(" TOKEN") else steps
