"""What a running call says before its answer: log messages and progress, on its own stream."""

from __future__ import annotations

from functools import partial

import pytest
from django import forms
from django.db import models

import mcp_django as mcp
from mcp_django.exposure.primitives import Lane
from mcp_django.protocol.methods import LOG_LEVELS
from mcp_django.protocol.negotiation import LOG_LEVEL_KEY
from mcp_django.protocol.revisions import LEGACY, Revision
from mcp_django.transports.calls import running
from tests.shop.models import Order
from tests.spec import requirement
from tests.transports.session_client import SessionClient, text_of
from tests.transports.wire import Connection, finished, speaking

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]

LATEST = Revision.V2025_11_25
MODERN = Revision.V2026_07_28


class NumberForm(forms.Form):
    number = forms.CharField()


@pytest.fixture
def party(client):
    return partial(SessionClient.begin, client)


@pytest.fixture
def chatter(add_tool):
    def chatter(ctx: mcp.Context) -> str:
        """Say something at each level."""
        for level in LOG_LEVELS:
            ctx.log(level, level, logger="shop")
        return "done"

    add_tool(chatter)


def before_the_answer(call):
    *before, answer = call.messages
    assert "result" in answer
    return [one["params"] for one in before]


# Log messages


@requirement("logging:levels")
@pytest.mark.parametrize("revision", LEGACY, ids=lambda one: one.value)
@pytest.mark.parametrize("level", LOG_LEVELS)
async def test_a_session_gets_what_is_as_urgent_as_it_wants(party, chatter, revision, level):
    person = await party(revision)
    set_level = await person.ask("logging/setLevel", level=level).whole()

    call = await person.call("chatter").whole()

    assert set_level.json["result"] == {}
    assert [one["level"] for one in before_the_answer(call)] == list(
        LOG_LEVELS[LOG_LEVELS.index(level) :]
    )


@requirement("logging:levels")
@pytest.mark.parametrize("level", ["loud", "", None, 3, "INFO"])
async def test_a_level_that_there_is_not_is_refused(party, level):
    person = await party(LATEST)

    call = await person.ask("logging/setLevel", level=level).whole()

    assert call.json["error"]["code"] == -32602


@requirement("logging:default-level")
async def test_a_session_that_named_no_level_is_told_nothing_for_developers(party, chatter):
    person = await party(LATEST)

    call = await person.call("chatter").whole()

    assert [one["level"] for one in before_the_answer(call)] == list(LOG_LEVELS[1:])


async def test_one_session_sets_no_level_for_another(party, chatter):
    person, other = await party(LATEST), await party(LATEST)
    await person.ask("logging/setLevel", level="emergency").whole()

    call = await other.call("chatter").whole()

    assert len(before_the_answer(call)) == 7


async def test_a_legacy_request_without_a_session_gets_no_log_messages(client, chatter):
    call = await Connection.calling(speaking(client, LATEST), "chatter").whole()

    assert text_of(call.json) == "done"


def modern(client, level):
    meta = {} if level is None else {"_meta": {LOG_LEVEL_KEY: level}}
    return Connection.asking(
        speaking(client, MODERN), "tools/call", {"name": "chatter", "arguments": {}, **meta}
    )


@requirement("logging:opt-in")
async def test_a_modern_request_names_its_level(client, chatter):
    warned, silent = modern(client, "warning"), modern(client, None)

    await warned.whole()
    await silent.whole()

    assert [one["level"] for one in before_the_answer(warned)] == list(LOG_LEVELS[3:])
    assert text_of(silent.json) == "done"


@requirement("logging:unknown-level")
async def test_a_modern_request_with_a_level_that_there_is_not_is_refused(client, chatter):
    call = await modern(client, "loud").whole()

    assert call.json["error"]["code"] == -32602


@requirement("logging:secrets")
async def test_log_messages_tell_no_secrets_and_objects_only_by_their_text(party, add_tool):
    def tell(ctx: mcp.Context) -> str:
        """Tell too much."""
        order = Order.objects.create(number="A-1")
        ctx.log("info", {"order": order, "card": {"cvv": "123"}, "password": "hunter2"})
        ctx.log("info", "Authorization: Bearer hunter2", logger="shop")
        ctx.log("info", models.Value)
        return "done"

    add_tool(tell, read_only=False)
    person = await party(LATEST)

    call = await person.call("tell").whole()

    assert "hunter2" not in call.body.decode()
    assert "123" not in call.body.decode()
    first, second, third = before_the_answer(call)
    assert first["data"]["card"] == {"cvv": "[redacted]"}
    assert isinstance(first["data"]["order"], str)
    assert second["logger"] == "shop"
    assert third["data"] == str(models.Value)


@requirement("logging:secrets")
async def test_a_call_that_says_too_much_says_how_much_it_did_not_say(party, add_tool):
    def flood(ctx: mcp.Context) -> str:
        """Say a lot."""
        for number in range(5000):
            ctx.log("info", number)
        return "done"

    add_tool(flood)
    person = await party(LATEST)

    call = await person.call("flood").whole()

    lines = [one["data"] for one in before_the_answer(call)]
    left_out = sum(int(line.split()[0]) for line in lines if isinstance(line, str))
    assert lines[:20] == list(range(20))
    assert left_out == 5000 - sum(isinstance(line, int) for line in lines)
    assert len(lines) < 200


@pytest.mark.thorough
async def test_what_runs_on_behind_its_time_is_heard_by_nobody(party, add_tool, gate, configure):
    configure(TOOL_TIMEOUT=0.5)
    heard = []

    def late(ctx: mcp.Context) -> str:
        """Say something too late."""
        ctx.log("info", "in time")
        gate.wait()
        ctx.cancelled.clear()
        ctx.log("info", "too late")
        heard.append(True)
        return ""

    add_tool(late)
    person = await party(LATEST)

    call = await person.call("late").whole()
    gate.open()
    await finished(Lane.WORK)

    assert [one["data"] for one in before_the_answer(call)] == ["in time"]
    assert heard == [True]


@pytest.mark.parametrize("revision", [LATEST, Revision.V2025_06_18], ids=lambda one: one.value)
async def test_a_call_that_has_nothing_to_say_for_long_opens_its_stream(
    party, add_tool, gate, monkeypatch, revision
):
    """What it says later is kept for a client that lost it, from the first event on."""
    monkeypatch.setattr(running, "GRACE", 0.01)

    def wait() -> str:
        """Wait."""
        gate.wait()
        return "done"

    add_tool(wait)
    person = await party(revision)
    call = await person.called("wait")

    first = await call.frame()
    gate.open()

    assert (first.id is not None) == revision.features.priming_events
    assert text_of(await call.message()) == "done"
    await call.end()


@pytest.mark.parametrize("revision", LEGACY, ids=lambda revision: revision.value)
async def test_the_answer_to_a_slow_handshake_names_its_session(party, monkeypatch, revision):
    """A response that has become a stream has no headers left to give."""
    monkeypatch.setattr(running, "QUICK", 0)
    monkeypatch.setattr(running, "GRACE", 0)

    person = await party(revision)

    assert person.id


# Progress


@requirement("progress:token", "progress:message")
@pytest.mark.parametrize("revision", Revision, ids=lambda one: one.value)
async def test_progress_is_told_in_the_words_of_the_revision(client, add_tool, revision):
    def report(ctx: mcp.Context) -> str:
        """Report once."""
        ctx.progress(1, total=2, message="Half")
        return "done"

    add_tool(report)
    call = await Connection.calling(speaking(client, revision), "report", token="t").whole()

    told = {"progressToken": "t", "progress": 1, "total": 2}
    message = {"message": "Half"} if revision.features.progress_message else {}
    assert before_the_answer(call) == [{**told, **message}]


@requirement("progress:token")
async def test_progress_rises_over_all_runs_of_a_call_that_asks(party, add_tool):
    def steps(ctx: mcp.Context) -> str:
        """Count, ask, and count on."""
        for number in range(3):
            ctx.progress(number)
        ctx.ask("number", NumberForm)
        for number in range(3, 6):
            ctx.progress(number)
        return "done"

    add_tool(steps, asks=True)
    person = await party(LATEST)
    call = await person.called("steps", token=7)

    question = await call.message()
    values = []
    while "id" not in question:
        values.append(question["params"]["progress"])
        question = await call.message()
    await person.accept(question, number="1")
    *more, answer = await call.rest()
    values += [one["params"]["progress"] for one in more]

    assert text_of(answer) == "done"
    assert values == sorted(set(values))
    assert values[-1] == 5
    await call.end()


async def test_who_only_reads_does_not_wait_for_a_tool_that_writes_and_tells_of_it(
    party, add_tool, gate
):
    """SQLite has room for one who writes: what the tool says is kept behind it."""

    def write(ctx: mcp.Context) -> str:
        """Write and report in one transaction."""
        Order.objects.create(number="new")
        ctx.progress(1)
        gate.wait()
        return "done"

    add_tool(write, read_only=False, atomic=True)
    order = await Order.objects.acreate(number="old")
    person = await party(LATEST)
    call = person.call("write", token="t")
    call.start()
    await gate.until_reached()

    record = await person.call("get_record", model="shop.order", pk=order.pk).whole()
    gate.open()
    await call.end()

    assert not record.json["result"]["isError"]
    assert text_of(call.messages[-1]) == "done"


@requirement("progress:token")
@pytest.mark.parametrize("token", [True, 1.5, ["t"], {"a": 1}])
async def test_progress_is_not_told_to_a_token_that_is_none(party, add_tool, token):
    def report(ctx: mcp.Context) -> str:
        """Report once."""
        ctx.progress(1)
        return "done"

    add_tool(report)
    person = await party(LATEST)

    call = await person.call("report", token=token).whole()

    assert text_of(call.json) == "done"


async def test_changed_folders_are_heard_of_and_nothing_follows(party, add_tool):
    def count(ctx: mcp.Context) -> str:
        """Count the folders."""
        return str(len(ctx.roots()))

    add_tool(count, asks=True)
    person = await party(LATEST)
    found = []
    for roots in ([{"uri": "file:///a"}], [{"uri": "file:///a"}, {"uri": "file:///b"}]):
        call = await person.called("count")
        await person.say(await call.message(), roots=roots)
        found.append(text_of(await call.message()))
        changed = await person.notify("notifications/roots/list_changed")
        assert (changed.status, changed.body) == (202, b"")
        await call.end()

    assert found == ["1", "2"]
