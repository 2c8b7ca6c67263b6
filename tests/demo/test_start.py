from __future__ import annotations

import json
import shutil
import socket
import subprocess

import pytest

from tests.demo.state import ROOT
from tests.waiting import LONG_PATIENCE

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


def test_a_second_run_prints_the_same_tokens(demo):
    again = demo.manage("demo", "--no-serve").stdout

    assert len(tokens(demo)) == 4
    assert all(secret in demo.first_run for secret in tokens(demo).values())
    assert all(secret in again for secret in tokens(demo).values())


@pytest.mark.parametrize("name", ["tokens.json", "passwords.json", "secret_key"])
def test_secrets_are_for_their_owner_only(demo, name):
    assert demo.mode(name) == 0o600


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_a_token_that_ended_is_replaced_and_the_others_stay(own_demo, how):
    before = tokens(own_demo)
    own_demo.ask("end_token", "manager", how)

    printed = own_demo.ask("run", "demo", "--no-serve")

    after = tokens(own_demo)
    assert {name for name in after if after[name] != before[name]} == {"manager"}
    assert after["manager"] in printed
    assert before["manager"] not in printed
    assert own_demo.mode("tokens.json") == 0o600


def test_what_is_printed_names_the_port_and_can_be_pasted(demo):
    printed = demo.ask("run", "demo", "--no-serve", "--port", "8123")

    endpoint = "http://127.0.0.1:8123/mcp"
    configurations = [
        json.loads(line)
        for line in printed.splitlines()
        if '{"url' in line or line.strip().startswith('{"')
    ]
    assert f"claude mcp add --transport http flight-desk {endpoint}" in printed
    assert {next(iter(one)) for one in configurations} == {"servers", "mcpServers"}
    for one in configurations:
        server = next(iter(one.values()))["flight-desk"]
        assert server["url"] == endpoint
        assert server["headers"]["Authorization"].removeprefix("Bearer ") in printed


def test_the_password_is_not_the_same_everywhere(demo):
    passwords = json.loads((demo.state / "passwords.json").read_text())

    assert len(set(passwords.values())) == 4
    assert passwords["admin"] in demo.first_run


def test_a_busy_port_is_told_in_a_sentence(demo):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        refused = demo.manage("demo", "--port", str(port), check=False)

    assert refused.returncode == 1
    assert f"Port {port} is in use. Choose another one: make demo PORT=" in refused.stderr
    assert refused.stdout == ""


def test_the_deployment_checks_have_nothing_to_say(demo):
    finished = demo.manage("check", "--deploy", "--fail-level", "WARNING", DEMO_DEBUG="0")

    assert "no issues" in finished.stdout


def test_the_start_page_tells_how_to_connect(demo):
    page = demo.ask("start_page")

    assert "http://127.0.0.1:8000/mcp" in page
    assert "<script" not in page
    assert not any(secret in page for secret in tokens(demo).values())


def make(folder, *, old=0, without_venv=0):
    fake = folder / "fake-python"
    fake.write_text(FAKE_PYTHON.format(old=old, without_venv=without_venv))
    fake.chmod(0o755)
    (folder / ".ci").mkdir()
    for name in ("Makefile", "pyproject.toml", ".ci/lock.txt"):
        shutil.copy(ROOT / name, folder / name)
    return subprocess.run(
        ["make", "demo", f"PYTHON={fake}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LONG_PATIENCE,
    )


def test_make_names_the_debian_package_that_is_missing(tmp_path):
    finished = make(tmp_path, without_venv=1)

    assert finished.returncode != 0
    assert "Install python3-venv" in finished.stderr
    assert not (tmp_path / ".venv").exists()


def test_make_refuses_a_python_that_is_too_old(tmp_path):
    finished = make(tmp_path, old=1)

    assert finished.returncode != 0
    assert "older than Python 3.11" in finished.stderr
