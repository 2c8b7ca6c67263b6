"""Show what to type or to paste to connect a client, or write it into a file of the project."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from mcp_django.auth.clients import ClientCard, client_cards
from mcp_django.auth.resource import endpoint_url
from mcp_django.management.commands.mcp_doctor import TOKEN
from mcp_django.management.doctor.endpoint import is_address

CLOUD = "Claude on the web, on the desktop and on phones"
STARTER = "Programs that only start commands, by mcp-remote"
#: Clients by the names that they have here: the titles of their cards. The first card that there
#: is counts: without a way to sign in, Claude Desktop needs a program that sends a token.
CARDS = {
    "chatgpt": ("ChatGPT",),
    "claude": (CLOUD,),
    "claude-code": ("Claude Code",),
    "claude-desktop": (CLOUD, STARTER),
    "codex": ("Codex",),
    "cursor": ("Cursor",),
    "gemini": ("Gemini CLI",),
    "inspector": ("MCP Inspector",),
    "mcp-remote": (STARTER,),
    "n8n": ("n8n",),
    "other": ("Other clients",),
    "vscode": ("VS Code",),
}
#: For --write: the file of a project, the member with the servers, and what stands for a token.
FILES = {
    "claude-code": (".mcp.json", "mcpServers", f"${{{TOKEN}}}"),
    "vscode": (".vscode/mcp.json", "servers", "${input:NAME-token}"),
}


class Command(BaseCommand):
    help = "Show what to type or to paste to connect a client to this site."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "client", metavar="CLIENT", choices=CARDS, help=f"One of: {', '.join(CARDS)}."
        )
        parser.add_argument("--url", help="The address. Default: what PUBLIC_URL says.")
        parser.add_argument(
            "--write",
            action="store_true",
            help="Add it to a file in this directory, without a token: "
            + ", ".join(f"{path} for {client}" for client, (path, *_) in FILES.items())
            + ".",
        )

    def handle(self, *, client: str, url: str | None, write: bool, **options: Any) -> None:
        url = url or endpoint_url()
        if not is_address(url):
            raise CommandError(
                "Write the address as clients do, or set PUBLIC_URL: "
                f"manage.py mcp_connect {client} --url http://127.0.0.1:8000/mcp"
            )
        cards = {card.title: card for card in client_cards(url)}
        name, server = next(iter(json.loads(cards["VS Code"].text)["servers"].items()))
        cards |= {card.title: card for card in (codex_card(name, url, cards), n8n_card(url))}
        card = next((cards[title] for title in CARDS[client] if title in cards), None)
        if card is None:
            raise CommandError(
                "This client takes no token, and nobody can sign in: see manage.py mcp_oauth"
            )
        if not write:
            self.stderr.write("\n".join(filter(None, (card.steps, card.link))))
            self.stdout.write(card.text)
            return
        if client not in FILES:
            raise CommandError(f"--write knows the files of {' and '.join(FILES)} only.")
        file, member, reference = FILES[client]
        reference = reference.replace("NAME", name)
        # VS Code and Claude Code write a server alike. The token of a card is only a placeholder.
        needs_token = "headers" in server
        if needs_token:
            server["headers"] = {"Authorization": f"Bearer {reference}"}
        asked = {"type": "promptString", "id": f"{name}-token", "password": True}
        asked["description"] = f"Personal token for {name}"
        is_asked = needs_token and client == "vscode"
        add_server(Path(file), member, {name: server}, inputs=[asked] if is_asked else [])
        self.stdout.write(f"{file} has {name} now.")
        if needs_token and not is_asked:
            self.stdout.write(f"The token is read from the environment variable {TOKEN}.")


def codex_card(name: str, url: str, cards: dict[str, ClientCard]) -> ClientCard:
    """Return the card of a client that registers itself, as Cursor does, and that takes tokens
    from the environment only.
    """
    if "headers" not in cards["Cursor"].text:
        steps = f"Run this command. Then sign in with: codex mcp login {name}"
        return ClientCard(title="Codex", steps=steps, text=f"codex mcp add {name} --url {url}")
    return ClientCard(
        title="Codex",
        steps=f"Set the environment variable {TOKEN} to a personal token. Then run this command.",
        text=f"codex mcp add {name} --url {url} --bearer-token-env-var {TOKEN}",
    )


def n8n_card(url: str) -> ClientCard:
    return ClientCard(
        title="n8n",
        steps="Add the node MCP Client Tool with this address as its endpoint. Choose the server "
        "transport HTTP Streamable, and Bearer Auth with a personal token.",
        text=url,
    )


def add_server(
    path: Path, member: str, server: dict[str, Any], *, inputs: list[dict[str, Any]]
) -> None:
    """Add it to what is in the file. Raises CommandError, and changes nothing then."""
    try:
        content = json.loads(path.read_bytes()) if path.exists() else {}
        servers = content.setdefault(member, {})
        known = [one["id"] for one in content.get("inputs", ())]
        for name in server.keys() & servers.keys():
            if servers[name] != server[name]:
                raise CommandError(f"{path} has another {name}. Take it out, and try again.")
        servers.update(server)
        if more := [one for one in inputs if one["id"] not in known]:
            content.setdefault("inputs", []).extend(more)
        text = json.dumps(content, indent=2, ensure_ascii=False).encode()
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text + b"\n")
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CommandError(
            f"{path} is no JSON of the expected form, so nothing was changed: {error}. Comments "
            "are no JSON either: take them out, or paste what the command shows without --write."
        ) from None
