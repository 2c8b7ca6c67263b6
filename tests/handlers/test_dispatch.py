from __future__ import annotations

import asyncio

import pytest
from django.apps import apps

import mcp_django as mcp
from mcp_django.exceptions import Cancelled
from mcp_django.handlers.dispatch import HANDLERS
from mcp_django.models import CallRecord
from mcp_django.protocol.methods import METHODS
from mcp_django.protocol.revisions import LEGACY
from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient
from tests.spec import requirement

pytestmark = pytest.mark.django_db


def test_every_method_that_is_served_has_a_handler():
    assert HANDLERS.keys() == METHODS.keys()


@pytest.mark.parametrize(
    ("method", "params"),
    [("a\r\nb", {}), ("tools/call", {"name": "a\r\nb"}), ("prompts/get", {"name": "a\r\nb"})],
)
def test_a_name_that_does_not_exist_is_repeated_on_one_line(client, method, params):
    assert client.error(method, **params).message.endswith(r": a\r\nb")


# What a tool can come to


@requirement("tools:execution-errors")
def test_a_tool_error_is_a_result_that_the_model_reads(any_revision, add_tool):
    async def later() -> str:
        """Raise."""
        raise mcp.ToolError("Not today.")

    add_tool(later)

    answers = [any_revision.call_tool("fail", kind="tool"), any_revision.call_tool("later")]

    told = ["There is no such day. Ask for one that exists.", "Not today."]
    assert [answer.text for answer in answers] == told
    assert {(answer.is_error, answer.structured) for answer in answers} == {(True, None)}


@requirement("jsonrpc:internal-error", "security:errors")
def test_a_bug_is_an_internal_error_whose_number_stands_in_the_log_and_the_record(
    any_revision, caplog
):
    any_revision.record = True

    failure = any_revision.error("tools/call", name="fail", arguments={"kind": "bug"})

    assert (failure.status, failure.code, failure.message) == (200, -32603, "Internal error")
    assert failure.data["id"] in caplog.records[-1].getMessage()
    assert "secret-bug" in caplog.text
    assert "secret" not in str(failure.data)
    crashed = CallRecord.objects.get(outcome="crashed")
    assert crashed.correlation_id == failure.data["id"]


@pytest.mark.parametrize(
    "error", [SystemExit, asyncio.CancelledError, StopIteration, Cancelled, KeyboardInterrupt]
)
def test_what_ends_programs_does_not_end_the_server_but_an_operator_does(
    client, add_tool, caplog, error
):
    def burst() -> str:
        """Raise."""
        raise error("secret")

    add_tool(burst)

    is_interrupt = error is KeyboardInterrupt
    with pytest.raises(error if is_interrupt else ProtocolFailure) as raised:
        client.call_tool("burst")

    assert is_interrupt or "Internal error" in str(raised.value)
    assert is_interrupt or error.__name__ in caplog.text


# What does not exist


@requirement("tools:unknown")
def test_an_unknown_tool_and_a_forbidden_one_are_the_same(revision, make_user):
    clerk = CheckedClient(user=make_user("clerk", is_staff=True), revision=revision)

    unknown, forbidden = (
        clerk.failure("tools/call", name=name, arguments={"number": "A1"})
        for name in ("no_such_tool", "pay")
    )

    assert unknown == (-32602, "Unknown tool: no_such_tool")
    assert forbidden == (-32602, "Unknown tool: pay")


# The handshake and discovery


SERVER = {"name": "Test shop", "version": "1.2.3"}
CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "prompts": {"listChanged": True},
    "logging": {},
}


@requirement(
    "lifecycle:result",
    "lifecycle:capabilities-served",
    "lifecycle:completions-capability",
    "lifecycle:tasks-capability",
    "lifecycle:ping",
    "discovery:capabilities-served",
    "discovery:result",
    "discovery:same-features",
    "tools:capability",
)
def test_either_greeting_tells_who_the_server_is_and_what_it_can(
    any_revision, revision, configure
):
    """Where nothing streams: tests/transports/test_wsgi.py."""
    configure(INSTRUCTIONS="Ask for orders.")
    if revision in LEGACY:
        about = {"protocolVersion": revision.value, "serverInfo": SERVER}
        hello = any_revision.initialize()
        assert any_revision.request("ping") == {}
    else:
        about = {"supportedVersions": ["2026-07-28"]}
        hello = any_revision.discover()
        assert hello["_meta"] == {"io.modelcontextprotocol/serverInfo": SERVER}

    completions = {"completions": {}} if revision.features.completions_capability else {}
    of_envelope = {"resultType", "_meta", "ttlMs", "cacheScope"}
    assert {name: hello[name] for name in hello.keys() - of_envelope} == {
        **about,
        "capabilities": {**CAPABILITIES, **completions},
        "instructions": "Ask for orders.",
    }


@pytest.mark.parametrize("name", ["Shop", "S" * 10_000], ids=["short", "long"])
def test_a_site_has_its_own_instructions_or_some_for_all_that_say_how_to_start(
    settings, make_user, name
):
    settings.MCP_DJANGO = {"NAME": name}
    boss = CheckedClient(user=make_user("boss", is_superuser=True))
    nobody = CheckedClient(user=make_user("nobody"), revision="2025-11-25")

    said = boss.discover()["instructions"]

    assert nobody.initialize()["instructions"] == said
    assert said.startswith(f"{name[:80]}: records of this site, with the rights of the user")
    assert "list_models, then describe_model, then find_records" in said
    assert "A page is a table" in said
    assert said.endswith("Errors say what to do next.")
    assert len(said) <= 600
    settings.MCP_DJANGO = {"INSTRUCTIONS": "Start with list_models."}
    assert boss.discover()["instructions"] == "Start with list_models."
    # A model may be hidden from who reads this.
    assert not [model for model in apps.get_models() if model._meta.label_lower in said]
