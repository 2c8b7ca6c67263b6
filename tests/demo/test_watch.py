"""The demo as its reader has it: what the terminal printed, a browser, and a client that waits."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.children import start
from tests.demo.state import ROOT
from tests.services import path_of
from tests.transports.live_servers import free_port, wait_for
from tests.waiting import PATIENCE


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
def page(address):
    """A tab of a browser that is logged in to the admin."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path_of("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser.new_page(base_url=address)
        browser.close()


def log_in(tab, password):
    tab.goto("/admin/")
    tab.fill("[name=username]", "admin")
    tab.fill("[name=password]", password)
    tab.click("[type=submit]")


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
def test_every_address_that_is_printed_answers_and_the_call_by_hand_lists_tools(
    fresh_demo, tmp_path
):
    demo = fresh_demo.copy_to(tmp_path / "state")
    kept = json.loads((demo.state / "tokens.json").read_text())
    with served(demo) as (address, printed):
        by_hand = next(line for line in printed if line.startswith("curl http"))
        dispatcher = kept["dispatcher"]["secret"]
        assert dispatcher in by_hand
        answers = {
            name: json.loads(
                output_of(*shlex.split(by_hand.replace(dispatcher, entry["secret"])), "--silent")
            )
            for name, entry in kept.items()
        }
        pages = {
            name: output_of("curl", "--silent", "--location", f"{address}/{path}")
            for name, path in (("Start page", ""), ("Admin", "admin/"))
        }
        for name, path in (("Start page", "/"), ("Admin", "/admin/"), ("MCP", "/mcp")):
            assert f"{name:<13}{address}{path}" in printed

    assert "Connect an assistant" in pages["Start page"]
    assert f"<pre>{address}/mcp</pre>" in pages["Start page"]
    assert 'name="password"' in pages["Admin"]
    assert "create_record" in {one["name"] for one in answers["dispatcher"]["result"]["tools"]}
    # Whoever may only look gets an answer as well.
    assert "find_records" in {one["name"] for one in answers["analyst"]["result"]["tools"]}
    assert all(one["result"]["tools"] for one in answers.values())


@pytest.mark.needs("playwright", "chromium", "curl", "daphne")
def test_a_client_that_waits_sees_a_flight_that_is_changed_in_the_admin(fresh_demo, tmp_path):
    # The flight keeps its new gate, and the log what was done: that is for no other test to find.
    demo = fresh_demo.copy_to(tmp_path / "state")
    password = json.loads((demo.state / "passwords.json").read_text())["admin"]
    with served(demo) as (address, printed):
        command = next(line for line in printed if line.startswith("curl -N"))
        with running(*shlex.split(command), "--silent") as client, page(address) as tab:
            acknowledged = next_message(client)
            log_in(tab, password)
            tab.goto("/admin/flights/flight/")
            tab.click("#result_list tbody th a >> nth=0")
            tab.fill("[name=gate]", "Z99")
            tab.click("[name=_save]")
            told = next_message(client)

    uris = ["django://objects/flights.flight"]
    assert acknowledged["params"]["notifications"] == {"resourceSubscriptions": uris}
    assert told["method"] == "notifications/resources/updated"
    assert told["params"]["uri"] == uris[0]


def next_message(client):
    for line in client.stdout:
        if line.startswith("data: "):
            return json.loads(line.removeprefix("data: "))
    raise EOFError
