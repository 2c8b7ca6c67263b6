"""Clients that answer what they were not asked, twice, for others, too late or too much."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier

import pytest
from django import forms
from django.db import connections

import mcp_django as mcp
from mcp_django.models import SpentConfirmation
from mcp_django.testing import Client, ProtocolFailure
from mcp_django.transports.http.streamable_http import MCPApplication
from tests.asking import TALKATIVE, Talk, accepted
from tests.clients import CheckedClient
from tests.shop.models import Memo, Order
from tests.spec import requirement
from tests.waiting import PATIENCE

pytestmark = pytest.mark.django_db
STALE = (
    "This requestState is not valid for this request, or too old. "
    "Send the request again without it, and without inputResponses."
)
USED = "The answers to these questions were used already."


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


async def awrite(ctx: mcp.Context) -> str:
    """Note two things, without a transaction."""
    number = (await ctx.aask("number", NumberForm))["number"]
    color = (await ctx.aask("color", ColorForm))["color"]
    await Memo.objects.acreate(code=f"{number}-{color}-{await Memo.objects.acount()}")
    return "Noted."


@pytest.fixture(autouse=True)
def tools(add_tool):
    for function in (note, write, clear, awrite):
        add_tool(function, read_only=False, asks=True)
    add_tool(look, asks=True)


@pytest.fixture
def clerk(make_user):
    return make_user("clerk", is_staff=True)


@pytest.fixture
def client(clerk):
    return CheckedClient(user=clerk, capabilities=TALKATIVE)


def refusal(send, *arguments, **options):
    with pytest.raises(ProtocolFailure) as refused:
        send(*arguments, **options)
    assert (refused.value.status, refused.value.code) == (200, -32602)
    return refused.value.message


# The state


@requirement("input:state-sealed")
def test_a_state_that_was_changed_anywhere_is_refused(client):
    asked = Talk.call(client, "write")

    for at in range(0, len(asked.state), 7):
        other = "A" if asked.state[at] != "A" else "B"
        changed = asked.state[:at] + other + asked.state[at + 1 :]
        assert refusal(asked.answer, {}, requestState=changed) == STALE


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

    assert refusal(asked.answer, {"number": accepted(number="1")}, **change) == STALE
    assert not Memo.objects.exists()


@requirement("input:state-sealed")
def test_the_state_of_somebody_else_is_refused(client, clerk, make_user):
    eve = make_user("eve", is_staff=True)
    asked = Talk.call(client, "write")

    theirs = Talk.call(CheckedClient(user=eve, capabilities=TALKATIVE), "write")

    answers = {"number": accepted(number="1")}
    assert refusal(theirs.answer, answers, requestState=asked.state) == STALE
    assert not Memo.objects.exists()


@requirement("input:state-sealed")
def test_a_state_is_good_for_ten_minutes(client, monkeypatch):
    asked = Talk.call(client, "write")
    now = time.time()

    monkeypatch.setattr(time, "time", lambda: now + 602)
    late = refusal(asked.accept, "number", number="1")
    monkeypatch.setattr(time, "time", lambda: now + 590)

    assert late == STALE
    assert asked.accept("number", number="1").text == "Noted."


@requirement("input:state-sealed")
def test_a_client_cannot_keep_asking_for_fresh_states_for_more_than_an_hour(client, monkeypatch):
    asked = Talk.call(client, "write")
    now = time.time()

    for minutes in range(9, 60, 9):
        monkeypatch.setattr(time, "time", lambda minutes=minutes: now + 60 * minutes)
        asked = asked.answer({})
    monkeypatch.setattr(time, "time", lambda: now + 60 * 59.5)
    hurried = asked.answer({})
    monkeypatch.setattr(time, "time", lambda: now + 60 * 61)

    # Nobody is asked what cannot be answered in time.
    assert hurried.text.startswith("The questions of this call have taken too long")
    assert refusal(asked.answer, {}) == STALE


@requirement("input:any-worker")
def test_a_state_outlives_a_new_secret_key_as_long_as_the_old_one_is_known(client, settings):
    asked = Talk.call(client, "write")

    settings.SECRET_KEY = "another"
    unknown = refusal(asked.accept, "number", number="1")
    settings.SECRET_KEY_FALLBACKS = ["not-a-secret"]
    answered = asked.accept("number", number="1")

    assert unknown == STALE
    assert answered.text == "Noted."


@requirement("input:any-worker")
def test_another_process_with_the_same_key_goes_on(client):
    asked = Talk.call(client, "write")
    client.application = MCPApplication.as_asgi()

    assert asked.accept("number", number="1").text == "Noted."


def test_a_state_for_what_does_not_ask_is_passed_over(client, add_tool):
    def plain() -> str:
        """Ask nothing."""
        return "Done."

    add_tool(plain)
    sent = {"name": "plain", "arguments": {}, "requestState": "x", "inputResponses": {"a": 1}}

    assert client.request("tools/call", sent)["content"][0]["text"] == "Done."


def test_what_was_answered_long_ago_cannot_be_changed_by_the_client(client):
    asked = Talk.call(client, "note").accept("number", number="1")

    answers = {"number": accepted(number="2"), "color": accepted(color="red")}

    assert asked.answer(answers).text == "Noted 1 red."


# Answers


@requirement("input:answers", "input:single-use")
@pytest.mark.parametrize("tool", ["write", "clear"])
def test_who_was_never_asked_has_answered_nothing(client, tool):
    Order.objects.create(number="A")
    answers = {"number": accepted(number="1"), "confirm": accepted(confirm=True)}

    sent = Talk.begin(client, "tools/call", name=tool, arguments={}, inputResponses=answers)

    assert sent.result["resultType"] == "input_required"
    assert Order.objects.exists()
    assert not Memo.objects.exists()


def test_a_tool_that_changes_nothing_takes_answers_without_a_state(client):
    answers = {"number": accepted(number="1")}

    sent = Talk.begin(client, "tools/call", name="look", arguments={}, inputResponses=answers)

    assert sent.text == "1"


def test_an_answer_to_a_question_that_comes_later_is_not_kept(client):
    asked = Talk.call(client, "note")

    answers = {"number": accepted(number="1"), "color": accepted(color="red")}
    again = asked.answer(answers)

    assert again.messages == {"color": "Color of 1?"}
    assert again.answer({}).messages == {"color": "Color of 1?"}


def test_an_answer_to_another_question_under_the_same_key_is_asked_again(client):
    one = Talk.call(client, "note").accept("number", number="1")
    two = Talk.call(client, "note").accept("number", number="2")

    # The state of a talk about number 2, with what a person said about number 1.
    answered = two.answer({"color": accepted(color="red"), "number": accepted(number="1")})

    assert one.messages != two.messages
    assert answered.text == "Noted 2 red."


def test_answers_that_are_too_long_to_carry_are_refused(client):
    asked = Talk.call(client, "note")

    said = refusal(asked.accept, "number", number="x" * 300_000)

    assert said == "The answers in inputResponses are too long."
    assert not Memo.objects.exists()


def test_two_thousand_answers_are_as_good_as_one(client):
    asked = Talk.call(client, "write")

    answers = {f"key {at}": accepted(number=at) for at in range(2_000)}

    assert asked.answer({**answers, "number": accepted(number="1")}).text == "Noted."


@pytest.mark.parametrize("number", ["\x00", "\ufffe", "\U0001f4a5" * 5, "{{ settings }}", "'; --"])
def test_strange_texts_are_asked_again_or_taken_as_they_are(client, number):
    answered = Talk.call(client, "look").accept("number", number=number)

    assert "inputRequests" in answered.result or answered.text == number


# Once


@requirement("input:single-use")
@pytest.mark.parametrize(
    ("tool", "key", "content"),
    [("write", "number", {"number": "1"}), ("clear", "confirm", {"confirm": True})],
)
def test_an_answer_is_good_for_one_call_of_a_tool_that_writes(client, tool, key, content):
    asked = Talk.call(client, tool)

    first = asked.accept(key, **content)
    second = asked.accept(key, **content)

    assert not first.result["isError"]
    assert second.result["isError"]
    assert second.text.startswith(USED)


@requirement("input:single-use")
def test_no_state_of_a_talk_is_good_for_a_second_call(client):
    first = Talk.call(client, "note")
    second = first.accept("number", number="1")
    other = first.accept("number", number="2")

    done = second.accept("color", color="red")

    assert done.text == "Noted 1 red."
    assert other.accept("color", color="red").text.startswith(USED)
    assert first.accept("number", number="3").text.startswith(USED)
    assert Memo.objects.count() == 1


def test_an_answer_to_a_tool_that_changes_nothing_may_be_sent_twice(client):
    asked = Talk.call(client, "look")

    assert [asked.accept("number", number="1").text for _ in range(2)] == ["1", "1"]
    assert not SpentConfirmation.objects.exists()


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


@requirement("input:single-use")
def test_without_a_transaction_an_answer_is_good_once_as_well(client):
    first = Talk.call(client, "awrite")
    second = first.accept("number", number="1")
    done = second.accept("color", color="red")

    assert done.text == "Noted."
    assert second.accept("color", color="red").text.startswith(USED)
    assert first.accept("number", number="1").text.startswith(USED)
    assert Memo.objects.count() == 1


def test_a_swallowed_refusal_of_used_answers_changes_nothing(client, add_tool):
    def careless(ctx: mcp.Context) -> str:
        """Catch everything."""
        with suppress(mcp.ToolError):
            ctx.ask("number", NumberForm)
        Memo.objects.create(code=str(Memo.objects.count()))
        return "Done."

    add_tool(careless, read_only=False, asks=True)
    asked = Talk.call(client, "careless")

    asked.accept("number", number="1")
    again = asked.accept("number", number="1")

    assert again.text.startswith(USED)
    assert Memo.objects.count() == 1


# At the same time


@requirement("input:single-use")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("tool", "words", "memos"),
    [("write", "Noted.", 1), ("awrite", "Noted.", 1), ("clear", "Deleted.", 0)],
)
def test_of_many_calls_with_one_answer_at_the_same_time_one_does_its_work(
    clerk, tool, words, memos
):
    asked = Talk.call(Client(user=clerk, capabilities=TALKATIVE, inline=False), tool)
    if tool == "awrite":
        asked = asked.accept("number", number="1")
    answers = {
        "number": accepted(number="1"),
        "color": accepted(color="red"),
        "confirm": accepted(confirm=True),
    }
    start = Barrier(4)

    def send(number):
        start.wait(PATIENCE)
        try:
            return asked.answer(answers).text
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(send, range(4)))

    assert texts.count(words) == 1
    assert sum(text.startswith(USED) for text in texts) == 3
    assert Memo.objects.count() == memos
