from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace

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
from mcp_django.testing import Client, ProtocolFailure
from tests.clients import CheckedClient
from tests.shop.models import Order

pytestmark = pytest.mark.django_db
SECRET = "mcp_" + "A" * 43 + "000000"


@pytest.fixture
def client(staff):
    return CheckedClient(user=staff, record=True)


@pytest.fixture
def hear():
    """What a signal says, until the test ends."""
    connected = []

    def connect(signal, receiver=None):
        heard = []

        def keep(sender, record, context, **kwargs):
            heard.append((record, context))
            if receiver is not None:
                receiver()

        signal.connect(keep, weak=False)
        connected.append((signal, keep))
        return heard

    yield connect
    for signal, receiver in connected:
        signal.disconnect(receiver)


@pytest.fixture
def set_audit(settings):
    def configure(**options):
        settings.MCP_DJANGO = {**settings.MCP_DJANGO, **options}

    return configure


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


MODELS = {"type": "ref/resource", "uri": "django://models/{model}"}


@pytest.mark.parametrize(
    ("method", "params", "kind", "target", "rows"),
    [
        ("resources/read", {"uri": "django://site"}, "resource", "django://site", None),
        (
            "resources/read",
            {"uri": "django://objects/shop.order?number=secret"},
            "resource",
            "django://objects/shop.order?…",
            0,
        ),
        ("resources/list", {}, "other", "", None),
        (
            "completion/complete",
            {"ref": MODELS, "argument": {"name": "model", "value": "shop.o"}},
            "other",
            "django://models/{model}",
            1,
        ),
    ],
)
def test_other_methods_are_recorded_with_what_they_were_about(
    client, method, params, kind, target, rows
):
    client.request(method, params)

    record = only()
    assert (record.kind, record.method, record.target) == (kind, method, target)
    assert (record.rows, record.outcome) == (rows, "done")


@pytest.mark.parametrize(
    ("name", "arguments", "target", "outcome"),
    [
        ("echo", {"text": "x"}, "echo", "done"),
        ("echo_later", {"text": "x"}, "echo_later", "done"),
        ("count_to", {"number": 3}, "count_to", "done"),
        ("fail", {"kind": "tool"}, "fail", "failed"),
        ("echo", {"txt": "x"}, "echo", "failed"),
        (
            "find_records",
            {"model": "shop.order", "filters": {"margin": 1}},
            "find_records shop.order",
            "failed",
        ),
        ("find_records", {"model": "shop.ledger"}, "find_records shop.ledger", "denied"),
        # A model that does not exist is an argument like any other.
        ("find_records", {"model": "ada@example.com"}, "find_records", "denied"),
        ("get_record", {"model": "shop.order", "pk": 1}, "get_record shop.order", "denied"),
    ],
)
def test_the_outcome_is_what_the_model_was_told(client, name, arguments, target, outcome):
    answer = client.call_tool(name, **arguments)

    assert answer.is_error == (outcome != "done")
    assert (only().target, only().outcome) == (target, outcome)


MODEL = {"model": "shop.order"}
PROMPT = {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "y", "value": ""}}


@pytest.mark.parametrize(
    ("method", "params", "kind", "target", "outcome"),
    [
        ("tools/call", {"name": "pay", "arguments": {}}, "tool", "pay", "denied"),
        ("tools/call", {"name": "no_such_tool"}, "tool", "no_such_tool", "denied"),
        (
            "resources/read",
            {"uri": "django://objects/shop.ledger"},
            "resource",
            "django://objects/shop.ledger",
            "denied",
        ),
        ("prompts/get", {"name": "no_such_prompt"}, "prompt", "no_such_prompt", "denied"),
        ("prompts/get", {"name": "greet", "arguments": {"name": 1}}, "prompt", "greet", "failed"),
        ("completion/complete", PROMPT, "other", "x", "denied"),
        *(
            (
                "tools/call",
                {"name": name, "arguments": {"model": "shop.order"}},
                "tool",
                "",
                "invalid",
            )
            for name in (7, [], {}, ["echo"], None, True)
        ),
    ],
    ids=str,
)
def test_a_refusal_is_recorded_as_what_it_was(
    client, add_prompt, caplog, method, params, kind, target, outcome
):
    def greet(name: str) -> str:
        """Greet."""
        raise mcp.ToolError("Nobody is called that.")

    add_prompt(greet)

    client.failure(method, **params)

    record = only()
    assert (record.method, record.kind) == (method, kind)
    assert (record.target, record.outcome) == (target, outcome)
    assert "could not be recorded" not in caplog.text


def decide(ctx: mcp.Context) -> str:
    """Have a person agree."""
    ctx.confirm("Really?")
    return "Done."


def test_a_question_is_recorded_as_one_and_its_state_is_no_argument(
    staff, add_tool, hear, set_audit
):
    set_audit(AUDIT_ARGUMENTS=True)
    add_tool(decide, asks=True)
    client = Client(user=staff, record=True, answers={"confirm": {"confirm": True}})
    heard = hear(signals.tool_called)

    assert client.call_tool("decide").text == "Done."

    first, last = CallRecord.objects.order_by("pk")
    assert (first.outcome, last.outcome) == ("asked", "done")
    assert [record.outcome for record, _ in heard] == ["done"]
    assert last.arguments == {
        "name": "decide",
        "arguments": {},
        "inputResponses": {"confirm": {"action": "accept", "content": {"confirm": True}}},
    }


def test_a_preview_with_a_token_is_recorded_as_a_question(client, add_tool):
    add_tool(decide, asks=True)

    client.call_tool("decide")

    assert only().outcome == "asked"


def test_a_crash_is_recorded_with_the_number_that_its_client_got(client):
    with pytest.raises(ProtocolFailure) as crashed:
        client.call_tool("fail", kind="bug")

    record = only()
    assert (record.outcome, record.correlation_id) == ("crashed", crashed.value.data["id"])


def test_greetings_leave_no_record_but_wrong_ones_do(client, staff):
    client.discover()
    legacy = CheckedClient(user=staff, revision="2025-11-25", record=True)
    legacy.initialize()
    legacy.request("ping")
    assert not CallRecord.objects.exists()

    legacy.failure("initialize")

    assert only().outcome == "invalid"


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


def test_each_element_of_a_batch_is_recorded(staff):
    client = CheckedClient(user=staff, revision="2025-03-26", record=True)
    call = {"name": "echo", "arguments": {"text": "x"}}
    batch = [client.message("tools/call", call) for _ in range(3)]
    batch.insert(1, {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "no"}})

    client.post(batch)

    outcomes = CallRecord.objects.order_by("pk").values_list("outcome", flat=True)
    assert list(outcomes) == ["done", "denied", "done", "done"]


# What it must not hold


def test_arguments_are_kept_only_where_the_site_asks_for_them(client, set_audit, caplog):
    caplog.set_level(logging.INFO, "mcp_django.calls")

    client.call_tool("echo", text="ada@example.com")
    set_audit(AUDIT_ARGUMENTS=True)
    client.call_tool("echo", text=f"Bearer {SECRET}")

    kept = {"name": "echo", "arguments": {"text": "Bearer [redacted]"}}
    assert [one.arguments for one in CallRecord.objects.order_by("pk")] == [None, kept]
    without, with_arguments = (one for one in caplog.records if one.name == "mcp_django.calls")
    assert "ada@example.com" not in str(vars(without))
    assert with_arguments.mcp_arguments == kept


def test_what_waits_to_be_written_holds_nothing_of_the_arguments(client, monkeypatch):
    waiting = []
    monkeypatch.setattr(records, "put", lambda end, **options: waiting.append(vars(end)))

    client.call_tool("echo", text="hunter2")
    client.call_tool("find_records", model="hunter2.order")
    client.request("resources/read", {"uri": "django://objects/shop.order?number=hunter2"})

    assert len(waiting) == 3
    assert "hunter2" not in str(waiting)


def test_arguments_are_kept_as_they_were_when_the_call_ended(
    client, add_tool, set_audit, monkeypatch
):
    set_audit(AUDIT_ARGUMENTS=True)
    received, waiting = [], []
    monkeypatch.setattr(records, "put", lambda end, **options: waiting.append(end))

    def keep(names: list[str]) -> str:
        """Keep what was given."""
        received.append(names)
        return "kept"

    add_tool(keep)
    client.call_tool("keep", names=["a"])
    received[0].append("b")

    assert waiting[0].arguments["arguments"] == {"names": ["a"]}


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


def test_a_uri_of_a_megabyte_is_cut(client):
    # Later clients repeat it in a header, which has 8 KiB at most.
    client.revision = Revision.V2025_11_25

    client.failure("resources/read", uri="django://objects/shop.order/" + "x" * 1_000_000)

    assert len(only().target) == 300


def test_without_a_name_the_client_is_called_as_its_credential(staff):
    client = CheckedClient(user=staff, revision="2025-11-25", record=True)

    client.list_resources()

    assert only().client == "test"


# Who else hears of it


def test_the_log_has_one_line_for_each_call_and_the_columns_for_programs(client, caplog):
    caplog.set_level(logging.INFO, "mcp_django.calls")

    client.call_tool("echo", text="ada@example.com")

    [line] = [one for one in caplog.records if one.name == "mcp_django.calls"]
    assert line.getMessage().startswith("tools/call echo: done for default/user:")
    assert (line.mcp_target, line.mcp_outcome, line.mcp_rows) == ("echo", "done", None)
    assert not hasattr(line, "mcp_arguments")


@pytest.mark.parametrize("is_heard", [True, False])
def test_with_the_audit_off_there_is_no_record_but_the_log_and_the_signal_where_somebody_listens(
    client, caplog, set_audit, hear, is_heard
):
    set_audit(AUDIT=False)
    caplog.set_level(logging.INFO if is_heard else logging.WARNING, "mcp_django.calls")
    heard = hear(signals.tool_called) if is_heard else []

    client.call_tool("echo", text="x")

    assert not CallRecord.objects.exists()
    assert ("tools/call echo" in caplog.text) is is_heard
    assert len(heard) == is_heard


@pytest.mark.parametrize(
    ("signal", "method", "params"),
    [
        (signals.tool_called, "tools/call", {"name": "echo", "arguments": {"text": "x"}}),
        (signals.tool_called, "tools/call", {"name": "fail", "arguments": {"kind": "tool"}}),
        (signals.resource_read, "resources/read", {"uri": "django://site"}),
        (signals.prompt_rendered, "prompts/get", {"name": "hello"}),
        (signals.call_denied, "tools/call", {"name": "pay", "arguments": {"number": "A1"}}),
        (None, "tools/call", {"name": 7}),
    ],
)
def test_each_kind_of_call_has_its_signal(client, staff, hear, add_prompt, signal, method, params):
    def hello() -> str:
        """Say hello."""
        return "Hello."

    add_prompt(hello)
    every = (
        signals.tool_called,
        signals.resource_read,
        signals.prompt_rendered,
        signals.call_denied,
    )
    # A receiver may ask the database.
    heard = {one: hear(one, Order.objects.count) for one in every}

    client.post_request(method, params)

    assert [one for one in every if heard[one]] == ([] if signal is None else [signal])
    for record, context in heard.get(signal, ()):
        assert record.pk is None
        assert record.method == method
        assert context.principal.user == staff


def test_a_receiver_that_raises_breaks_no_call(client, hear, caplog):
    def burst():
        raise RuntimeError("a receiver's bug")

    heard = hear(signals.tool_called, burst)

    assert "x" in client.call_tool("echo", text="x").text
    assert len(heard) == 1
    assert only().outcome == "done"
    assert "a receiver's bug" in caplog.text


def test_a_receiver_that_changes_its_record_changes_no_other(client, hear):
    heard = hear(signals.tool_called, lambda: setattr(heard[0][0], "target", "forged"))

    client.call_tool("echo", text="x")

    assert only().target == "echo"


def test_a_sink_that_raises_breaks_no_call(client, monkeypatch, caplog):
    def burst(end, *, wait=False):
        raise RuntimeError("our bug")

    monkeypatch.setattr(records, "put", burst)

    assert "x" in client.call_tool("echo", text="x").text
    assert "A call could not be recorded." in caplog.text


# Whose record comes first, and calls that nobody waits for


class Asked(Gathered):
    """Says of each end whether the call waits for it."""

    def put(self, end, *, wait=False):
        self.ends.append((end.target, end.outcome, wait))
        assert end.method.isprintable()
        assert len(end.method) <= 60


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


def test_two_principals_with_long_names_stay_two(context):
    gathered = Gathered()

    with records.using(gathered):
        for end in "ab":
            context.principal = replace(context.principal, client="c" * 10_000 + end)
            answer(context, Request(1, "resources/list"), server_info(streams=True))

    names = [end.principal for end in gathered.ends]
    assert len(set(names)) == 2
    assert {len(name) for name in names} == {200}


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
