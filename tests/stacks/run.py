"""Load the tools of the demo through the stacks of real agents, and call two of them.

    python -m tests.stacks.run              each stack
    python -m tests.stacks.run smolagents   one of them

Each stack has an environment of its own in `.stacks/`, since what they need conflicts. No model is
asked. It is an error where a stack offers fewer tools than the server lists, or cannot call them.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.conformance_site.serve import free_port, is_listening

ROOT = Path(__file__).parent.parent.parent
HOME = ROOT / ".stacks"
#: What agents are written with, and its adapter for MCP. Nothing of it needs torch.
STACKS = {
    # The first two import what mcp 2 no longer has, and mcpadapt what only mcp[ws] brings.
    "smolagents": ["smolagents[mcp]>=1.26,<2", "mcpadapt>=0.1.19,<0.2", "mcp[ws]>=1.26,<2"],
    "autogen": ["autogen-core>=0.7.5,<0.8", "autogen-ext[mcp]>=0.7.5,<0.8", "mcp>=1.26,<2"],
    "langchain": ["langchain-mcp-adapters>=0.3.2,<0.4"],
    "pydantic_ai": ["pydantic-ai-slim[mcp]>=2.68,<3"],
    "openai_agents": ["openai-agents>=0.24,<1"],
    "google_adk": ["google-adk[mcp]>=2.13,<3"],
}
#: Who may do most of what the demo has.
USER = "admin"
#: Seconds that a stack, and the start of the demo, may take.
PATIENCE = 600


def install(name: str) -> Path:
    """The Python of the environment of a stack."""
    folder, packages = HOME / name, STACKS[name]
    python, stamp = folder / "bin/python", folder / "stamp"
    if not stamp.exists() or stamp.read_text() != repr(packages):
        print(f"Installing {name} into {folder}", flush=True)
        venv.create(folder, with_pip=True)
        quiet = ["--quiet", "--disable-pip-version-check"]
        subprocess.run([python, "-m", "pip", "install", *quiet, *packages], check=True)
        stamp.write_text(repr(packages))
    return python


@contextmanager
def demo() -> Iterator[tuple[str, str]]:
    """The address of a running demo, and a token."""
    port = free_port()
    with tempfile.TemporaryDirectory() as state:
        env = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "demo_project.settings",
            "DEMO_STATE": state,
        }
        command = [sys.executable, "manage.py", "demo", "--port", str(port)]
        HOME.mkdir(exist_ok=True)
        with (HOME / "demo.log").open("wb") as log:
            process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log)
        try:
            until = time.monotonic() + PATIENCE
            while not is_listening(port):
                if process.poll() is not None or time.monotonic() > until:
                    raise SystemExit("The demo does not start.")
                time.sleep(0.2)
            tokens = json.loads((Path(state) / "tokens.json").read_text())
            yield f"http://127.0.0.1:{port}/mcp", tokens[USER]["secret"]
        finally:
            process.terminate()
            process.wait()


async def listed(url: str, token: str) -> int:
    """Return the number of tools that the official client lists with this token."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        return len((await client.list_tools()).tools)


def probe(name: str, url: str, token: str) -> dict[str, Any]:
    """What a stack makes of the server, or `error`."""
    try:
        finished = subprocess.run(
            [install(name), ROOT / "tests/stacks/probe.py", name, url, token],
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        found: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    except (subprocess.SubprocessError, OSError) as error:
        return {"error": str(error)}
    except (IndexError, ValueError):
        return {"error": " | ".join(finished.stderr.splitlines()[-3:])[:300]}
    return found


def main() -> int:
    names = sys.argv[1:] or list(STACKS)
    is_good = True
    with demo() as (url, token):
        number = asyncio.run(listed(url, token))
        print(f"{number} tools are listed.\n")
        print(f"{'stack':<16}{'loaded':>8}  {'list_models':<13}find_records")
        for name in names:
            found = probe(name, url, token)
            calls = [found.get(call, False) for call in ("list_models", "find_records")]
            is_good &= found.get("loaded") == number and all(calls)
            words = ["ok" if is_done else "fails" for is_done in calls]
            print(f"{name:<16}{found.get('loaded', 0):>8}  {words[0]:<13}{words[1]}", flush=True)
            if "error" in found:
                print(f"  {found['error']}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
