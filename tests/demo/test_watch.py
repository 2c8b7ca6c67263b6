"""The demo as its reader has it: what the terminal printed, a browser, and a client that waits."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.demo.state import ROOT
from tests.services import path_of
from tests.transports.live_servers import free_port, wait_for

PATIENCE = 60


@contextmanager
def running(*command, **options):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
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


@pytest.mark.needs("playwright", "chromium", "curl", "daphne")
def test_a_client_that_waits_sees_a_flight_that_is_changed_in_the_admin(fresh_demo, tmp_path):
    # The flight keeps its new gate, and the log what was done: that is for no other test to find.
    demo = fresh_demo.copy_to(tmp_path / "state")
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    password = json.loads((demo.state / "passwords.json").read_text())["admin"]
    with running(
        sys.executable, "manage.py", "demo", "--port", str(port), cwd=ROOT, env=demo.environment()
    ) as served:
        printed = []
        while "Serving." not in (line := served.stdout.readline()):
            printed.append(line.strip())
        command = next(line for line in printed if line.startswith("curl -N"))
        wait_for(port)
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
