"""Where clients connect, and what they are told for that: text to copy."""

from __future__ import annotations

import json
import re

from django.conf import settings
from django.http import HttpRequest

from mcp_django.auth.resource import endpoint_path, endpoint_url
from mcp_django.conf import get_config


def address_for_clients(request: HttpRequest) -> str:
    """The address for clients, or "" where nobody can say what comes first.

    Only on a developer's machine it is that of the request.
    """
    address = endpoint_url()
    if not address and settings.DEBUG:
        return request.build_absolute_uri(endpoint_path())
    return address


def snippets(url: str, *, credential: str = "TOKEN") -> list[dict[str, str]]:
    """The configuration of some clients, as each of them reads it."""
    name = re.sub(r"[^a-z0-9]+", "-", get_config().name.lower()).strip("-") or "django"
    header = f"Authorization: Bearer {credential}"
    command = f'claude mcp add --transport http {name} {url} --header "{header}"'
    server = {"type": "http", "url": url, "headers": {"Authorization": f"Bearer {credential}"}}
    files = {"VS Code: .vscode/mcp.json": "servers", "Many others": "mcpServers"}
    return [{"title": "Claude Code", "text": command}] + [
        {"title": title, "text": json.dumps({key: {name: server}}, indent=2, ensure_ascii=False)}
        for title, key in files.items()
    ]
