"""A client of the authorization server, and the person in front of its page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import unescape
from urllib.parse import parse_qsl, urlsplit

from django.test import Client

from mcp_django.testing import Client as MCPClient

RESOURCE = "http://testserver/mcp"
CALLBACK = "https://claude.example/callback"
VERIFIER = "v" * 43
HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)"(?: value="([^"]*)")?')
BOXES = re.compile(r'<input type="checkbox" name="([^"]+)"(?: value="([^"]*)")?[^>]* checked>')
CHALLENGE = (
    base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
)


def fields_of(page):
    """Return what a browser sends of a page on which a person has changed nothing."""
    fields = {name: unescape(value) for name, value in HIDDEN.findall(page)}
    for name, value in BOXES.findall(page):
        fields[name] = [*fields.get(name, ()), unescape(value) or "on"]
    return fields


def query_of(address):
    return dict(parse_qsl(urlsplit(address).query))


class Flow:
    """One registered client. Each step takes what a test wants to be different."""

    def __init__(self, application, *, browser=None):
        self.application = application
        self.browser = browser or Client()
        #: The program has no cookies.
        self.program = Client(enforce_csrf_checks=True)

    def parameters(self, **changes):
        asked = {
            "response_type": "code",
            "client_id": self.application.client_id,
            "redirect_uri": CALLBACK,
            "scope": "mcp:read",
            "state": "s1",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "resource": RESOURCE,
        } | changes
        return {name: value for name, value in asked.items() if value is not None}

    def ask(self, **changes):
        return self.browser.get("/oauth/authorize", self.parameters(**changes))

    def answer(self, page, *, allow=True, **changes):
        """Press a button of the page."""
        fields = fields_of(page.content.decode())
        fields |= {"allow": "1"} if allow else {"deny": "1"}
        fields = {name: value for name, value in (fields | changes).items() if value is not None}
        return self.browser.post(page.request["PATH_INFO"], fields)

    def code(self, **changes):
        return query_of(self.answer(self.ask(**changes)).headers["Location"])["code"]

    def post(self, path, **fields):
        sent = {"client_id": self.application.client_id} | fields
        return self.program.post(path, {k: v for k, v in sent.items() if v is not None})

    def exchange(self, code, /, **changes):
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": CALLBACK,
            "code_verifier": VERIFIER,
            "resource": RESOURCE,
        }
        return self.post("/oauth/token", **fields | changes)

    def refresh(self, token, **changes):
        fields = {"grant_type": "refresh_token", "refresh_token": token, "resource": RESOURCE}
        return self.post("/oauth/token", **fields | changes)

    def tokens(self, **changes):
        return self.exchange(self.code(**changes)).json()

    def call(self, token, *, method="tools/list", path="/mcp", **params):
        client = MCPClient()
        message = client.message(method, params)
        accept = {"Accept": "application/json, text/event-stream"}
        headers = {**accept, **client.routing_headers(message)}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return self.program.post(
            path, json.dumps(message), content_type="application/json", headers=headers
        )

    def tool(self, token, name, **arguments):
        return self.call(token, method="tools/call", name=name, arguments=arguments)

    def tools(self, token):
        """The names of the tools that the token lists."""
        return {tool["name"] for tool in self.call(token).json()["result"]["tools"]}
