"""Load the tools of the demo through the stacks of real agents, and call each of them once.

    python -m tests.stacks.run              each stack
    python -m tests.stacks.run smolagents   one of them

Each stack has an environment of its own in `.stacks/`, since what they need conflicts. No model is
asked, and no data of the demo changes. It is an error where a stack offers fewer tools than the
server lists, or cannot call them. What a stack would send to a model is held to the rules that
services publish: "yes", or how many of its tools break one.
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

import django
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from mcp_django.exposure.functions.json_schemas import subschemas
from tests.conformance_site.serve import free_port, is_listening
from tests.stacks.probe import STACKS

ROOT = Path(__file__).parent.parent.parent
HOME = ROOT / ".stacks"
#: Who may do most of what the demo has.
USER = "admin"
#: Seconds that a stack, and the start of the demo, may take.
PATIENCE = 600
FRANKFURT = {"model": "flights.airport", "filters": {"iata": "FRA"}}
AIRPORT = {"model": "flights.airport", "pk": "1"}
NEW_CODE = {"model": "flights.airport", "values": {"iata": "XXX"}, "dry_run": True}
WEEK = {"since": "2026-11-01", "until": "2026-11-07"}
NOT_FOUND = {"pks": ["0"]}, "Not found: 0"
#: Arguments for each tool, and something that its answer has in it. Those that write make a dry
#: run, or are refused.
CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "list_models": ({}, "flights.airport"),
    "describe_model": ({"model": "flights.airport"}, "iata"),
    "find_records": ({**FRANKFURT, "fields": ["iata"], "limit": 1}, "FRA"),
    "aggregate_records": ({**FRANKFURT, "metrics": {"number": {"count": "*"}}}, "number"),
    "export_records": (FRANKFURT, "/download/"),
    "get_record": (AIRPORT, "_version"),
    "get_history": (AIRPORT, "history"),
    "list_resources": ({}, "django://site"),
    "read_resource": ({"uri": "django://models/flights.airport"}, "iata"),
    "create_record": (NEW_CODE, "Nothing was saved"),
    "update_record": ({**NEW_CODE, "pk": "1"}, "dry_run"),
    "update_records": ({**NEW_CODE, "pks": ["1"]}, "dry_run"),
    "delete_record": ({**AIRPORT, "pk": "0", "dry_run": True}, "There is no"),
    "undo_change": ({**AIRPORT, "change": 0}, "no such change"),
    "check_schedule": (WEEK, "conflicts"),
    "distance": ({"origin": "FRA", "destination": "LHR"}, "kilometres"),
    "on_time_performance": (WEEK, "airlines"),
    "report_delay": ({"flight": "XX0", "day": "2026-11-28", "minutes": 5}, "No flight"),
    "flights_flight_cancel_flights": NOT_FOUND,
    "flights_flight_delay_flights": NOT_FOUND,
    "flights_flight_notify_passengers": NOT_FOUND,
    "flights_flight_passenger_manifest": NOT_FOUND,
    "flights_incident_close_incidents": NOT_FOUND,
}
#: Trouble of a stack that is its own, and what the line about it has in it.
KNOWN = {
    # google-genai 3.6 takes no `additionalProperties` that is true.
    "google_genai": "'bool' object has no attribute 'items'",
}


def run(*command: Any) -> None:
    subprocess.run(command, check=True)


def install(name: str) -> Path:
    """The Python of the environment of a stack."""
    folder, packages = HOME / name, STACKS[name][0]
    python, stamp = folder / "bin/python", folder / "stamp"
    # With pip alone, some thirty environments would take an hour and copy every file.
    uv = HOME / "uv/bin/uv"
    if not uv.exists():
        venv.create(HOME / "uv", with_pip=True)
        run(HOME / "uv/bin/python", "-m", "pip", "install", "--quiet", "uv>=0.13,<1")
    if not stamp.exists() or stamp.read_text() != repr(packages):
        print(f"Installing {name} into {folder}", flush=True)
        run(uv, "venv", "--quiet", "--clear", "--python", sys.executable, folder)
        run(uv, "pip", "install", "--quiet", "--python", python, *packages)
        stamp.write_text(repr(packages))
    return python


@contextmanager
def demo() -> Iterator[tuple[str, str]]:
    """The address of a running demo, and a token."""
    port = free_port()
    with tempfile.TemporaryDirectory() as state:
        env = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.stacks.settings",
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


async def listed(url: str, token: str) -> dict[str, Any]:
    """Return the tools that the official client lists with this token, by their names."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        tools = (await client.list_tools()).tools
        return {tool.name: tool.model_dump(mode="json", by_alias=True) for tool in tools}


def probe(name: str, url: str, token: str) -> dict[str, Any]:
    """What a stack makes of the server, or `error`."""
    try:
        finished = subprocess.run(
            [install(name), ROOT / "tests/stacks/probe.py", name, url, token],
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            cwd=HOME,  # Some leave files where they run.
            input=json.dumps({tool: arguments for tool, (arguments, _) in CALLS.items()}),
        )
        made: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    except (subprocess.SubprocessError, OSError) as error:
        return {"error": str(error)}
    except (IndexError, ValueError):
        return {"error": " | ".join(finished.stderr.splitlines()[-3:])[-300:]}
    return made


def as_listed(sent: dict[str, Any]) -> dict[str, Any]:
    """Return what a stack sends for a tool in the shape of tools/list, which the rules read."""
    function = sent.get("function", sent)
    keys = ("parameters", "parametersJsonSchema", "inputSchema", "input_schema")
    schema = next((function[key] for key in keys if key in function), {"type": "object"})
    schema = schema.get("json", schema)  # of Bedrock
    for _, keywords in subschemas(schema):
        if isinstance(keywords.get("type"), str):
            keywords["type"] = keywords["type"].lower()  # Gemini's are in capitals.
    return {"description": "", **function, "inputSchema": schema}


def rows(names: list[str], url: str, token: str) -> Iterator[tuple[str, Any, list[str]]]:
    """The stacks with the definitions that they send and the lines about their trouble."""
    tools = asyncio.run(listed(url, token))
    yield "tools/list", tools, [f"is not called: {name}" for name in tools.keys() ^ CALLS.keys()]
    for name in names:
        made = probe(name, url, token)
        sent, answers = made.get("sent", {}), made.get("answers", {})
        trouble = [made["error"]] if "error" in made else []
        trouble += [
            f"{tool}: {answers[tool][:160] if tool in answers else 'is missing'}"
            for tool, (_, words) in CALLS.items()
            if words not in answers.get(tool, "") and "error" not in made
        ]
        yield name, sent, trouble


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    from tests.spec.test_published_rules import RULES, gemini_parameters

    rules = [*RULES, gemini_parameters]
    is_good = True
    with demo() as (url, token):
        print("stack            loaded  called", *(rule.__name__ for rule in rules), sep="  ")
        for name, sent, trouble in rows(sys.argv[1:] or list(STACKS), url, token):
            tools = [as_listed(definition) for definition in sent.values()]
            print(f"{name:<17}{len(sent):>6}{len(CALLS) - len(trouble) if sent else 0:>8}", end="")
            for rule in rules:
                number = sum(any(rule(tool)) for tool in tools)
                word = str(number) if number else "yes" if tools else ""
                print(f"  {word:<{len(rule.__name__)}}", end="")
            print("", *trouble, sep="\n    ", flush=True)
            new = [line for line in trouble if KNOWN.get(name, "\n") not in line]
            is_good &= not new and bool(trouble) == (name in KNOWN)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
