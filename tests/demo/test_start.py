"""What the terminal says of the demo, and what comes of typing it."""

from __future__ import annotations

import json
import shlex
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.children import start
from tests.demo.state import ROOT
from tests.transports.live_servers import free_port, wait_for
from tests.waiting import LONG_PATIENCE, PATIENCE

FAKE_PYTHON = """#!/bin/sh
case "$*" in
  *version_info*) exit {old} ;;
  *ensurepip*) exit {without_venv} ;;
  *) echo "called: $*" ; exit 9 ;;
esac
"""


def tokens(demo):
    kept = json.loads((demo.state / "tokens.json").read_text())
    return {name: entry["secret"] for name, entry in kept.items()}


@pytest.mark.parametrize("how", ["", "revoked", "expired"])
def test_a_second_run_prints_the_same_tokens_but_for_one_that_ended(own_demo, how):
    before = tokens(own_demo)
    if how:
        own_demo.ask("end_token", "manager", how)

    printed = own_demo.ask("run", "demo", "--no-serve")

    after = tokens(own_demo)
    assert own_demo.first_run.startswith("Preparing the database")
    assert len(before) == 4
    assert all(secret in own_demo.first_run for secret in before.values())
    assert all(secret in printed for secret in after.values())
    changed = {name for name in after if after[name] != before[name]}
    assert changed == ({"manager"} if how else set())
    assert not any(before[name] in printed for name in changed)
    assert own_demo.mode("tokens.json") == 0o600


def test_what_is_printed_names_the_port_and_can_be_pasted(demo):
    printed = demo.ask("run", "demo", "--no-serve", "--port", "8123")

    endpoint = "http://127.0.0.1:8123/mcp"
    configurations = [
        json.loads(line) for line in printed.splitlines() if line.strip().startswith('{"')
    ]
    assert f"claude mcp add --transport http flight-desk {endpoint}" in printed
    assert {next(iter(one)) for one in configurations} == {"servers", "mcpServers"}
    for one in configurations:
        server = next(iter(one.values()))["flight-desk"]
        assert server["url"] == endpoint
        assert server["headers"]["Authorization"].removeprefix("Bearer ") in printed


def test_a_busy_port_is_told_in_a_sentence(demo):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        refused = demo.manage("demo", "--port", str(port), check=False)

    assert refused.returncode == 1
    assert f"Port {port} is in use. Choose another one: make demo PORT=" in refused.stderr
    assert refused.stdout == ""


@pytest.mark.parametrize(
    ("faults", "sentence"),
    [
        ({"old": 0, "without_venv": 1}, "Install python3-venv"),
        ({"old": 1, "without_venv": 0}, "older than Python 3.11"),
    ],
)
def test_make_says_what_is_wrong_with_the_python_of_the_machine(tmp_path, faults, sentence):
    fake = tmp_path / "fake-python"
    fake.write_text(FAKE_PYTHON.format(**faults))
    fake.chmod(0o755)
    (tmp_path / ".ci").mkdir()
    for name in ("Makefile", "pyproject.toml", ".ci/lock.txt"):
        shutil.copy(ROOT / name, tmp_path / name)

    finished = subprocess.run(
        ["make", "demo", f"PYTHON={fake}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LONG_PATIENCE,
    )

    assert finished.returncode != 0
    assert sentence in finished.stderr
    assert not (tmp_path / ".venv").exists()


@contextmanager
def running(*command, **options):
    process = start(command, stdout=subprocess.PIPE, text=True, **options)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE)
        process.stdout.close()


@contextmanager
def served(demo):
    """The demo on a port of its own: its address, and the lines that the terminal shows."""
    port = free_port()
    with running(
        sys.executable, "manage.py", "demo", "--port", str(port), cwd=ROOT, env=demo.environment()
    ) as process:
        printed = []
        while "Serving." not in (line := process.stdout.readline()):
            assert line, printed
            printed.append(line.strip())
        wait_for(port)
        yield f"http://127.0.0.1:{port}", printed


def output_of(*command):
    return subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=PATIENCE
    ).stdout


@pytest.mark.needs("curl", "daphne")
def test_every_address_that_is_printed_answers_and_the_calls_by_hand_list_tools_and_listen(
    fresh_demo, tmp_path
):
    demo = fresh_demo.copy_to(tmp_path / "state")
    secrets = tokens(demo)
    with served(demo) as (address, printed):
        by_hand = next(line for line in printed if line.startswith("curl http"))
        assert secrets["dispatcher"] in by_hand
        tools = {}
        for name, secret in secrets.items():
            command = shlex.split(by_hand.replace(secrets["dispatcher"], secret))
            answer = json.loads(output_of(*command, "--silent"))
            tools[name] = {one["name"] for one in answer["result"]["tools"]}
        pages = {
            name: output_of("curl", "--silent", "--location", f"{address}/{path}")
            for name, path in (("Start page", ""), ("Admin", "admin/"))
        }
        for name, path in (("Start page", "/"), ("Admin", "/admin/"), ("MCP", "/mcp")):
            assert f"{name:<13}{address}{path}" in printed
        listen = next(line for line in printed if line.startswith("curl -N"))
        with running(*shlex.split(listen), "--silent") as client:
            data = next(line for line in client.stdout if line.startswith("data: "))

    assert "Connect an assistant" in pages["Start page"]
    assert f"<pre>{address}/mcp</pre>" in pages["Start page"]
    assert "<script" not in pages["Start page"]
    assert not any(secret in pages["Start page"] for secret in secrets.values())
    assert 'name="password"' in pages["Admin"]
    assert "create_record" in tools["dispatcher"]
    # Whoever may only look gets an answer as well.
    assert all("find_records" in names for names in tools.values())
    acknowledged = json.loads(data.removeprefix("data: "))["params"]["notifications"]
    assert acknowledged == {"resourceSubscriptions": ["django://objects/flights.flight"]}
