from __future__ import annotations

import asyncio

import msgspec
import pytest
from django.contrib.auth.models import AnonymousUser

import mcp_django as mcp
from mcp_django.context import CallContext
from mcp_django.exceptions import Cancelled
from mcp_django.exposure.primitives import PendingCall
from mcp_django.handlers import dispatch
from mcp_django.handlers.dispatch import HANDLERS, PendingAnswer, answer, server_info
from mcp_django.principal import SCOPES, Principal
from mcp_django.protocol.errors import METHOD_NOT_FOUND, ProtocolError
from mcp_django.protocol.jsonrpc import Request
from mcp_django.protocol.methods import METHODS
from mcp_django.protocol.results import ToolResult
from mcp_django.protocol.revisions import Revision
from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient
from tests.spec import requirement

MODERN = Revision.V2026_07_28


def context_of(user, revision=MODERN):
    principal = Principal(user=user, scopes=frozenset(SCOPES), method="test")
    return CallContext(request=None, principal=principal, revision=revision)


def test_every_method_that_is_served_has_a_handler():
    assert HANDLERS.keys() == METHODS.keys()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("a\r\nb", {}),
        ("tools/call", {"name": "a\r\nb"}),
        ("prompts/get", {"name": "a\r\nb"}),
    ],
)
def test_a_name_that_does_not_exist_is_repeated_on_one_line(client, method, params):
    with pytest.raises(ProtocolFailure) as raised:
        client.send(method, params)

    assert raised.value.message.endswith(r": a\r\nb")


# What a tool can come to


@requirement("tools:execution-errors")
@pytest.mark.django_db
def test_a_tool_error_is_a_result_that_the_model_reads(client, revision):
    client = CheckedClient(token=client.token, revision=revision)

    result = client.call_tool("fail", kind="tool")

    assert result.is_error
    assert result.text == "There is no such day. Ask for one that exists."


@requirement("jsonrpc:internal-error", "security:errors")
@pytest.mark.django_db
def test_a_bug_is_an_internal_error_whose_number_stands_in_the_log(client, revision, caplog):
    client = CheckedClient(token=client.token, revision=revision)

    with pytest.raises(ProtocolFailure) as raised:
        client.call_tool("fail", kind="bug")

    failure = raised.value
    assert (failure.status, failure.code, failure.message) == (200, -32603, "Internal error")
    record = caplog.records[-1]
    assert failure.data["id"] in record.getMessage()
    assert "secret-bug" in caplog.text
    assert "secret" not in str(failure.data)


@pytest.mark.django_db
@pytest.mark.parametrize("error", [SystemExit, asyncio.CancelledError, StopIteration, Cancelled])
def test_what_ends_programs_does_not_end_the_server(client, add_tool, caplog, error):
    def burst() -> str:
        """Raise."""
        raise error("secret")

    add_tool(burst)

    with pytest.raises(ProtocolFailure, match="Internal error"):
        client.call_tool("burst")

    assert error.__name__ in caplog.text


@pytest.mark.django_db
def test_an_interrupt_of_the_operator_is_none_of_ours(client, add_tool):
    def burst() -> str:
        """Raise."""
        raise KeyboardInterrupt

    add_tool(burst)

    with pytest.raises(KeyboardInterrupt):
        client.call_tool("burst")


@pytest.mark.django_db
def test_a_call_that_nobody_waits_for_has_no_answer(staff, monkeypatch):
    def give_up(context, params):
        context.cancelled.set()
        context.check()

    monkeypatch.setitem(HANDLERS, "tools/list", give_up)

    with pytest.raises(Cancelled):
        answer(context_of(staff), Request(1, "tools/list"), server_info(streams=True))


@requirement("tools:unknown")
@pytest.mark.django_db
def test_an_unknown_tool_and_a_forbidden_one_are_the_same(client, revision, make_user):
    clerk = make_user("clerk", is_staff=True)
    client = CheckedClient(user=clerk, revision=revision)
    errors = []

    for name in ("no_such_tool", "pay"):
        with pytest.raises(ProtocolFailure) as raised:
            client.call_tool(name, number="A1")
        errors.append(raised.value)

    assert [(error.code, error.status, error.data) for error in errors] == [
        (-32602, 200, None),
        (-32602, 200, None),
    ]
    assert errors[0].message.replace("no_such_tool", "pay") == errors[1].message


# Methods


@requirement("jsonrpc:unknown-method", "envelope:method-not-found")
@pytest.mark.django_db
def test_an_unknown_method_is_404_in_the_modern_era_only(client, revision):
    client = CheckedClient(token=client.token, revision=revision)

    with pytest.raises(ProtocolFailure) as raised:
        client.request("nonsense/list")

    assert raised.value.code == METHOD_NOT_FOUND
    assert raised.value.status == (404 if revision is MODERN else 200)


@requirement("resources:not-found-legacy", "resources:not-found", "errors:reserved-codes")
@pytest.mark.django_db
@pytest.mark.parametrize("uri", ["django://objects/shop.ledger", "django://nothing", "x:y"])
def test_a_resource_that_is_not_there_is_named_in_the_words_of_the_revision(client, revision, uri):
    client = CheckedClient(token=client.token, revision=revision)

    with pytest.raises(ProtocolFailure) as raised:
        client.read_resource(uri)

    assert raised.value.code == (-32602 if revision is MODERN else -32002)
    assert raised.value.data == {"uri": uri}


@requirement("jsonrpc:invalid-params")
@pytest.mark.django_db
def test_params_of_the_wrong_type_are_named(client, revision):
    client = CheckedClient(token=client.token, revision=revision)

    with pytest.raises(ProtocolFailure) as raised:
        client.request("tools/call", {"name": 7})

    assert raised.value.code == -32602
    assert "name" in raised.value.message


# Async tools, between their two hops


def pending(monkeypatch, result_of):
    async def nothing():
        raise AssertionError("Nobody awaits it here.")

    call = PendingCall(awaitable=nothing(), finish=result_of)
    monkeypatch.setitem(dispatch.HANDLERS, "tools/call", lambda context, params: call)
    answered = answer(
        context_of(AnonymousUser()), Request(1, "tools/call"), server_info(streams=True)
    )
    assert isinstance(answered, PendingAnswer)
    answered.awaitable.close()
    return answered


def raising(error):
    def raise_it():
        raise error

    return raise_it


@pytest.mark.parametrize(
    ("returned", "member", "status"),
    [
        (lambda: "fine", "result", 200),
        (raising(mcp.ToolError("no")), "result", 200),
        (raising(ProtocolError(-32602, "bad", status=400)), "error", 400),
        (raising(ValueError("bug")), "error", 200),
    ],
)
def test_what_an_async_tool_comes_to_is_told_apart_like_a_sync_ones(
    monkeypatch, caplog, returned, member, status
):
    answered = pending(monkeypatch, lambda value: ToolResult.error(value))

    final = answered.settle(returned)

    assert member in msgspec.json.decode(final.body)
    assert final.status == status


def test_the_server_says_who_it_is(settings):
    settings.MCP_DJANGO = {"NAME": "Shop", "VERSION": "2", "INSTRUCTIONS": "Start here."}

    server = server_info(streams=False)

    assert (server.name, server.version, server.instructions) == ("Shop", "2", "Start here.")
    assert not server.streams


@pytest.mark.parametrize("name", ["Shop", "S" * 10_000], ids=["short", "long"])
def test_a_site_that_writes_no_instructions_has_some_that_say_how_to_start(settings, name):
    settings.MCP_DJANGO = {"NAME": name}

    said = server_info(streams=True).instructions

    assert said.startswith(f"{name[:80]}: records of this site, with the rights of the user")
    assert "list_models, then describe_model, then find_records" in said
    assert "A page is a table" in said
    assert said.endswith("Errors say what to do next.")
    assert len(said) <= 600
