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

STARTER = "Programs that only start commands, by mcp-remote"
#: The titles of the cards that the pages of the site show, by names to type.
CARDS = {
    "chatgpt": "ChatGPT", "claude": "Claude on the web, on the desktop and on phones",
    "claude-code": "Claude Code", "claude-desktop": STARTER, "codex": "Codex", "cursor": "Cursor",
    "gemini": "Gemini CLI", "inspector": "MCP Inspector", "mcp-remote": STARTER, "n8n": "n8n",
    "other": "Other clients", "vscode": "VS Code",
}  # fmt: skip
#: For --write: the file in a project, its member for servers, and what stands for a token in it.
FILES = {
    "claude-code": (".mcp.json", "mcpServers", f"${{{TOKEN}}}"),
    "vscode": (".vscode/mcp.json", "servers", "${input:mcp-token}"),
}
INPUT = {"type": "promptString", "id": "mcp-token", "description": "Token", "password": True}


class Command(BaseCommand):
    help = "Show what to type or to paste to connect a client to this site."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        names = ", ".join(CARDS)
        parser.add_argument("client", metavar="CLIENT", choices=CARDS, help=f"One of: {names}.")
        parser.add_argument("--url", help="The address. Default: what PUBLIC_URL says.")
        files = " and ".join(f"{file} for {client}" for client, (file, *_) in FILES.items())
        parser.add_argument("--write", action="store_true", help=f"Write {files}, without tokens.")

    def handle(self, *, client: str, url: str | None, write: bool, **options: Any) -> None:
        url = url or endpoint_url()
        if not is_address(url):
            typed = f"manage.py mcp_connect {client} --url http://127.0.0.1:8000/mcp"
            raise CommandError(f"Write the address as clients do, or set PUBLIC_URL: {typed}")
        cards = {card.title: card for card in client_cards(url)}
        [(name, server)] = json.loads(cards["VS Code"].text)["servers"].items()
        cards |= {card.title: card for card in more_cards(name, url, cards["Cursor"])}
        card = cards.get(CARDS[client])
        if card is None:
            sentence = "This client takes no token, and nobody can sign in"
            raise CommandError(f"{sentence}: see manage.py mcp_oauth")
        if not write:
            self.stderr.write(" ".join(filter(None, (card.steps, card.link))))
            self.stdout.write(card.text)
            return
        if client not in FILES:
            raise CommandError(f"--write knows the files of {' and '.join(FILES)} only.")
        file, member, reference = FILES[client]
        # Both clients write a server alike, and have the same ways to register.
        if needs_token := "headers" in server:
            server["headers"] = {"Authorization": f"Bearer {reference}"}
        add_server(Path(file), member, name, server)
        self.stdout.write(f"{file} has {name} now.")
        if needs_token:
            self.stdout.write(f"It has {reference} in place of a token: manage.py mcp_token")


def more_cards(name: str, url: str, registering: ClientCard) -> tuple[ClientCard, ...]:
    """Return the cards of clients of which the pages say nothing. Codex registers itself."""
    text, steps = f"codex mcp add {name} --url {url}", f"Then sign in: codex mcp login {name}"
    if "Authorization" in registering.text:
        text, steps = f"{text} --bearer-token-env-var {TOKEN}", f"Put a token into {TOKEN}."
    node = "Add the node MCP Client Tool with this endpoint, HTTP Streamable and Bearer Auth."
    return (
        ClientCard(title="Codex", steps=f"Run this command. {steps}", text=text),
        ClientCard(title="n8n", steps=node, text=url),
    )


def add_server(path: Path, member: str, name: str, server: dict[str, Any]) -> None:
    """Add it to what is in the file. Raises CommandError, and changes nothing then."""
    try:
        content = json.loads(path.read_bytes()) if path.exists() else {}
        if content.setdefault(member, {}).setdefault(name, server) != server:
            raise CommandError(f"{path} has another {name}. Take it out, and try again.")
        is_asked = f"${{input:{INPUT['id']}}}" in str(server)
        if is_asked and all(one["id"] != INPUT["id"] for one in content.setdefault("inputs", [])):
            content["inputs"].append(INPUT)
        text = json.dumps(content, indent=2, ensure_ascii=False).encode()
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text + b"\n")
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        sentence = "is no JSON of the expected form, so nothing was changed. Comments are no JSON."
        raise CommandError(f"{path} {sentence} ({error})") from None
