from __future__ import annotations

import pytest
from django.apps import apps

from mcp_django.protocol.revisions import LATEST_LEGACY, Era, Revision
from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient
from tests.spec import requirement

pytestmark = pytest.mark.django_db

LEGACY = [revision for revision in Revision if revision.era is Era.LEGACY]


@requirement("lifecycle:result", "lifecycle:capabilities-served")
@pytest.mark.parametrize("revision", LEGACY, ids=lambda one: one.value)
def test_the_handshake_tells_who_the_server_is_and_what_it_can(client, revision):
    client = CheckedClient(token=client.token, revision=revision)

    hello = client.initialize()

    assert hello["protocolVersion"] == revision.value
    assert hello["serverInfo"] == {"name": "Test shop", "version": "1.2.3"}
    announced = {"tools", "resources", "prompts", "logging"}
    assert hello["capabilities"].keys() - {"completions"} == announced


@requirement("lifecycle:version-offered")
@pytest.mark.parametrize("requested", ["1999-01-01", "2026-07-28", "soon"])
def test_a_handshake_for_what_has_none_agrees_on_the_newest_that_has(client, requested):
    params = {
        "protocolVersion": requested,
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }

    answer = client.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})

    assert answer.status == 200
    assert answer.messages[0]["result"]["protocolVersion"] == LATEST_LEGACY.value


@requirement("lifecycle:params-required")
@pytest.mark.parametrize("member", ["protocolVersion", "capabilities", "clientInfo"])
def test_a_handshake_that_is_not_whole_names_what_is_missing(client, member):
    params = {
        "protocolVersion": LATEST_LEGACY.value,
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    del params[member]

    answer = client.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})

    error = answer.messages[0]["error"]
    assert error["code"] == -32602
    assert member in error["message"]


@requirement("lifecycle:ping")
@pytest.mark.parametrize("revision", LEGACY, ids=lambda one: one.value)
def test_ping_is_answered_by_nothing(client, revision):
    client = CheckedClient(token=client.token, revision=revision)

    assert client.request("ping") == {}


def test_discovery_names_the_revisions_and_the_server(client, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "INSTRUCTIONS": "Start with list_models."}

    found = client.discover()

    assert found["supportedVersions"] == ["2026-07-28"]
    assert found["instructions"] == "Start with list_models."


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_instructions_of_a_site_that_writes_none_are_the_same_for_all(make_user, revision):
    boss = make_user("boss", is_superuser=True)
    greetings = []
    for user in (boss, make_user("nobody")):
        caller = CheckedClient(user=user, revision=revision)
        greet = caller.discover if revision == "2026-07-28" else caller.initialize
        greetings.append(greet()["instructions"])

    assert greetings[0] == greetings[1]
    assert "Start with list_models" in greetings[0]
    # A model may be hidden from who reads this.
    assert not [model for model in apps.get_models() if model._meta.label_lower in greetings[0]]


@pytest.mark.parametrize(
    ("method", "revision"), [("ping", "2026-07-28"), ("initialize", "2026-07-28")]
)
def test_methods_of_the_handshake_do_not_exist_in_the_modern_era(client, method, revision):
    with pytest.raises(ProtocolFailure) as raised:
        client.request(method)

    assert raised.value.status == 404
    assert raised.value.code == -32601
