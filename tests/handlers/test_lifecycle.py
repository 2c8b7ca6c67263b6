from __future__ import annotations

import pytest
from django.apps import apps

from mcp_django.protocol.revisions import LATEST_LEGACY, Era, Revision
from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient
from tests.spec import requirement

pytestmark = pytest.mark.django_db

LEGACY = [revision for revision in Revision if revision.era is Era.LEGACY]
HELLO = {
    "protocolVersion": LATEST_LEGACY.value,
    "capabilities": {},
    "clientInfo": {"name": "x", "version": "1"},
}


def greet(client, **changes):
    """The answer to a handshake; a member that is None is left out."""
    params = {name: value for name, value in {**HELLO, **changes}.items() if value is not None}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    [answer] = client.post(message).messages
    return answer


@requirement("lifecycle:result", "lifecycle:capabilities-served", "lifecycle:ping")
@pytest.mark.parametrize("revision", LEGACY, ids=lambda one: one.value)
def test_the_handshake_tells_who_the_server_is_and_what_it_can(any_revision, revision):
    hello = any_revision.initialize()

    assert hello["protocolVersion"] == revision.value
    assert hello["serverInfo"] == {"name": "Test shop", "version": "1.2.3"}
    announced = {"tools", "resources", "prompts", "logging"}
    assert hello["capabilities"].keys() - {"completions"} == announced
    assert any_revision.request("ping") == {}


@requirement("lifecycle:version-offered")
@pytest.mark.parametrize("requested", ["1999-01-01", "2026-07-28", "soon"])
def test_a_handshake_for_what_has_none_agrees_on_the_newest_that_has(client, requested):
    answer = greet(client, protocolVersion=requested)

    assert answer["result"]["protocolVersion"] == LATEST_LEGACY.value


@requirement("lifecycle:params-required")
@pytest.mark.parametrize("member", HELLO)
def test_a_handshake_that_is_not_whole_names_what_is_missing(client, member):
    error = greet(client, **{member: None})["error"]

    assert error["code"] == -32602
    assert member in error["message"]


def test_discovery_names_the_revisions_and_the_server(client, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "INSTRUCTIONS": "Start with list_models."}

    found = client.discover()

    assert found["supportedVersions"] == ["2026-07-28"]
    assert found["instructions"] == "Start with list_models."


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_instructions_of_a_site_that_writes_none_are_the_same_for_all(make_user, revision):
    greetings = []
    for user in (make_user("boss", is_superuser=True), make_user("nobody")):
        caller = CheckedClient(user=user, revision=revision)
        hello = caller.discover() if revision == "2026-07-28" else caller.initialize()
        greetings.append(hello["instructions"])

    assert greetings[0] == greetings[1]
    assert "Start with list_models" in greetings[0]
    # A model may be hidden from who reads this.
    assert not [model for model in apps.get_models() if model._meta.label_lower in greetings[0]]


@pytest.mark.parametrize("method", ["ping", "initialize"])
def test_methods_of_the_handshake_do_not_exist_in_the_modern_era(client, method):
    with pytest.raises(ProtocolFailure) as raised:
        client.request(method)

    assert (raised.value.status, raised.value.code) == (404, -32601)
