"""Clients sign in to the demo, from a URL alone to a call: the official one, and MCP Inspector."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import asynccontextmanager, closing
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

from tests import npm
from tests.children import start
from tests.demo.state import ROOT
from tests.oauth.flow import fields_of
from tests.services import is_there, path_of
from tests.transports.live_servers import free_port, wait_for
from tests.waiting import LONG_PATIENCE

if is_there("jwt") and is_there("oauth"):
    from tests.oauth.documents import Host, write_certificate

pytestmark = [pytest.mark.needs("demo", "oauth", "jwt"), pytest.mark.asyncio]
CALLBACK = "http://127.0.0.1:8765/callback"
#: MCP Inspector wants a newer one than Debian has.
NODE = "node@24"


@pytest.fixture
def host(tmp_path):
    """Publishes the document of the client."""
    certificate = tmp_path / "host.pem"
    write_certificate(certificate)
    host = Host(certificate)
    host.document = {
        "client_id": host.address,
        "client_name": "Test client",
        "redirect_uris": [CALLBACK],
        "token_endpoint_auth_method": "none",
    }
    yield host
    host.stop()


@pytest.fixture
def site(fresh_demo, tmp_path, host):
    """Serve a copy of the demo. Return its address and state."""
    demo, port = fresh_demo.copy_to(tmp_path / "state"), free_port()
    address, inspector = f"http://127.0.0.1:{port}", f"http://localhost:{free_port()}"
    environment = demo.environment(
        DJANGO_SETTINGS_MODULE="tests.demo.sign_in_settings",
        DEMO_PUBLIC_URL=address,
        INSPECTOR=inspector,
        LOCAL_CERTIFICATE=str(host.certificate),
    )
    with (tmp_path / "log").open("w") as log:
        process = start(
            [
                *(sys.executable, "-W", "ignore", "-m", "daphne", "-b", "127.0.0.1"),
                *("-p", str(port), "demo_project.asgi:application"),
            ],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        wait_for(port)
        demo.address, demo.inspector, demo.log = address, inspector, tmp_path / "log"
        yield demo
        os.kill(process.pid, signal.SIGTERM)
        process.wait(LONG_PATIENCE)


class Storage:
    """Keep tokens in memory."""

    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


class Person:
    """Signs in, reads the page, and allows what it says."""

    def __init__(self, site, username):
        self.site, self.username = site, username
        self.password = json.loads((site.state / "passwords.json").read_text())[username]
        self.browser = httpx2.Client(base_url=site.address, timeout=LONG_PATIENCE)
        self.pages = []

    async def visit(self, url):
        page = self.browser.get(url)
        if page.status_code == 302:
            login = page.headers["location"]
            fields = fields_of(self.browser.get(login).text)
            fields |= {"username": self.username, "password": self.password}
            page = self.browser.get(self.browser.post(login, data=fields).headers["location"])
        assert page.status_code == 200, page.text
        self.pages.append(page.text)
        answer = self.browser.post(page.url, data={**fields_of(page.text), "allow": "1"})
        self.answer = dict(parse_qsl(urlsplit(answer.headers["location"]).query))

    def close(self):
        self.browser.close()

    async def return_to_client(self):
        return AuthorizationCodeResult(**self.answer)


@pytest.fixture
def person(site):
    with closing(Person(site, "dispatcher")) as person:
        yield person


@asynccontextmanager
async def connected(site, provider):
    async with (
        httpx2.AsyncClient(auth=provider, timeout=LONG_PATIENCE) as http,
        Client(streamable_http_client(f"{site.address}/mcp", http_client=http)) as client,
    ):
        yield client


@pytest.mark.parametrize("registration", ["document", "dynamic"])
async def test_the_official_client_signs_in_steps_up_renews_and_ends(
    site, host, person, registration
):
    storage = Storage()
    provider = OAuthClientProvider(
        f"{site.address}/mcp",
        OAuthClientMetadata(
            client_name="Test client", redirect_uris=[CALLBACK], token_endpoint_auth_method="none"
        ),
        storage,
        redirect_handler=person.visit,
        callback_handler=person.return_to_client,
        client_metadata_url=host.address if registration == "document" else None,
    )
    flight = {"model": "flights.flight", "fields": ["pk", "number"], "limit": 1}
    change = {"model": "flights.flight", "pk": 1, "values": {"gate": "Z9"}}

    async with connected(site, provider) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        page = await client.call_tool("find_records", flight)
        assert storage.tokens.scope == "mcp:read"
        assert len(person.pages) == 1

        saved = await client.call_tool("update_record", change)
        assert set(storage.tokens.scope.split()) == {"mcp:read", "mcp:write"}
        assert len(person.pages) == 2

        before = storage.tokens
        provider.context.token_expiry_time = 1
        await client.call_tool("find_records", flight)
        assert storage.tokens.access_token != before.access_token
        assert len(person.pages) == 2

    assert {"find_records", "update_record"} <= tools
    assert not page.is_error, page.content
    assert not saved.is_error, saved.content
    assert (host.requests == ["/client.json"]) is (registration == "document")
    assert re.search(r"Allow Test client to use Flight desk as you\?", person.pages[0])
    async with httpx2.AsyncClient(base_url=site.address) as http:
        fields = {"token": storage.tokens.refresh_token, "client_id": storage.client.client_id}
        assert (await http.post("/oauth/revoke", data=fields)).status_code == 200
        headers = {"Authorization": f"Bearer {storage.tokens.access_token}"}
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert (await http.post("/mcp", json=ping, headers=headers)).status_code == 401
    text = site.log.read_text()
    assert storage.tokens.access_token not in text
    assert storage.tokens.refresh_token not in text


async def test_a_program_with_a_secret_acts_for_its_user(site):
    code = (
        "from django.contrib.auth.models import User\n"
        "from oauth2_provider.models import Application as A\n"
        "A.objects.create(client_id='robot', client_secret='s3cret', name='Robot',"
        " client_type='confidential', authorization_grant_type='client-credentials',"
        " user=User.objects.get(username='dispatcher'))"
    )
    site.manage("shell", "-c", code)
    provider = ClientCredentialsOAuthProvider(
        f"{site.address}/mcp",
        Storage(),
        client_id="robot",
        client_secret="s3cret",
        issuer=site.address,
    )

    async with connected(site, provider) as client:
        page = await client.call_tool("find_records", {"model": "flights.flight", "limit": 1})

    assert not page.is_error, page.content


@asynccontextmanager
async def open_page():
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(
            executable_path=path_of("chromium"), args=["--no-sandbox"]
        )
        yield await chromium.new_page()
        await chromium.close()


async def log_in(page, person):
    await page.fill("#id_username", person.username)
    await page.fill("#id_password", person.password)
    await page.click("input[type=submit]")


@pytest.fixture
def inspect(site):
    """Start a program of MCP Inspector that serves its pages."""
    processes = []

    def serve(package, program, *arguments):
        folder = ROOT / ".inspector" / package.rpartition("@")[2]
        node = npm.install(NODE, folder.with_name("node")) / "node/bin/node"
        command = npm.install(package, folder) / "@modelcontextprotocol/inspector" / program
        port = urlsplit(site.inspector).port
        environment = {
            **os.environ,
            "HOME": str(site.state),
            "CLIENT_PORT": str(port),
            "DANGEROUSLY_OMIT_AUTH": "true",
            "MCP_AUTO_OPEN_ENABLED": "false",
        }
        options = {"env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
        processes.append(start([node, command, *arguments], **options))
        wait_for(port)

    yield serve
    for process in processes:
        process.terminate()
        process.wait(LONG_PATIENCE)


@pytest.mark.needs("chromium", "playwright", "npm")
async def test_mcp_inspector_signs_in_and_calls_a_tool_from_its_page(site, person, inspect):
    # Only this line of releases connects without a program in between, so that CORS counts.
    inspect("@modelcontextprotocol/inspector@1.0.3", "client/bin/client.js")
    asked = httpx2.QueryParams(transport="streamable-http", serverUrl=f"{site.address}/mcp")
    sent = []

    async with open_page() as page:
        page.on("request", lambda request: sent.append((request.method, request.url)))
        await page.goto(f"{site.inspector}/?{asked}")
        await page.click("#connection-type-select")
        await page.get_by_role("option", name="Direct").click()
        await page.get_by_role("button", name="Connect", exact=True).click()
        await log_in(page, person)
        await page.click("button.allow")
        await page.get_by_role("tab", name="Tools").click()
        await page.get_by_role("button", name="List Tools").click()
        await page.get_by_text("list_models", exact=True).click()
        await page.get_by_role("button", name="Run Tool").click()
        await page.get_by_text("Tool Result: Success").wait_for()
        text = await page.inner_text("body")

    assert "flights.flight" in text
    steps = ["/oauth/register", "/oauth/token", "/mcp"]
    assert {("POST", f"{site.address}{path}") for path in steps} <= set(sent)


@pytest.mark.needs("chromium", "playwright", "npm")
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_newest_mcp_inspector_signs_in_and_calls_a_tool(site, person, inspect, era):
    inspect(
        *("@modelcontextprotocol/inspector@2.12.0", "clients/launcher/build/index.js", "--web"),
        *("--transport", "http", "--server-url", f"{site.address}/mcp", "--protocol-era", era),
    )

    async with open_page() as page:
        await page.goto(site.inspector)
        await page.get_by_role("switch").first.locator("..").click()
        await log_in(page, person)
        await page.click("button.allow")
        await page.get_by_text("Tools", exact=True).first.click()
        await page.get_by_text("list_models", exact=True).click()
        await page.get_by_role("button", name="Execute Tool").click()
        await page.get_by_text("flights.airline").first.wait_for()
