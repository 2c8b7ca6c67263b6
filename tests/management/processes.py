"""`manage.py mcp_stdio` in a process of its own, line by line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from threading import Timer
from typing import Any

import msgspec
from django.db import connection

from mcp_django.testing import Client
from tests.children import start
from tests.waiting import LONG_PATIENCE

ROOT = Path(__file__).parent.parent.parent


def environment(**more: str) -> dict[str, str]:
    # With that set, what prints while Django starts is written before any code of ours runs.
    inherited = {key: one for key, one in os.environ.items() if key != "PYTHONUNBUFFERED"}
    return {
        **inherited,
        "DJANGO_SETTINGS_MODULE": "tests.management.stdio_settings",
        "MCP_STDIO_DATABASE": str(connection.settings_dict["NAME"]),
        **more,
    }


class Process:
    """A context manager: it is killed at the end, and after LONG_PATIENCE in any case."""

    def __init__(self, *arguments: str, **variables: str) -> None:
        self.popen = start(
            [sys.executable, "manage.py", "mcp_stdio", *arguments],
            cwd=ROOT,
            env=environment(**variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        #: Writes the messages.
        self.client = Client()

    def __enter__(self) -> Process:
        self.timer = Timer(LONG_PATIENCE, self.popen.kill)
        self.timer.start()
        return self

    def __exit__(self, *args: object) -> None:
        self.timer.cancel()
        self.popen.kill()
        self.popen.communicate()

    def send(self, message: Any) -> None:
        self.popen.stdin.write(msgspec.json.encode(message) + b"\n")
        self.popen.stdin.flush()

    def ask(self, method: str, **params: Any) -> int:
        message = self.client.message(method, params)
        self.send(message)
        return message["id"]

    def call(self, tool: str, **arguments: Any) -> Any:
        """The result of a tool."""
        key = self.ask("tools/call", name=tool, arguments=arguments)
        answer = self.message()
        assert answer["id"] == key, answer
        return answer.get("result") or answer["error"]

    def message(self) -> Any:
        line = self.popen.stdout.readline()
        assert line, self.popen.stderr.read().decode()
        return msgspec.json.decode(line)

    def finish(self) -> tuple[bytes, str]:
        """End its input. What it still wrote, and what it told people."""
        out, errors = self.popen.communicate(timeout=LONG_PATIENCE)
        return out, errors.decode()
