"""What a running call says before its answer: log messages and progress, on its own stream."""

from __future__ import annotations

import pytest
from django import forms
from django.db import models

import mcp_django as mcp
from mcp_django.protocol.methods import LOG_LEVELS
from mcp_django.protocol.negotiation import LOG_LEVEL_KEY
from mcp_django.protocol.revisions import LEGACY, Revision
from mcp_django.transports.calls import running
from tests.shop.models import Order
from tests.spec import requirement
from tests.transports.session_client import text_of
from tests.transports.wire import Connection, speaking

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]

LATEST = Revision.V2025_11_25
MODERN = Revision.V2026_07_28


class NumberForm(forms.Form):
    number = forms.CharField()


@pytest.fixture
def offer(add_tool):
    """Offer a tool that does this and is done."""

    def offer(body, **options):
        def work(ctx: mcp.Context) -> str:
            """Work."""
            body(ctx)
            return "done"

        add_tool(work, **options)

    return offer


@pytest.fixture
def chatter(offer):
    """A tool that says something at each level."""
    offer(lambda ctx: [ctx.log(level, level, logger="shop") for level in LOG_LEVELS])


def before_the_answer(call):
    *before, answer = call.messages
    assert "result" in answer
    return [message["params"] for message in before]


def levels_of(call):
    return [params["level"] for params in before_the_answer(call)]


# Log messages


@requirement("logging:levels")
@pytest.mark.parametrize("revision", LEGACY, ids=lambda revision: revision.value)
@pytest.mark.parametrize("level", LOG_LEVELS)
async def test_a_session_gets_what_is_as_urgent_as_it_wants(party, chatter, revision, level):
    person = await party(revision)
    set_level = await person.ask("logging/setLevel", level=level).whole()

    call = await person.call("work").whole()

    assert set_level.json["result"] == {}
    assert levels_of(call) == list(LOG_LEVELS[LOG_LEVELS.index(level) :])


@requirement("logging:default-level")
async def test_a_session_that_named_no_level_is_told_nothing_for_developers(party, chatter):
    person = await party(LATEST)

    call = await person.call("work").whole()

    assert levels_of(call) == list(LOG_LEVELS[1:])


async def test_a_legacy_request_without_a_session_gets_no_log_messages(client, chatter):
    call = await Connection.calling(speaking(client, LATEST), "work").whole()

    assert text_of(call.json) == "done"


def modern(client, **meta):
    params = {"name": "work", "arguments": {}, **({"_meta": meta} if meta else {})}
    return Connection.asking(speaking(client, MODERN), "tools/call", params)


@requirement("logging:opt-in")
async def test_a_modern_request_names_its_level(client, chatter):
    warned = await modern(client, **{LOG_LEVEL_KEY: "warning"}).whole()
    silent = await modern(client).whole()

    assert levels_of(warned) == list(LOG_LEVELS[3:])
    assert text_of(silent.json) == "done"


@requirement("logging:levels", "logging:unknown-level")
@pytest.mark.parametrize("level", ["loud", "", None, 3, "INFO"])
async def test_a_level_that_there_is_not_is_refused(client, party, chatter, level):
    person = await party(LATEST)

    call = await person.ask("logging/setLevel", level=level).whole()
    in_envelope = await modern(client, **{LOG_LEVEL_KEY: level}).whole()

    assert call.json["error"]["code"] == in_envelope.json["error"]["code"] == -32602


@requirement("logging:secrets")
async def test_log_messages_tell_no_secrets_and_objects_only_by_their_text(party, offer):
    def tell_too_much(ctx):
        order = Order.objects.create(number="A-1")
        ctx.log("info", {"order": order, "card": {"cvv": "123"}, "password": "hunter2"})
        ctx.log("info", "Authorization: Bearer hunter2", logger="shop")
        ctx.log("info", models.Value)

    offer(tell_too_much, read_only=False)
    person = await party(LATEST)

    call = await person.call("work").whole()

    assert "hunter2" not in call.body.decode()
    assert "123" not in call.body.decode()
    first, second, third = before_the_answer(call)
    assert first["data"]["card"] == {"cvv": "[redacted]"}
    assert isinstance(first["data"]["order"], str)
    assert second["logger"] == "shop"
    assert third["data"] == str(models.Value)


@requirement("logging:secrets")
async def test_a_call_that_says_too_much_says_how_much_it_did_not_say(party, offer):
    offer(lambda ctx: [ctx.log("info", number) for number in range(5000)])
    person = await party(LATEST)

    call = await person.call("work").whole()

    lines = [params["data"] for params in before_the_answer(call)]
    left_out = sum(int(line.split()[0]) for line in lines if isinstance(line, str))
    assert lines[:20] == list(range(20))
    assert left_out == 5000 - sum(isinstance(line, int) for line in lines)
    assert len(lines) < 200


@pytest.mark.parametrize("revision", LEGACY, ids=lambda revision: revision.value)
async def test_the_answer_to_a_slow_handshake_names_its_session(party, monkeypatch, revision):
    """A response that has become a stream has no headers left to give."""
    monkeypatch.setattr(running, "QUICK", 0)
    monkeypatch.setattr(running, "GRACE", 0)

    person = await party(revision)

    assert person.id


# Progress


@requirement("progress:token")
async def test_progress_rises_over_all_runs_of_a_call_that_asks(party, offer):
    def count(ctx):
        for number in range(6):
            ctx.progress(number)
            if number == 2:
                ctx.ask("number", NumberForm)

    offer(count, asks=True)
    person = await party(LATEST)
    call = await person.called("work", token=7)

    values = []
    while "id" not in (question := await call.message()):
        values.append(question["params"]["progress"])
    await person.accept(question, number="1")
    *more, answer = await call.rest()
    values += [message["params"]["progress"] for message in more]

    assert text_of(answer) == "done"
    assert values == sorted(set(values))
    assert values[-1] == 5
    await call.end()


async def test_who_only_reads_does_not_wait_for_a_tool_that_writes_and_tells_of_it(
    party, offer, gate
):
    """SQLite has room for one who writes: what the tool says is kept behind it."""

    def write_and_report(ctx):
        Order.objects.create(number="new")
        ctx.progress(1)
        gate.wait()

    offer(write_and_report, read_only=False, atomic=True)
    order = await Order.objects.acreate(number="old")
    person = await party(LATEST)
    call = person.call("work", token="t")
    call.start()
    await gate.until_reached()

    record = await person.call("get_record", model="shop.order", pk=order.pk).whole()
    gate.open()
    await call.end()

    assert not record.json["result"]["isError"]
    assert text_of(call.messages[-1]) == "done"
