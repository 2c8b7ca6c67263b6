"""What a running call says before its answer: log messages and progress, on its own stream."""

from __future__ import annotations

import msgspec
import pytest
from django.db import models

from mcp_django.protocol.methods import LOG_LEVELS
from mcp_django.protocol.negotiation import LOG_LEVEL_KEY
from mcp_django.protocol.render import log_message, progress
from mcp_django.protocol.revisions import LEGACY, Revision
from mcp_django.transports import call as running
from mcp_django.transports.output import PACE, Output
from tests.shop.models import Order
from tests.spec import requirement
from tests.transports.session_client import NumberForm, text_of
from tests.transports.wire import Connection

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]

LATEST = Revision.V2025_11_25
MODERN = Revision.V2026_07_28


def before_the_answer(call):
    *before, answer = call.messages
    assert "result" in answer
    return [message["params"] for message in before]


# Log messages


@requirement("logging:opt-in")
@pytest.mark.parametrize(
    ("revision", "meta", "levels"),
    [
        (MODERN, {LOG_LEVEL_KEY: "warning"}, LOG_LEVELS[3:]),
        (MODERN, {}, ()),
        (LATEST, {LOG_LEVEL_KEY: "warning"}, ()),
    ],
)
async def test_a_request_without_a_session_gets_log_messages_if_it_is_modern_and_names_its_level(
    client, offer, revision, meta, levels
):
    offer(lambda ctx: [ctx.log(level, level, logger="shop") for level in LOG_LEVELS])
    params = {"name": "work", "arguments": {}, "_meta": meta}

    call = await Connection.asking(client, "tools/call", params).whole()

    assert [params["level"] for params in before_the_answer(call)] == list(levels)


@requirement("logging:secrets")
async def test_log_messages_tell_no_secrets_and_objects_only_by_their_text(party, offer):
    def tell_too_much(ctx):
        order = Order.objects.create(number="A-1")
        ctx.log("info", {"order": order, "card": {"cvv": "123"}, "password": "hunter2"})
        ctx.log("info", "Authorization: Bearer hunter2", logger="shop" * 50)
        ctx.log("info", models.Value)

    offer(tell_too_much, read_only=False)
    person = await party(LATEST)

    call = await person.call("work").whole()

    assert "hunter2" not in call.body.decode()
    assert "123" not in call.body.decode()
    first, second, third = before_the_answer(call)
    assert first["data"]["card"] == {"cvv": "[redacted]"}
    assert isinstance(first["data"]["order"], str)
    assert second["logger"] == ("shop" * 50)[:80]
    assert third["data"] == str(models.Value)


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
    call = await gate.held(person.call("work", token="t"))

    record = await person.call("get_record", model="shop.order", pk=order.pk).whole()
    gate.open()
    await call.end()

    assert not record.json["result"]["isError"]
    assert text_of(call.messages[-1]) == "done"


# The pace of what it says


@pytest.fixture
def later():
    """When the output asked to be looked at again."""
    return []


@pytest.fixture
def output(clock, later):
    return Output(lambda: None, wake_in=later.append, clock=clock)


def taken(output):
    """What is sent: the values of progress and the data of log messages."""
    messages = [msgspec.json.decode(sent)["params"] for sent in output.take(Revision.V2025_11_25)]
    return [params.get("progress", params.get("data")) for params in messages]


@requirement("progress:token")
async def test_of_unsent_values_of_progress_the_last_and_highest_is_sent_at_its_pace(
    output, clock, later
):
    output.add(progress("t", 1))
    output.add(log_message("info", "between"))
    for value in (3, 2, 3):
        output.add(progress("t", value))
    first = taken(output)
    output.add(progress("t", 3))
    output.add(progress("t", 4))
    too_soon = taken(output)
    clock.now += PACE
    third = taken(output)
    output.add(progress("t", 4))
    clock.now += PACE

    assert first == ["between", 3]
    assert too_soon == []
    assert later == [PACE]
    assert third == [4]
    assert taken(output) == []


@pytest.mark.parametrize(
    "push",
    [
        lambda output: output.close(),
        lambda output: output.add(log_message("info", "x")),
        lambda output: output.say(b'{"params": {"data": "question"}}'),
    ],
    ids=["answer", "log message", "question"],
)
async def test_progress_does_not_wait_where_anything_comes_behind_it(output, push):
    output.add(progress("t", 1))
    taken(output)
    output.add(progress("t", 2))

    push(output)

    assert taken(output)[0] == 2


async def test_what_runs_on_behind_the_answer_says_nothing_more(output):
    output.add(log_message("info", "before"))
    output.close()

    output.add(log_message("info", "after"))
    output.add(progress("t", 1))
    output.say(b'{"params": {"data": "of the transport"}}')

    assert taken(output) == ["before", "of the transport"]


@requirement("logging:secrets")
async def test_twenty_log_messages_are_sent_in_a_second_and_one_of_them_counts_the_others(
    output, clock
):
    for number in range(25):
        output.add(log_message("info", number))
    first = taken(output)

    clock.now += 0.9
    output.add(log_message("warning", "still in that second"))
    clock.now += 0.1
    for number in range(25):
        output.add(log_message("info", number))
    second = taken(output)
    output.close()
    output.close()

    left_out = "{} messages were left out: a call sends 20 in a second."
    assert first == list(range(20))
    assert second == [left_out.format(6), *range(19)]
    assert taken(output) == [left_out.format(6)]
