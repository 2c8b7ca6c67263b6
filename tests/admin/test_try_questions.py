"""Tools that ask, on the page that tries them: whoever is at the page answers."""

from __future__ import annotations

import json

import pytest
from django import forms

import mcp_django as mcp
from tests.admin.looking import text_of, url
from tests.clients import browser_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("recorded")]


class Shipping(forms.Form):
    carrier = forms.ChoiceField(choices=[("post", "By post"), ("courier", "By <b>courier</b>")])
    parcels = forms.IntegerField(min_value=1, max_value=20, initial=1)
    note = forms.CharField(required=False, initial="Fragile", help_text="For the driver.")
    day = forms.DateField(required=False)
    extras = forms.MultipleChoiceField(choices=[("a", "Ice"), ("b", "Bow")], required=False)
    insured = forms.BooleanField(required=False, initial=True)


@pytest.fixture
def answer(trier):
    """Send the form of the questions on a page: as it is, with a text, or with what a dict says
    of each question, where None declines."""

    def answer(page, answers=None, *, query=None, by=trier, **changes):
        asking, form = page.context["asking"], page.context["form"]
        data = {field.html_name: field.value() for field in (*form, *asking)}
        if isinstance(answers, dict):
            responses = {
                key: {"action": "decline" if content is None else "accept", "content": content}
                for key, content in answers.items()
            }
            answers = json.dumps(responses)
        if answers is not None:
            data["answers"] = answers
        to = f"?{page.request['QUERY_STRING']}" if query is None else query
        return browser_of(by).post(f"{url('try_it')}{to}", {**data, **changes})

    return answer


def written(page):
    responses = json.loads(page.context["asking"]["answers"].value())
    return {key: response["content"] for key, response in responses.items()}


@pytest.fixture
def shipped(add_tool):
    """A tool that asks how something is sent, and what it did."""
    sent = []

    def ship(ctx: mcp.Context, number: str) -> str:
        """Ship an order."""
        said = ctx.ask("shipping", Shipping, f"How was {number} sent? <script>alert(1)</script>")
        sent.append((number, said))
        return f"{number} went by {said['carrier']}."

    add_tool(ship, read_only=False, asks=True)
    return sent


GOOD = {"carrier": "post", "parcels": 3, "note": "Heavy", "day": "2026-02-03", "extras": ["b"]}


# Questions


def test_a_question_is_shown_with_its_fields_and_answers_to_begin_with(call, shipped):
    page = call("ship", number="A-1")

    text = text_of(page)
    assert "How was A-1 sent?" in text
    assert '"title": "By post"' in text
    assert "For the driver." in text
    assert written(page) == {
        "shipping": {"carrier": "post", "parcels": 1, "note": "Fragile", "insured": True}
    }
    assert b"<script>alert(1)" not in page.content
    assert b"<b>courier" not in page.content
    assert shipped == []


def test_an_answer_goes_on_with_the_same_arguments(call, answer, shipped):
    done = answer(call("ship", number="A\r\n-1"), {"shipping": {**GOOD, "insured": False}})

    [(number, said)] = shipped
    assert number == "A\r\n-1"
    assert said["parcels"] == 3
    assert said["day"].isoformat() == "2026-02-03"
    assert said["extras"] == ["b"]
    assert said["insured"] is False
    assert "went by post." in text_of(done)
    assert done.context.get("asking") is None


@pytest.mark.parametrize("text", ["{parcels: 3}", "[]", ""])
def test_answers_that_are_no_json_object_call_nothing_and_stay(call, answer, shipped, text):
    wrong = answer(call("ship", number="A-1"), text)

    assert "How was A-1 sent?" in text_of(wrong)
    assert wrong.context["asking"].errors["answers"]
    assert wrong.context["asking"]["answers"].value() == text
    assert "result" not in wrong.context
    answer(wrong, {"shipping": GOOD})
    assert len(shipped) == 1


def test_what_the_form_does_not_take_is_asked_again_with_what_was_written(call, answer, shipped):
    again = answer(call("ship", number="A-1"), {"shipping": {**GOOD, "parcels": 21}})

    assert "less than or equal to 20" in text_of(again)
    assert written(again) == {"shipping": {**GOOD, "parcels": 21}}


def test_questions_that_come_together_are_answered_together(call, answer, add_tool):
    class Name(forms.Form):
        name = forms.CharField()

    def choose(ctx: mcp.Context) -> str:
        """Ask for two names, and for a third one."""
        with ctx.together():
            one = ctx.ask("one", Name, "Who?")
            two = ctx.ask("two", Name, "Whom?")
        three = ctx.ask("three", Name, "Where?")
        return f"{one['name']} meets {two['name']} in {three['name']}."

    add_tool(choose, asks=True)

    page = call("choose")
    declined = answer(page, {"one": {"name": "Ada"}, "two": None})
    following = answer(page, {"one": {"name": "Ada"}, "two": {"name": "Bob"}})
    done = answer(following, {"three": {"name": "Rome"}})

    assert written(page).keys() == {"one", "two"}
    assert declined.context["result"]["is_error"]
    assert written(following).keys() == {"three"}
    assert "Ada meets Bob in Rome." in text_of(done)


def test_a_resource_that_asks_is_answered_as_well(trier, answer, add_resource):
    def seat(ctx: mcp.Context) -> str:
        """A seat."""

        class Seat(forms.Form):
            row = forms.IntegerField()

        return f"Row {ctx.ask('seat', Seat, 'Which row?')['row']}"

    add_resource("desk://seat", seat, asks=True, mime_type="text/plain")
    page = browser_of(trier).post(url("try_it"), {"uri": "desk://seat"})

    assert "Which row?" in text_of(page)
    assert "Row 7" in text_of(answer(page, {"seat": {"row": 7}}))


# Confirmations


@pytest.fixture
def wiped(add_tool):
    gone = []

    def wipe(ctx: mcp.Context, what: str) -> str:
        """Wipe something."""
        ctx.confirm(f"Wipe {what}?")
        gone.append(what)
        return "wiped"

    add_tool(wipe, read_only=False, asks=True)
    return gone


YES = {"confirm": {"confirm": True}}


def test_what_is_to_be_confirmed_is_not_done_unless_somebody_writes_yes(call, answer, wiped):
    page = call("wipe", what="all")

    unchanged = answer(page)
    agreed = answer(page, YES)

    assert "Wipe all?" in text_of(page)
    assert unchanged.context["result"]["is_error"]
    assert "wiped" in text_of(agreed)
    assert wiped == ["all"]


# What cannot go on


def test_answers_that_are_not_of_this_call_go_on_with_nothing(
    call, answer, wiped, shipped, make_user
):
    page = call("wipe", what="all")

    answer(page, YES, by=make_user("other", "try_tools", is_staff=True))
    answer(page, YES, query="?tool=ship", arguments='{"number": "A-1"}')
    answer(page, YES, query="", uri="django://site")
    answer(page, YES, arguments='{"what": "other"}')
    forged = [answer(page, YES, state=state) for state in ("", "x", "é", "x" * 1_100_000)]

    assert [one.status_code for one in forged] == [200] * 4
    assert wiped == shipped == []
