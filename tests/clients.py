"""Clients whose every answer is compared with the official models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from django.test import Client as WebClient

from mcp_django.testing import Client, HTTPAnswer, ProtocolFailure, ToolAnswer
from tests.oracle import assert_valid_message


def browser_of(user: Any, **options: Any) -> WebClient:
    """The browser of somebody who has logged in."""
    browser = WebClient(**options)
    browser.force_login(user)
    return browser


def call_with_token(client: Client, tool: str, **arguments: Any) -> Any:
    """The second call of a client that cannot ask its person, with the token of the first."""
    first = client.assert_ok(tool, **arguments)
    return client.call_tool(tool, **arguments, confirmation=first.data["confirmation"])


def by_name(definitions: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    definition_of = {definition["name"]: definition for definition in definitions}
    assert len(definition_of) == len(definitions), definitions
    return definition_of


class CheckedClient(Client):
    """The public test client, over ASGI."""

    def call_tool(self, tool_name: str, /, **arguments: Any) -> ToolAnswer:
        """Call a tool. The argument `model` may be a class in place of its label."""
        model = arguments.get("model")
        if isinstance(model, type):
            arguments["model"] = model._meta.label_lower  # type: ignore[attr-defined]
        return super().call_tool(tool_name, **arguments)

    def data(self, tool: str, /, **arguments: Any) -> Any:
        """The structured content of a call that must succeed."""
        return self.assert_ok(tool, **arguments).data

    def history(self, of: Any, **arguments: Any) -> Any:
        """The entries about a record, or about all records of a model."""
        record = {"model": of} if isinstance(of, type) else {"model": type(of), "pk": of.pk}
        return self.data("get_history", **record, **arguments)["history"]

    def refusal(self, tool: str, /, **arguments: Any) -> str:
        """The text of a call that the tool must refuse."""
        return self.assert_error(tool, **arguments).text

    def error(self, method: str, /, **params: Any) -> ProtocolFailure:
        """The protocol error that must answer a request."""
        with pytest.raises(ProtocolFailure) as raised:
            self.request(method, params)
        return raised.value

    def failure(self, method: str, /, **params: Any) -> tuple[int, str]:
        """Code and message of that error."""
        error = self.error(method, **params)
        return error.code, error.message

    def tools(self) -> dict[str, dict[str, Any]]:
        """The definitions of all tools by their names, which differ."""
        return by_name(self.list_tools())

    def prompts(self) -> dict[str, dict[str, Any]]:
        """The same of prompts."""
        return by_name(self.list_prompts())

    def models(self) -> list[str]:
        """The labels of the models that are told."""
        return [model["model"] for model in self.data("list_models")["models"]]

    def post(self, body: Any, *, headers: Mapping[str, str | None] | None = None) -> HTTPAnswer:
        answer = super().post(body, headers=headers)
        if (headers or {}).get("MCP-Protocol-Version") == self.revision.value:
            self.check(body, answer)
        return answer

    def check(self, body: Any, answer: HTTPAnswer) -> None:
        posted = msgspec.json.decode(body) if isinstance(body, bytes) else body
        posted = posted if isinstance(posted, list) else [posted]
        methods = {message.get("id"): message.get("method") for message in posted}
        for message in answer.messages:
            method = message.get("method") or methods.get(message.get("id"), "ping")
            assert_valid_message(self.revision, method, message)


class WSGIClient(CheckedClient):
    """The same requests to the same site, as a WSGI server would hand them over."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        #: Keeps cookies, as a browser does.
        self.web = WebClient(enforce_csrf_checks=True)

    def http(
        self, verb: str, body: bytes = b"", *, headers: Mapping[str, str | None] | None = None
    ) -> HTTPAnswer:
        pairs = self.scope(verb, headers=headers)["headers"]
        sent = {name.decode(): value.decode("latin-1") for name, value in pairs}
        # Django's client leaves the type of an empty body out.
        environ = {"CONTENT_TYPE": sent.pop("content-type", "")}
        with self.recorded():
            response = self.web.generic(verb, self.path, body, headers=sent, **environ)
        found = {name.lower(): value for name, value in response.items()}
        return HTTPAnswer(status=response.status_code, headers=found, body=response.content)


#: Two tests: the fixture `client` speaks over ASGI in one and over WSGI in the other.
over_asgi_and_wsgi = pytest.mark.parametrize(
    "client",
    [{"kind": CheckedClient}, {"kind": WSGIClient}],
    ids=["asgi", "wsgi"],
    indirect=True,
)
