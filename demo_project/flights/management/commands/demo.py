from __future__ import annotations

import os
import socket
import sys
from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.template.loader import render_to_string

from demo_project.flights.seeding.users import DEMO_USERS, PASSWORDS
from demo_project.state import ROOT, STATE, read_json
from demo_project.tokens import personal_tokens

HOST = "127.0.0.1"


class Command(BaseCommand):
    help = "Start the flight desk: prepare the database, say how to connect, and serve."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--no-serve", action="store_true", help="Prepare and stop.")

    def handle(self, *args: Any, port: int, no_serve: bool, **options: Any) -> None:
        if not no_serve:
            check_port(port)
        self.stdout.write(f"Preparing the database in {STATE} ...")
        self.stdout.flush()
        call_command("migrate", verbosity=0)
        call_command("seed", stdout=self.stdout)
        address = os.environ.get("DEMO_PUBLIC_URL") or f"http://{HOST}:{port}"
        self.stdout.write(how_to_connect(address))
        if not no_serve:
            self.stdout.write("Serving. Press Ctrl-C to stop.")
            self.stdout.flush()
            serve(port, address)


def check_port(port: int) -> None:
    """Raises CommandError where nobody can listen."""
    if not 1 <= port <= 65535:
        raise CommandError(
            f"{port} is not a port. Choose one from 1024 to 65535: make demo PORT=8001"
        )
    with socket.socket() as probe:
        # As the server does: a port that was left a moment ago is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except PermissionError:
            reason = f"Port {port} needs more rights than yours"
        except OSError:
            reason = f"Port {port} is in use"
        else:
            return
    other = port + 1 if 1024 <= port < 65535 else 8001
    raise CommandError(f"{reason}. Choose another one: make demo PORT={other}")


def how_to_connect(address: str) -> str:
    """What the terminal shows: addresses, the login, tokens and client configurations."""
    passwords = read_json(PASSWORDS)
    secrets = personal_tokens(DEMO_USERS)
    admin = User.objects.get(username="admin")
    context = {
        "address": address,
        "endpoint": f"{address}/mcp",
        "password": passwords["admin"],
        "password_is_ours": admin.check_password(passwords["admin"]),
        "passwords_file": STATE / PASSWORDS,
        "users": [(user, secrets[user.username]) for user in DEMO_USERS],
        "token": secrets["dispatcher"],
    }
    return render_to_string("demo/connect.txt", context)


def serve(port: int, address: str) -> None:
    """Become the server, so that Ctrl-C and signals reach it and nobody else."""
    os.environ["DEMO_PUBLIC_URL"] = address
    os.chdir(ROOT)
    command = [sys.executable, "-m", "daphne", "-b", HOST, "-p", str(port)]
    os.execv(sys.executable, [*command, "demo_project.asgi:application"])  # noqa: S606
