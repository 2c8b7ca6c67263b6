from __future__ import annotations

import asyncio
import logging

import msgspec
import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import AnonymousUser
from django.db import transaction
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


def only():
    [record] = CallRecord.objects.all()
    return record


def refused(client, method, **params):
    with pytest.raises(ProtocolFailure) as raised:
        client.request(method, params)
    return raised.value


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
    assert record.milliseconds >= 0
    assert record.correlation_id == ""
    assert record.arguments is None


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
            {
                "ref": {"type": "ref/resource", "uri": "django://models/{model}"},
                "argument": {"name": "model", "value": "shop.o"},
            },
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


def test_a_model_that_does_not_exist_is_an_argument_like_any_other(client):
    client.call_tool("find_records", model="ada@example.com")

    assert only().target == "find_records"


@pytest.mark.parametrize(
    ("name", "arguments", "outcome"),
    [
        ("echo", {"text": "x"}, "done"),
        ("echo_later", {"text": "x"}, "done"),
        ("fail", {"kind": "tool"}, "failed"),
        ("echo", {"txt": "x"}, "failed"),
        ("find_records", {"model": "shop.order", "filters": {"margin": 1}}, "failed"),
        ("find_records", {"model": "shop.ledger"}, "denied"),
        ("get_record", {"model": "shop.order", "pk": 1}, "denied"),
    ],
)
def test_the_outcome_is_what_the_model_was_told(client, name, arguments, outcome):
    answer = client.call_tool(name, **arguments)

    assert answer.is_error == (outcome != "done")
    assert only().outcome == outcome


def test_progress_and_later_ends_leave_one_record(client):
    client.call_tool("count_to", number=3)
    client.call_tool("echo_later", text="x")

    assert list(CallRecord.objects.values_list("target", flat=True).order_by("pk")) == [
        "count_to",
        "echo_later",
    ]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "pay", "arguments": {}}),
        ("tools/call", {"name": "no_such_tool", "arguments": {}}),
        ("resources/read", {"uri": "django://objects/shop.ledger"}),
        ("prompts/get", {"name": "no_such_prompt"}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "y", "value": ""}},
        ),
    ],
)
def test_what_is_not_there_for_a_caller_is_recorded_as_denied(client, method, params):
    refused(client, method, **params)

    record = only()
    assert (record.method, record.outcome) == (method, "denied")


def test_a_broken_rule_is_recorded_as_invalid(client):
    refused(client, "tools/call", name=7)

    record = only()
    assert (record.target, record.outcome, record.kind) == ("", "invalid", "tool")


@pytest.mark.parametrize("name", [[], {}, ["echo"], None, True])
def test_a_name_that_is_no_text_is_recorded_as_invalid(client, name, caplog):
    refused(client, "tools/call", name=name, arguments={"model": "shop.order"})

    assert (only().target, only().outcome) == ("", "invalid")
    assert "could not be recorded" not in caplog.text


def test_a_prompt_that_refuses_its_arguments_has_failed(client, add_prompt):
    def greet(name: str) -> str:
        """Greet."""
        raise mcp.ToolError("Nobody is called that.")

    add_prompt(greet)

    refused(client, "prompts/get", name="greet", arguments={"name": "x"})

    assert (only().kind, only().target, only().outcome) == ("prompt", "greet", "failed")


def decide(ctx: mcp.Context) -> str:
    """Have a person agree."""
    ctx.confirm("Really?")
    return "Done."


def test_a_question_is_recorded_as_one_and_calls_no_receiver(staff, add_tool, hear):
    add_tool(decide, asks=True)
    client = Client(user=staff, record=True, answers={"confirm": {"confirm": True}})
    heard = hear(signals.tool_called)

    assert client.call_tool("decide").text == "Done."

    assert [one.outcome for one in CallRecord.objects.order_by("pk")] == ["asked", "done"]
    assert [record.outcome for record, _ in heard] == ["done"]


def test_a_preview_with_a_token_is_recorded_as_a_question(client, add_tool):
    add_tool(decide, asks=True)

    client.call_tool("decide")

    assert only().outcome == "asked"


def test_the_state_of_questions_is_no_argument(staff, add_tool, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "AUDIT_ARGUMENTS": True}
    add_tool(decide, asks=True)
    client = Client(user=staff, record=True, answers={"confirm": {"confirm": True}})

    client.call_tool("decide")

    last = CallRecord.objects.order_by("pk").last()
    assert last.arguments == {
        "name": "decide",
        "arguments": {},
        "inputResponses": {"confirm": {"action": "accept", "content": {"confirm": True}}},
    }


def test_a_crash_is_recorded_with_the_number_that_its_client_got(client):
    failure = refused(client, "tools/call", name="fail", arguments={"kind": "bug"})

    record = only()
    assert (record.outcome, record.correlation_id) == ("crashed", failure.data["id"])


def test_greetings_leave_no_record_but_wrong_ones_do(client, staff):
    client.discover()
    legacy = CheckedClient(user=staff, revision="2025-11-25", record=True)
    legacy.initialize()
    legacy.request("ping")
    assert not CallRecord.objects.exists()

    refused(legacy, "initialize")

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

    assert [(one.method, one.outcome) for one in gathered.ends] == [("tools/list", "done")]


def test_each_element_of_a_batch_is_recorded(staff):
    client = CheckedClient(user=staff, revision="2025-03-26", record=True)
    call = {"name": "echo", "arguments": {"text": "x"}}
    batch = [client.message("tools/call", call) for _ in range(3)]
    batch.insert(1, {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "no"}})

    client.post(batch)

    outcomes = CallRecord.objects.order_by("pk").values_list("outcome", flat=True)
    assert list(outcomes) == ["done", "denied", "done", "done"]


# What it must not hold


def test_arguments_are_kept_only_where_the_site_asks_for_them(client, settings):
    client.call_tool("echo", text="ada@example.com")
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "AUDIT_ARGUMENTS": True}
    client.call_tool("echo", text=f"Bearer {SECRET}")

    first, second = CallRecord.objects.order_by("pk")
    assert first.arguments is None
    assert second.arguments == {"name": "echo", "arguments": {"text": "Bearer [redacted]"}}


def test_what_waits_to_be_written_holds_nothing_of_the_arguments(client, monkeypatch):
    waiting = []
    monkeypatch.setattr(records, "put", lambda end, **options: waiting.append(end))

    client.call_tool("echo", text="hunter2")
    client.call_tool("find_records", model="hunter2.order")
    client.request("resources/read", {"uri": "django://objects/shop.order?number=hunter2"})

    assert len(waiting) == 3
    assert "hunter2" not in str(waiting)
    assert all(type(value) is not dict for end in waiting for value in end)


def test_arguments_are_kept_as_they_were_when_the_call_ended(
    client, add_tool, settings, monkeypatch
):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "AUDIT_ARGUMENTS": True}
    given, waiting = [], []
    monkeypatch.setattr(records, "put", lambda end, **options: waiting.append(end))

    def keep(names: list[str]) -> str:
        """Keep what was given."""
        given.append(names)
        return "kept"

    add_tool(keep)
    client.call_tool("keep", names=["a"])
    given[0].append("b")

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

    refused(client, "resources/read", uri="django://objects/shop.order/" + "x" * 1_000_000)

    assert len(only().target) == 300


def test_two_principals_with_long_names_stay_two(staff):
    answers = []
    for end in "ab":
        principal = Principal(
            user=staff, scopes=frozenset(SCOPES), method="x", client="c" * 10_000 + end
        )
        context = CallContext(
            request=HttpRequest(), principal=principal, revision=Revision.V2026_07_28
        )
        gathered = Gathered()
        with records.using(gathered):
            answer(context, Request(1, "resources/list"), server_info(streams=True))
        answers.append(gathered.ends[0].columns()["principal"])

    assert len(set(answers)) == 2
    assert {len(text) for text in answers} == {200}


def test_a_method_that_a_client_made_up_is_one_short_line(call):
    [(target, outcome, _)] = call("made/up\n" + "x" * 100_000)

    assert (target, outcome) == ("", "invalid")


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
    assert "ada@example.com" not in str(vars(line))


def test_the_log_has_arguments_where_they_are_kept(client, caplog, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "AUDIT_ARGUMENTS": True}
    caplog.set_level(logging.INFO, "mcp_django.calls")

    client.call_tool("echo", text="x")

    [line] = [one for one in caplog.records if one.name == "mcp_django.calls"]
    assert line.mcp_arguments["arguments"] == {"text": "x"}


def test_with_the_audit_off_there_is_the_log_and_the_signal_and_no_record(
    client, caplog, settings, hear
):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "AUDIT": False}
    caplog.set_level(logging.INFO, "mcp_django.calls")
    heard = hear(signals.tool_called)

    client.call_tool("echo", text="x")

    assert not CallRecord.objects.exists()
    assert "tools/call echo" in caplog.text
    assert len(heard) == 1


@pytest.mark.parametrize(
    ("signal", "method", "params"),
    [
        (signals.tool_called, "tools/call", {"name": "echo", "arguments": {"text": "x"}}),
        (signals.resource_read, "resources/read", {"uri": "django://site"}),
        (signals.prompt_rendered, "prompts/get", {"name": "hello"}),
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
    heard = {one: hear(one) for one in every}

    client.request(method, params)

    assert [one for one in every if heard[one]] == [signal]
    [(record, context)] = heard[signal]
    assert record.pk is None
    assert record.outcome == "done"
    assert context.principal.user == staff


def test_a_refusal_has_a_signal_of_its_own_and_no_other(client, hear):
    called, denied = hear(signals.tool_called), hear(signals.call_denied)

    refused(client, "tools/call", name="pay", arguments={"number": "A1"})
    refused(client, "tools/call", name=7)

    assert [record.target for record, _ in denied] == ["pay"]
    assert called == []


def test_a_receiver_that_raises_breaks_no_call(client, hear, caplog):
    def burst():
        raise RuntimeError("a receiver's bug")

    heard = hear(signals.tool_called, burst)

    assert "x" in client.call_tool("echo", text="x").text
    assert len(heard) == 1
    assert only().outcome == "done"
    assert "a receiver's bug" in caplog.text


def test_a_receiver_of_a_failed_tool_may_ask_the_database(client, hear):
    counts = []
    hear(signals.tool_called, lambda: counts.append(Order.objects.count()))

    client.call_tool("fail", kind="tool")

    assert counts == [0]


def test_a_sink_that_raises_breaks_no_call(client, monkeypatch, caplog):
    def burst(entry, *, wait=False):
        raise RuntimeError("our bug")

    monkeypatch.setattr(records, "put", burst)

    assert "x" in client.call_tool("echo", text="x").text
    assert "A call could not be recorded." in caplog.text


# Whose record comes first


class Asked:
    """Says of each entry whether the call waits for it."""

    def __init__(self):
        self.entries = []

    def put(self, entry, *, wait=False):
        self.entries.append((entry.target, entry.outcome, wait))
        assert entry.method.isprintable()
        assert len(entry.method) <= 60

    def close(self):
        """Nothing of its own runs."""


@pytest.fixture
def call(make_user):
    user = make_user("boss", "view_order", "change_order", is_staff=True)
    principal = Principal(user=user, scopes=frozenset(SCOPES), method="x")

    def make(method, **params):
        request = HttpRequest()
        request.user = user
        context = CallContext(request=request, principal=principal, revision=Revision.V2026_07_28)
        asked = Asked()
        with records.using(asked):
            answer(context, Request(1, method, params), server_info(streams=True))
        return asked.entries

    return make


def test_a_call_that_may_write_waits_for_its_record_and_a_read_does_not(call):
    Order.objects.create(number="A1")

    [write] = call("tools/call", name="pay", arguments={"number": "A1"})
    [failed] = call("tools/call", name="pay", arguments={"number": "A2"})
    [denied] = call("tools/call", name="no_such_tool")
    [read] = call("tools/call", name="echo", arguments={"text": "x"})
    [invalid] = call("tools/call", name=7)

    assert write == ("pay", "done", True)
    assert failed == ("pay", "failed", True)
    assert denied == ("no_such_tool", "denied", True)
    assert read == ("echo", "done", False)
    assert invalid == ("", "invalid", False)


def test_a_record_is_made_when_the_transaction_of_its_tool_is_over(call, add_tool):
    seen = []

    def rename() -> str:
        """Rename, and fail."""
        Order.objects.create(number="B1")
        seen.append(transaction.get_connection().in_atomic_block)
        raise mcp.ToolError("No.")

    add_tool(rename, read_only=False, atomic=True)

    [entry] = call("tools/call", name="rename", arguments={})

    assert entry == ("rename", "failed", True)
    assert not Order.objects.filter(number="B1").exists()


# Calls that nobody waits for


def test_a_call_that_is_given_up_is_recorded_as_cancelled(monkeypatch, staff):
    def give_up(context, params):
        context.cancelled.set()
        context.check()

    monkeypatch.setitem(dispatch.HANDLERS, "tools/call", give_up)
    gathered = Gathered()
    client = Client(user=staff)
    context = CallContext(
        request=None,
        principal=Principal(user=AnonymousUser(), scopes=frozenset(), method="x"),
        revision=client.revision,
    )

    with records.using(gathered), pytest.raises(mcp.Cancelled):
        answer(context, Request(1, "tools/call"), server_info(streams=True))

    assert [one.outcome for one in gathered.ends] == ["cancelled"]


def test_an_async_tool_has_one_end_whoever_tells_it_first(staff, add_tool):
    async def later() -> str:
        """Later."""
        return "done"

    add_tool(later)
    request = HttpRequest()
    request.user = staff
    context = CallContext(
        request=request,
        principal=Principal(user=staff, scopes=frozenset(SCOPES), method="x"),
        revision=Revision.V2026_07_28,
    )
    gathered = Gathered()

    with records.using(gathered):
        pending = answer(
            context, Request(1, "tools/call", {"name": "later"}), server_info(streams=True)
        )
        before = len(gathered.ends)
        final = pending.settle(lambda: asyncio.run(pending.awaitable))
        pending.give_up()

    assert before == 0
    assert b"done" in final.body
    assert [one.outcome for one in gathered.ends] == ["done"]


def test_where_nobody_asks_nothing_is_kept(client, settings, caplog):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "AUDIT": False}
    caplog.set_level(logging.WARNING, logger="mcp_django.calls")

    client.call_tool("echo", text="a")

    assert not CallRecord.objects.exists()
