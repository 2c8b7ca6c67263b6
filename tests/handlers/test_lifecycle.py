from __future__ import annotations

import pytest
from django.apps import apps

from mcp_django.protocol.revisions import Era, Revision
from tests.clients import CheckedClient
from tests.spec import requirement

pytestmark = pytest.mark.django_db

LEGACY = [revision for revision in Revision if revision.era is Era.LEGACY]


@requirement("lifecycle:result", "lifecycle:capabilities-served", "lifecycle:ping")
@pytest.mark.parametrize("revision", LEGACY, ids=lambda one: one.value)
def test_the_handshake_tells_who_the_server_is_and_what_it_can(any_revision, revision):
    hello = any_revision.initialize()

    assert hello["protocolVersion"] == revision.value
    assert hello["serverInfo"] == {"name": "Test shop", "version": "1.2.3"}
    announced = {"tools", "resources", "prompts", "logging"}
    assert hello["capabilities"].keys() - {"completions"} == announced
    assert any_revision.request("ping") == {}


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
