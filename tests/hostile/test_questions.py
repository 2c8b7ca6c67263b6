"""Clients that answer what they were not asked, twice, for others, too late or too much."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from django import forms

import mcp_django as mcp
from mcp_django.models import ExposedTool, SpentConfirmation
from mcp_django.testing import Client, ProtocolFailure
from mcp_django.transports.streamable_http import MCPApplication
from tests.asking import TALKATIVE, Talk, accepted
from tests.clients import CheckedClient
from tests.exposure.races import together
from tests.shop.models import Memo, Order
from tests.spec import requirement

pytestmark = [pytest.mark.django_db, pytest.mark.client(capabilities=TALKATIVE)]
STALE = (
    "This requestState is not valid for this request, or too old. "
    "Send the request again without it, and without inputResponses."
)
USED = "The answers to these questions were used already."
YES = accepted(confirm=True)
ANSWERS = {"number": accepted(number="1"), "color": accepted(color="red")}
#: Of a tool that asks for itself and that staff guard.
FIRST = "mcp_django.asked_first"


class NumberForm(forms.Form):
    number = forms.CharField()


class ColorForm(forms.Form):
    color = forms.CharField()


def note(ctx: mcp.Context, text: str = "") -> str:
    """Note two things."""
    number = ctx.ask("number", NumberForm)["number"]
    color = ctx.ask("color", ColorForm, f"Color of {number}?")["color"]
    Memo.objects.create(text=text, code=f"{number}-{color}-{Memo.objects.count()}")
    return f"Noted {number} {color}."


async def awrite(ctx: mcp.Context) -> str:
    """Note two things, without a transaction."""
    number = (await ctx.aask("number", NumberForm))["number"]
    color = (await ctx.aask("color", ColorForm))["color"]
    await Memo.objects.acreate(code=f"{number}-{color}-{await Memo.objects.acount()}")
    return f"Noted {number} {color}."


def write(ctx: mcp.Context) -> str:
    """Note one thing."""
    number = ctx.ask("number", NumberForm)["number"]
    Memo.objects.create(code=f"{number}-{Memo.objects.count()}")
    return "Noted."


def clear(ctx: mcp.Context) -> str:
    """Delete all orders."""
    ctx.confirm(f"Delete {Order.objects.count()} orders?")
    Order.objects.all().delete()
    return "Deleted."


def look(ctx: mcp.Context) -> str:
    """Repeat a number, and change nothing."""
    return ctx.ask("number", NumberForm)["number"]


def guarded() -> str:
    """Note that it ran, and ask nothing by itself."""
    Memo.objects.create(code=str(Memo.objects.count()))
    return "Ran."


def twice(ctx: mcp.Context) -> str:
    """Note that it ran, and ask after staff did."""
    ctx.confirm("Run?")
    return guarded()


@pytest.fixture(autouse=True)
def tools(add_tool):
    for function in (note, write, clear, awrite, twice):
        add_tool(function, read_only=False, asks=True)
    add_tool(look, asks=True)
    add_tool(guarded, read_only=False)
    for name in ("guarded", "twice"):
        ExposedTool.objects.create(name=name, needs_confirmation=True)


def refusal(send, *arguments, **options):
    with pytest.raises(ProtocolFailure) as refused:
        send(*arguments, **options)
    assert (refused.value.status, refused.value.code) == (200, -32602)
    return refused.value.message


# The state


@requirement("input:state-sealed")
@pytest.mark.parametrize(
    "change",
    [
        *({"requestState": state} for state in ("", "x", ":::", "é", "\x00", "a:b:c")),
        {"requestState": "x" * 300_000},
        {"name": "write", "arguments": {}},
        {"arguments": {"text": "other"}},
        {"arguments": {"text": "a", "confirmation": "x"}},
        {"arguments": {}},
    ],
    ids=lambda change: str(change)[:40],
)
def test_a_state_is_good_for_the_request_that_it_was_made_for(client, change):
    asked = Talk.call(client, "note", text="a")

    assert refusal(asked.answer, ANSWERS, **change) == STALE
    assert not Memo.objects.exists()


@requirement("input:state-sealed")
def test_the_state_of_somebody_else_is_refused(client, make_user):
    eve = CheckedClient(user=make_user("eve", is_staff=True), capabilities=TALKATIVE)
    asked = Talk.call(client, "write")

    theirs = Talk.call(eve, "write")

    assert refusal(theirs.answer, ANSWERS, requestState=asked.state) == STALE
    assert not Memo.objects.exists()


@requirement("input:state-sealed")
def test_a_state_is_good_for_ten_minutes_and_its_talk_for_an_hour(client, monkeypatch):
    asked = Talk.call(client, "write")
    now = time.time()

    monkeypatch.setattr(time, "time", lambda: now + 602)
    late = refusal(asked.accept, "number", number="1")
    for minutes in range(9, 60, 9):
        monkeypatch.setattr(time, "time", lambda minutes=minutes: now + 60 * minutes)
        asked = asked.answer({})
    monkeypatch.setattr(time, "time", lambda: now + 60 * 59.5)
    hurried = asked.answer({})
    monkeypatch.setattr(time, "time", lambda: now + 60 * 61)

    assert late == STALE
    # Nobody is asked what cannot be answered in time.
    assert hurried.text.startswith("The questions of this call have taken too long")
    assert refusal(asked.answer, {}) == STALE


@requirement("input:any-worker")
def test_another_process_with_the_same_key_goes_on(client, settings):
    asked = Talk.call(client, "write")
    client.application = MCPApplication.as_asgi()
    settings.SECRET_KEY = "another"

    unknown = refusal(asked.accept, "number", number="1")
    settings.SECRET_KEY_FALLBACKS = ["not-a-secret"]

    assert unknown == STALE
    assert asked.accept("number", number="1").text == "Noted."


def test_a_state_for_what_does_not_ask_is_passed_over(client, add_tool):
    def plain() -> str:
        """Ask nothing."""
        return "Done."

    add_tool(plain)
    sent = {"name": "plain", "arguments": {}, "requestState": "x", "inputResponses": {"a": 1}}

    assert client.request("tools/call", sent)["content"][0]["text"] == "Done."


# Answers


@requirement("input:answers", "input:single-use")
@pytest.mark.parametrize("is_reachable", [True, False])
@pytest.mark.parametrize("tool", ["clear", "guarded", "twice", "write"])
def test_who_was_never_asked_has_answered_nothing(client, staff, tool, is_reachable):
    Order.objects.create(number="A")
    if not is_reachable and tool != "write":
        client = CheckedClient(user=staff)
    answers = {**ANSWERS, **dict.fromkeys(("confirm", "confirmation", FIRST), YES)}
    sent = {"name": tool, "arguments": {}, "inputResponses": answers}

    asked = Talk.begin(client, "tools/call", **sent)

    assert "inputRequests" in asked.result or '"confirmation"' in asked.text
    assert refusal(client.send, "tools/call", {**sent, "requestState": "forged"}) == STALE
    assert Order.objects.exists()
    assert not Memo.objects.exists()


def test_a_tool_that_changes_nothing_takes_answers_without_a_state_and_twice(client):
    sent = Talk.begin(client, "tools/call", name="look", arguments={}, inputResponses=ANSWERS)
    asked = Talk.call(client, "look")

    assert sent.text == "1"
    assert [asked.answer(ANSWERS).text for _ in range(2)] == ["1", "1"]
    assert not SpentConfirmation.objects.exists()


def test_an_answer_counts_for_the_question_that_was_asked_and_for_no_other(client):
    asked = Talk.call(client, "note")

    early = asked.answer(ANSWERS)
    later = early.answer({})
    two = asked.accept("number", number="2")
    # What a person said about number 1, with the state of a talk about number 2.
    mixed = two.answer(ANSWERS)

    assert early.messages == later.messages == {"color": "Color of 1?"}
    assert two.messages == {"color": "Color of 2?"}
    assert mixed.text == "Noted 2 red."


def test_answers_that_are_too_long_to_carry_are_refused(client):
    asked = Talk.call(client, "note")

    said = refusal(asked.accept, "number", number="x" * 300_000)

    assert said == "The answers in inputResponses are too long."
    assert not Memo.objects.exists()


# Once


@requirement("input:single-use")
@pytest.mark.parametrize("tool", ["note", "awrite"])
def test_no_state_of_a_talk_is_good_for_a_second_call(client, tool):
    first = Talk.call(client, tool)
    second = first.accept("number", number="1")
    other = first.accept("number", number="2")

    done = second.accept("color", color="red")

    assert done.text == "Noted 1 red."
    for spent in (second, other):
        assert spent.accept("color", color="red").text.startswith(USED)
    assert first.accept("number", number="3").text.startswith(USED)
    assert Memo.objects.count() == 1


def test_a_tool_that_fails_leaves_its_answer_for_the_next_try(client, add_tool):
    fails = [True]

    def fragile(ctx: mcp.Context) -> str:
        """Fail at first."""
        ctx.confirm("Really?")
        if fails.pop():
            raise mcp.ToolError("Try again.")
        return "Done."

    add_tool(fragile, read_only=False, asks=True)
    asked = Talk.call(client, "fragile")

    failed = asked.accept("confirm", confirm=True)
    fails.append(False)

    assert failed.text == "Try again."
    assert asked.accept("confirm", confirm=True).text == "Done."


def test_a_swallowed_refusal_of_used_answers_changes_nothing(client, add_tool):
    def careless(ctx: mcp.Context) -> str:
        """Catch everything."""
        with suppress(mcp.ToolError):
            ctx.ask("number", NumberForm)
        return guarded()

    add_tool(careless, read_only=False, asks=True)
    asked = Talk.call(client, "careless")

    asked.answer(ANSWERS)
    again = asked.answer(ANSWERS)

    assert again.text.startswith(USED)
    assert Memo.objects.count() == 1


@requirement("input:single-use")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("write", "Noted."),
        ("awrite", "Noted 1 red."),
        ("clear", "Deleted."),
        ("guarded", "Ran."),
    ],
)
def test_of_many_calls_with_one_answer_at_the_same_time_one_does_its_work(staff, tool, words):
    asked = Talk.call(Client(user=staff, capabilities=TALKATIVE, inline=False), tool)
    if tool == "awrite":
        asked = asked.accept("number", number="1")

    answers = {**ANSWERS, "confirm": YES, "confirmation": YES}
    texts = together(lambda _: asked.answer(answers).text, count=4)

    assert texts.count(words) == 1
    assert sum(text.startswith(USED) for text in texts) == 3
    assert Memo.objects.count() == (tool != "clear")
