"""What answers promise of each other: the same list, the same revisions, the same shape."""

from __future__ import annotations

import jsonschema_rs
import pytest

from tests.clients import CheckedClient
from tests.spec import requirement

pytestmark = pytest.mark.django_db

LISTS = ["tools/list", "resources/list", "resources/templates/list"]


@requirement("tools:no-connection")
@pytest.mark.parametrize("method", LISTS)
def test_a_list_is_the_same_for_every_client_with_the_same_credential(client, method):
    before = client.request(method)
    client.call_tool("echo", text="a")

    assert client.request(method) == before
    assert CheckedClient(token=client.token).request(method) == before


@requirement("envelope:supported-subset")
def test_what_a_refusal_calls_supported_is_what_discovery_names(client):
    unknown = {"MCP-Protocol-Version": "2099-01-01"}

    refusal = client.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=unknown)

    supported = refusal.messages[0]["error"]["data"]["supported"]
    assert supported
    assert set(supported) <= set(client.discover()["supportedVersions"])


@requirement("tools:input-schema")
def test_every_tool_takes_an_object_and_its_schema_is_one(any_revision):
    tools = any_revision.list_tools()

    assert tools
    for tool in tools:
        assert tool["inputSchema"]["type"] == "object"
        jsonschema_rs.meta.validate(tool["inputSchema"])
