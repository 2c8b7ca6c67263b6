"""Find out why an assistant cannot connect, and say what to type."""

from __future__ import annotations

import json
import os
import re
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from mcp_django.audit.entries import printable
from mcp_django.auth.redaction import REDACTED
from mcp_django.auth.resource import endpoint_path, endpoint_url
from mcp_django.conf import get_config
from mcp_django.management.doctor import SEVERITIES, Finding, info
from mcp_django.management.doctor.endpoint import (
    CLIENTS,
    PublicEndpoint,
    diagnose_endpoint,
    is_address,
)
from mcp_django.management.doctor.site import diagnose_site

TOKEN = "MCP_TOKEN"  # noqa: S105  the name of a variable


class Command(BaseCommand):
    help = (
        "Find out why an assistant cannot connect, and say what to type. Asks the site itself, "
        "and its address as clients do. Changes nothing."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "url",
            metavar="URL",
            nargs="?",
            help="What clients connect to. Default: what PUBLIC_URL says, if it is set.",
        )
        parser.add_argument(
            "--as",
            action="append",
            dest="clients",
            choices=CLIENTS,
            help="The client whose requests to send. Repeatable. Default: all.",
        )
        parser.add_argument(
            "--origin",
            action="append",
            dest="origins",
            default=[],
            help="The origin of a client that runs in a browser. Repeatable. Those of "
            "ALLOWED_ORIGINS are always checked.",
        )
        parser.add_argument(
            "--token",
            help=f"A token for the address. Better: in the environment variable {TOKEN}, where "
            "other users of this machine do not see it.",
        )
        parser.add_argument(
            "--timeout", type=float, default=10.0, help="Seconds to wait for an answer."
        )
        parser.add_argument(
            "--fail-level",
            choices=SEVERITIES[1:],
            default="error",
            help="The least severity that makes the exit status 1. Default: error.",
        )
        parser.add_argument("--json", action="store_true", dest="as_json", help="For programs.")

    def handle(self, *args: Any, url: str | None, **options: Any) -> None:
        token = (options["token"] or os.environ.get(TOKEN, "")).strip()
        # RFC 6750, 2.1. The error does not show it.
        if token and not re.fullmatch(r"[\w\-.~+/]+=*", token, re.ASCII):
            raise CommandError("The token has characters that no token has.")
        if url and not is_address(url):
            raise CommandError("Write the address as clients do: https://shop.example.com/mcp")
        site = list(diagnose_site())
        groups = {"The site": site}
        is_readable = all(one.check != "mcp_django.E003" for one in site)
        own_url = endpoint_url() if is_readable else ""
        url = url or own_url
        if is_address(url):
            allowed = get_config().allowed_origins if is_readable else ()
            place = own_url or f"that ends with {endpoint_path()}"
            found = diagnose_endpoint(
                PublicEndpoint(url, token=token, own_url=place, timeout=options["timeout"]),
                clients=[CLIENTS[name] for name in options["clients"] or CLIENTS],
                origins=dict.fromkeys([*options["origins"], *allowed]),
            )
            groups[url] = list(found)
        else:
            site.append(info("No address was asked.", "python manage.py mcp_doctor URL"))
        rows = [{"about": about, **asdict(one)} for about in groups for one in groups[about]]
        text = json.dumps(rows, indent=2) if options["as_json"] else "\n".join(as_lines(groups))
        # Servers may send back what they get.
        self.stdout.write(text.replace(token, REDACTED) if token else text)
        worst = max(SEVERITIES.index(row["severity"]) for row in rows)
        if worst >= SEVERITIES.index(options["fail_level"]):
            sys.exit(1)


def as_lines(groups: Mapping[str, Sequence[Finding]]) -> Iterator[str]:
    """Yield the lines for people: what was asked, what was found out, and what to type."""
    for about, found in groups.items():
        yield about
        for one in found:
            check = f"{one.check}: " if one.check else ""
            yield f"  {one.severity:<8} {check}{printable(one.sentence)}"
            yield from (f"           - {printable(client)}" for client in one.clients)
            if one.hint:
                yield f"           > {printable(one.hint)}"
