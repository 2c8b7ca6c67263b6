from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import msgspec
import pytest
from asgiref.sync import async_to_sync
from django.http import HttpRequest

import mcp_django as mcp
from mcp_django import signals
from mcp_django.audit.records import Gathered, records
from mcp_django.context import CallContext
from mcp_django.handlers import dispatch
from mcp_django.handlers.dispatch import answer, server_info
from mcp_django.models import CallRecord
from mcp_django.principal import SCOPES, Principal
from mcp_django.protocol.jsonrpc import Request
from mcp_django.protocol.results import ToolResult
from mcp_django.protocol.revisions import Revision
from mcp_django.testing import Client
from tests.clients import CheckedClient
from tests.shop.models import Order

pytestmark = [pytest.mark.django_db, pytest.mark.client(record=True)]
SECRET = "mcp_" + "A" * 43 + "000000"


def only():
    [record] = CallRecord.objects.all()
    return record


# What a record says


def test_a_record_says_who_did_what_and_how_it_ended(client, staff):
    Order.objects.bulk_create(Order(number=f"A{at}") for at in range(3))

    text = client.call_tool("find_records", model="shop.Order", limit=2).text

    record = only()
    assert (record.kind, record.method, record.outcome) == ("tool", "tools/call", "done")
    assert record.target == "find_records shop.order"
    assert record.user == staff
    assert record.principal == f"default/user:{staff.pk}/test"
    assert record.client == "mcp_django.testing 1"
    assert record.rows == 2
    assert record.bytes > 2 * len(text)
    assert (record.correlation_id, record.reason, record.arguments) == ("", "", None)


def of_tool(name, **arguments):
    return "tools/call", {"name": name, "arguments": arguments}


def of_uri(uri):
    return "resources/read", {"uri": uri}


def of_argument(ref, name, value=""):
    return "completion/complete", {"ref": ref, "argument": {"name": name, "value": value}}


MODELS = {"type": "ref/resource", "uri": "django://models/{model}"}
NO_PROMPT = {"type": "ref/prompt", "name": "x"}
ORDERS = "django://objects/shop.order"
#: A request, and its record: the kind, the target, how it ended, and how many records it had.
ENDS = [
    (of_uri("django://site"), "resource", "django://site", "done", None),
    (of_uri(f"{ORDERS}?number=secret"), "resource", f"{ORDERS}?…", "done", 0),
    (of_uri("django://objects/shop.ledger"), "resource", "django://objects/shop.ledger", "denied"),
    (of_uri(f"{ORDERS}/{'x' * 1000}"), "resource", f"{ORDERS}/{'x' * 271}…", "denied"),
    (("resources/list", {}), "other", "", "done"),
    (of_argument(MODELS, "model", "shop.o"), "other", "django://models/{model}", "done", 1),
    (of_argument(NO_PROMPT, "y"), "other", "x", "denied"),
    (("prompts/get", {"name": "hello"}), "prompt", "hello", "done"),
    (("prompts/get", {"name": "no_such_prompt"}), "prompt", "no_such_prompt", "denied"),
    (("prompts/get", {"name": "greet", "arguments": {"name": 1}}), "prompt", "greet", "failed"),
    (of_tool("echo", text="x"), "tool", "echo", "done"),
    (of_tool("echo_later", text="x"), "tool", "echo_later", "done"),
    (of_tool("fail", kind="tool"), "tool", "fail", "failed"),
    (of_tool("echo", txt="x"), "tool", "echo", "failed"),
    (
        of_tool("find_records", model="shop.order", filters={"margin": 1}),
        "tool",
        "find_records shop.order",
        "failed",
    ),
    (of_tool("find_records", model="shop.ledger"), "tool", "find_records shop.ledger", "denied"),
    # A model that does not exist is an argument like any other.
    (of_tool("find_records", model="ada@example.com"), "tool", "find_records", "denied"),
    (of_tool("get_record", model="shop.order", pk=1), "tool", "get_record shop.order", "denied"),
    (of_tool("pay"), "tool", "pay", "denied"),
    (of_tool("no_such_tool"), "tool", "no_such_tool", "denied"),
    *(
        (of_tool(name, model="shop.order"), "tool", "", "invalid")
        for name in (7, [], {}, ["echo"], None, True)
    ),
]


#: By kind and end.
SIGNALS = {
    ("tool", "done"): signals.tool_called,
    ("tool", "failed"): signals.tool_called,
    ("resource", "done"): signals.resource_read,
    ("prompt", "done"): signals.prompt_rendered,
}


@pytest.mark.parametrize("end", ENDS, ids=str)
def test_each_call_is_recorded_with_what_it_was_about_and_how_it_ended_and_has_its_signal(
    client, staff, add_prompt, hear, caplog, end
):
    def hello() -> str:
        """Say hello."""
        return "Hello."

    def greet(name: str) -> str:
        """Greet."""
        raise mcp.ToolError("Nobody is called that.")

    add_prompt(hello)
    add_prompt(greet)
    (method, params), *facts = end
    # A receiver may ask the database.
    every = {*SIGNALS.values(), signals.call_denied}
    heard = {signal: hear(signal, Order.objects.count) for signal in every}

    client.post_request(method, params)

    record = only()
    found = [record.kind, record.target, record.outcome, record.rows]
    assert record.method == method
    assert found[: len(facts)] == facts
    assert "could not be recorded" not in caplog.text
    is_denied = record.outcome == "denied"
    signal = signals.call_denied if is_denied else SIGNALS.get((record.kind, record.outcome))
    assert [one for one in every if heard[one]] == ([] if signal is None else [signal])
    for told, context in heard.get(signal, ()):
        assert (told.pk, told.method, context.principal.user) == (None, method, staff)


def decide(ctx: mcp.Context) -> str:
    """Have a person agree."""
    ctx.confirm("Really?")
    return "Done."


def test_a_question_is_recorded_as_one_and_its_state_is_no_argument(
    staff, add_tool, hear, configure
):
    configure(AUDIT_ARGUMENTS=True)
    add_tool(decide, asks=True)
    client = Client(user=staff, record=True, answers={"confirm": {"confirm": True}})
    heard = hear(signals.tool_called)

    assert client.call_tool("decide").text == "Done."
    # A preview with a token is a question, too.
    Client(user=staff, record=True).call_tool("decide")

    first, last, preview = CallRecord.objects.order_by("pk")
    assert [one.outcome for one in (first, last, preview)] == ["asked", "done", "asked"]
    assert [record.outcome for record, _ in heard] == ["done"]
    assert last.arguments == {
        "name": "decide",
        "arguments": {},
        "inputResponses": {"confirm": {"action": "accept", "content": {"confirm": True}}},
    }


def test_greetings_leave_no_record_but_wrong_ones_do(client, staff):
    client.discover()
    legacy = CheckedClient(user=staff, revision="2025-11-25", record=True)
    legacy.initialize()
    legacy.request("ping")
    assert not CallRecord.objects.exists()

    legacy.failure("initialize")

    assert only().outcome == "invalid"
    # Without its own name a client is called as its credential.
    assert only().client == "test"


def test_a_list_that_is_answered_on_the_event_loop_is_recorded_as_any_other(
    client, django_assert_num_queries
):
    client.list_tools()
    client.record = False
    gathered = Gathered()
    message = client.message("tools/list")
    scope = client.scope("POST", headers=client.routing_headers(message))

    # Past the client, whose records are its own.
    with django_assert_num_queries(0), records.using(gathered):
        async_to_sync(client._run)(scope, msgspec.json.encode(message))

    assert [(end.method, end.outcome) for end in gathered.ends] == [("tools/list", "done")]


# What it must not hold


def test_arguments_are_kept_only_where_the_site_asks_for_them(client, configure, caplog):
    caplog.set_level(logging.INFO, "mcp_django.calls")

    client.call_tool("echo", text="ada@example.com")
    configure(AUDIT_ARGUMENTS=True)
    client.call_tool("echo", text=f"Bearer {SECRET}")

    kept = {"name": "echo", "arguments": {"text": "Bearer [redacted]"}}
    assert [one.arguments for one in CallRecord.objects.order_by("pk")] == [None, kept]
    without, with_arguments = (one for one in caplog.records if one.name == "mcp_django.calls")
    assert without.getMessage().startswith("tools/call echo: done for default/user:")
    assert (without.mcp_target, without.mcp_outcome, without.mcp_rows) == ("echo", "done", None)
    assert not hasattr(without, "mcp_arguments")
    assert "ada@example.com" not in str(vars(without))
    assert with_arguments.mcp_arguments == kept


def test_arguments_are_kept_as_they_were_when_the_call_ended(
    client, add_tool, configure, monkeypatch
):
    configure(AUDIT_ARGUMENTS=True)
    received, waiting = [], []
    monkeypatch.setattr(records, "put", lambda end, **options: waiting.append(end))

    def keep(names: list[str]) -> str:
        """Keep what was given."""
        received.append(names)
        return "kept"

    add_tool(keep)
    client.call_tool("keep", names=["a"])
    received[0].append("b")

    assert waiting[0]["arguments"]["arguments"] == {"names": ["a"]}


@pytest.mark.parametrize("name", ["x" * 8_000, "\x00\x1b[31m\r\nFORGED", "\U0001f40d" * 200])
def test_names_that_clients_choose_are_one_short_line(staff, name):
    client = Client(user=staff, record=True)
    message = client.message("tools/call", {"name": name, "arguments": {}})
    message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = {"name": name, "version": 1}

    client.post(message, headers=client.routing_headers(message))

    record = only()
    assert record.outcome == "denied"
    for text in (record.client, record.target):
        assert text
        assert len(text) <= 300
        assert text.isprintable()


# Who else hears of it


@pytest.mark.parametrize("is_heard", [True, False])
def test_with_the_audit_off_there_is_no_record_but_the_log_and_the_signal_where_somebody_listens(
    client, caplog, configure, hear, is_heard
):
    configure(AUDIT=False)
    caplog.set_level(logging.INFO if is_heard else logging.WARNING, "mcp_django.calls")
    heard = hear(signals.tool_called) if is_heard else []

    client.call_tool("echo", text="x")

    assert not CallRecord.objects.exists()
    assert ("tools/call echo" in caplog.text) is is_heard
    assert len(heard) == is_heard


def test_a_receiver_or_a_sink_that_raises_or_forges_breaks_no_call(
    client, hear, caplog, monkeypatch
):
    def burst(*end, **options):
        for record, _ in heard:
            record.target = "forged"
        raise RuntimeError("a receiver's bug")

    heard = hear(signals.tool_called, burst)

    assert "x" in client.call_tool("echo", text="x").text
    assert len(heard) == 1
    assert (only().target, only().outcome) == ("echo", "done")
    assert "a receiver's bug" in caplog.text

    monkeypatch.setattr(records, "put", burst)
    assert "x" in client.call_tool("echo", text="x").text
    assert "A call could not be recorded." in caplog.text


# Whose record comes first, and calls that nobody waits for


class Asked(Gathered):
    """Says of each end whether the call waits for it."""

    def put(self, end, *, wait=False):
        self.ends.append((end["target"], end["outcome"], wait))
        assert end["method"].isprintable()
        assert len(end["method"]) <= 60


@pytest.fixture
def context(make_user):
    request = HttpRequest()
    request.user = make_user("boss", "view_order", "change_order", is_staff=True)
    principal = Principal(user=request.user, scopes=frozenset(SCOPES), method="x")
    return CallContext(request=request, principal=principal, revision=Revision.V2026_07_28)


@pytest.mark.parametrize(
    ("method", "params", "end"),
    [
        ("tools/call", {"name": "pay", "arguments": {"number": "A1"}}, ("pay", "done", True)),
        ("tools/call", {"name": "pay", "arguments": {"number": "A2"}}, ("pay", "failed", True)),
        ("tools/call", {"name": "no_such_tool"}, ("no_such_tool", "denied", True)),
        ("tools/call", {"name": "echo", "arguments": {"text": "x"}}, ("echo", "done", False)),
        ("tools/call", {"name": 7}, ("", "invalid", False)),
        ("made/up\n" + "x" * 100_000, {}, ("", "invalid", False)),
    ],
    ids=["write", "failed write", "denied", "read", "invalid", "made up"],
)
def test_a_call_that_may_write_waits_for_its_record_and_a_read_does_not(
    context, method, params, end
):
    Order.objects.create(number="A1")
    asked = Asked()

    with records.using(asked):
        answer(context, Request(1, method, params), server_info(streams=True))

    assert asked.ends == [end]


def test_a_record_is_made_when_the_transaction_of_its_tool_is_over(client, add_tool):
    def rename() -> str:
        """Rename, and fail."""
        Order.objects.create(number="B1")
        raise mcp.ToolError("No.")

    add_tool(rename, read_only=False, atomic=True, permission="shop.view_order")

    client.refusal("rename")

    assert (only().target, only().outcome) == ("rename", "failed")
    assert not Order.objects.filter(number="B1").exists()


def leave(context, params):
    context.cancelled.set()
    context.check()


def leave_and_fail(context, params):
    context.cancelled.set()
    return ToolResult.of_error(mcp.ToolError("The statement was ended."))


@pytest.mark.parametrize("handler", [leave, leave_and_fail])
def test_a_call_that_is_given_up_is_recorded_as_cancelled(monkeypatch, context, handler):
    monkeypatch.setitem(dispatch.HANDLERS, "tools/call", handler)
    gathered = Gathered()

    with records.using(gathered), suppress(mcp.Cancelled):
        answer(context, Request(1, "tools/call"), server_info(streams=True))

    assert [end.outcome for end in gathered.ends] == ["cancelled"]


def test_an_async_tool_has_one_end_whoever_tells_it_first(context, add_tool):
    async def later() -> str:
        """Later."""
        return "done"

    add_tool(later)
    gathered = Gathered()
    request = Request(1, "tools/call", {"name": "later"})

    with records.using(gathered):
        pending = answer(context, request, server_info(streams=True))
        before = len(gathered.ends)
        final = pending.settle(lambda: asyncio.run(pending.awaitable))
        pending.give_up()

    assert before == 0
    assert b"done" in final.body
    assert [end.outcome for end in gathered.ends] == ["done"]
