"""Tools that ask, on the page that tries them: whoever is at the page answers."""

from __future__ import annotations

import time

import pytest
from django import forms

import mcp_django as mcp
from mcp_django.exposure.registry import registry
from mcp_django.models import ExposedModel, ExposedTool
from tests.admin.looking import allow, in_this_thread, text_of, url
from tests.clients import browser_of
from tests.shop.models import Customer, Order

pytestmark = pytest.mark.django_db


class Shipping(forms.Form):
    carrier = forms.ChoiceField(choices=[("post", "By post"), ("courier", "By <b>courier</b>")])
    parcels = forms.IntegerField(min_value=1, max_value=20, initial=1)
    note = forms.CharField(required=False, initial="Fragile", help_text="For the driver.")
    day = forms.DateField(required=False)
    extras = forms.MultipleChoiceField(choices=[("a", "Ice"), ("b", "Bow")], required=False)
    insured = forms.BooleanField(required=False, initial=True)


@pytest.fixture
def trier(make_user):
    return make_user("trier", "view_order", "try_tools", is_staff=True)


@pytest.fixture(autouse=True)
def _inline():
    with in_this_thread():
        yield


@pytest.fixture
def post(trier):
    def post(query, data, *, by=trier):
        return browser_of(by).post(f"{url('try_it')}{query}", data)

    return post


@pytest.fixture
def call(post):
    def call(tool, *, by=None, **arguments):
        data = {f"argument_{name}": value for name, value in arguments.items()}
        return post(f"?tool={tool}", data, **({} if by is None else {"by": by}))

    return call


@pytest.fixture
def answer(post):
    """Send the form of the questions on a page."""

    def answer(page, action="accept", *, query=None, by=None, **fields):
        data = {"asked": page.context["asking"]["sealed"], "action_0": action}
        data |= {f"question_0-{name}": value for name, value in fields.items()}
        to = f"?{page.request['QUERY_STRING']}" if query is None else query
        return post(to, data, **({} if by is None else {"by": by}))

    return answer


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


GOOD = {"carrier": '"post"', "parcels": "3", "note": "Heavy", "day": "2026-02-03", "extras": ["b"]}


# One question


def test_a_question_is_the_form_that_it_is(call, shipped):
    page = call("ship", number="A-1")

    (form,) = page.context["asking"]["forms"]
    assert "How was A-1 sent?" in text_of(page)
    assert form["parcels"].initial == "1"
    assert form["note"].initial == "Fragile"
    assert [title for _, title in form["carrier"].field.choices][1] == "By post"
    assert form["insured"].initial is True
    assert form["insured"].widget_type == "checkbox"
    assert form["extras"].widget_type == "checkboxselectmultiple"
    assert 'type="date"' in str(form["day"])
    assert b"<script>alert(1)" not in page.content
    assert shipped == []


def test_an_answer_goes_on_with_the_same_arguments(call, answer, shipped):
    page = call("ship", number="A\r\n-1")

    done = answer(page, **GOOD)

    [(number, said)] = shipped
    assert number == "A\r\n-1"
    assert said["parcels"] == 3
    assert said["note"] == "Heavy"
    assert said["day"].isoformat() == "2026-02-03"
    assert said["extras"] == ["b"]
    assert said["insured"] is False
    assert "went by post." in text_of(done)
    assert "asking" not in done.context


def test_what_is_emptied_is_empty_and_does_not_come_back(call, answer, shipped):
    answer(call("ship", number="A-1"), **{**GOOD, "note": "", "day": "", "extras": []})

    assert shipped[0][1]["note"] == ""
    assert shipped[0][1]["day"] is None
    assert shipped[0][1]["extras"] == []


@pytest.mark.parametrize("action", ["decline", "cancel", "", "ACCEPT", "<script>"])
def test_whoever_does_not_agree_fills_nothing_in(call, answer, shipped, action):
    done = answer(call("ship", number="A-1"), action, parcels="many")

    assert shipped == []
    assert done.context["result"]["is_error"]
    assert "asking" not in done.context


def test_what_is_no_value_is_said_before_anything_is_called(call, answer, shipped):
    page = call("ship", number="A-1")

    wrong = answer(page, **{**GOOD, "parcels": "many", "carrier": '"rocket"'})

    assert "Nothing was called." in text_of(wrong)
    assert "is not one of the available choices" in text_of(wrong)
    assert "Write a number." in text_of(wrong)
    assert "result" not in wrong.context
    answer(wrong, **GOOD)
    assert len(shipped) == 1


def test_what_the_form_does_not_take_is_asked_again_with_what_was_written(call, answer, shipped):
    again = answer(call("ship", number="A-1"), **{**GOOD, "parcels": "21"})

    (form,) = again.context["asking"]["forms"]
    assert "less than or equal to 20" in form.message
    assert form["parcels"].initial == "21"
    assert form["note"].initial == "Heavy"
    assert form["insured"].initial is False
    answer(again, **GOOD)
    assert shipped[0][1]["parcels"] == 3


def test_a_second_question_keeps_the_answer_to_the_first(call, answer, add_tool):
    class Name(forms.Form):
        name = forms.CharField()

    def meet(ctx: mcp.Context) -> str:
        """Meet two."""
        one = ctx.ask("one", Name, "Who?")["name"]
        return f"{one} meets {ctx.ask('two', Name, 'Whom?')['name']}"

    add_tool(meet, asks=True)

    second = answer(call("meet"), name="Ada")
    done = answer(second, name="Bob")

    assert "Whom?" in text_of(second)
    assert second.context["asking"]["forms"][0]["name"].initial is None
    assert "Ada meets Bob" in text_of(done)


def test_questions_that_come_together_are_answered_one_by_one(call, post, add_tool):
    class Name(forms.Form):
        name = forms.CharField()

    def choose(ctx: mcp.Context) -> str:
        """Ask for two names."""
        with ctx.together():
            one = ctx.ask("one", Name, "Who?")
            two = ctx.ask("two", Name, "Whom?")
        return f"{one['name']} and {two['name']}"

    add_tool(choose, asks=True)
    page = call("choose")
    sealed = {"asked": page.context["asking"]["sealed"], "action_0": "accept"}
    first = {**sealed, "question_0-name": "Ada"}

    wrong = post("?tool=choose", {**first, "action_1": "accept"})
    declined = post("?tool=choose", {**first, "action_1": "decline"})
    done = post("?tool=choose", {**first, "action_1": "accept", "question_1-name": "Bob"})

    assert "What to do" in text_of(page)
    assert "This field is required." in text_of(wrong)
    assert 'value="Ada"' in wrong.content.decode()
    assert declined.context["result"]["is_error"]
    assert "Ada and Bob" in text_of(done)


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


def test_a_confirmation_is_a_box_to_tick(call, answer, wiped):
    page = call("wipe", what="all")

    unticked = answer(page)
    ticked = answer(page, confirm="on")

    assert "Wipe all?" in text_of(page)
    assert unticked.context["result"]["is_error"]
    assert "wiped" in text_of(ticked)
    assert wiped == ["all"]


def test_a_confirmation_is_good_once(call, answer, wiped):
    page = call("wipe", what="all")
    answer(page, confirm="on")

    again = answer(page, confirm="on")

    assert "were used already" in text_of(again)
    assert wiped == ["all"]


def test_a_function_that_staff_want_to_be_confirmed_is_confirmed(call, answer):
    ExposedTool.objects.create(name="echo", needs_confirmation=True)

    page = call("echo", text="hello")
    unticked = answer(call("echo", text="hello"))
    done = answer(page, confirm="on")

    assert "Text: hello" in text_of(page)
    assert unticked.context["result"]["is_error"]
    assert '"user": "trier"' in done.context["result"]["structured"]


def test_an_action_that_staff_want_to_be_confirmed_is_confirmed(call, answer, trier):
    allow(trier, "shop.view_customer", "shop.change_customer")
    customer = Customer.objects.create(name="Ada", country="FR")
    ExposedTool.objects.create(name="shop_customer_greet", needs_confirmation=True)

    page = call("shop_customer_greet", pks=f"[{customer.pk}]")
    done = answer(page, confirm="on")

    assert "Greeted" not in text_of(page)
    assert "Greeted 1." in text_of(done)


def test_a_tool_that_asks_is_confirmed_first_and_then_asks(call, answer, shipped):
    ExposedTool.objects.create(name="ship", needs_confirmation=True)

    preview = call("ship", number="A-1")
    page = answer(preview, confirm="on")
    done = answer(page, **GOOD)

    assert "Call ship" in text_of(preview)
    assert "How was A-1 sent?" in text_of(page)
    assert "went by post." in text_of(done)
    assert len(shipped) == 1


@pytest.mark.parametrize("action", ["accept", "decline"])
def test_a_deletion_waits_for_the_answer(call, answer, trier, action):
    allow(trier, "shop.change_order", "shop.delete_order")
    ExposedModel.objects.create(label="shop.order", level=5)
    order = Order.objects.create(number="A-1")

    page = call("delete_record", model="shop.order", pk=order.pk)
    asked = Order.objects.exists()
    answer(page, action=action, confirm="on")

    assert "Delete this order?" in text_of(page)
    assert asked
    assert Order.objects.exists() is (action == "decline")


# What cannot go on


def test_answers_of_somebody_else_go_on_with_nothing(call, answer, wiped, make_user):
    other = make_user("other", "try_tools", is_staff=True)

    stolen = answer(call("wipe", what="all"), by=other, confirm="on")

    assert "asked for another call, or of somebody else" in text_of(stolen)
    assert "result" not in stolen.context
    assert wiped == []


def test_answers_for_another_tool_go_on_with_nothing(call, answer, wiped, shipped):
    page = call("wipe", what="all")

    assert "is_stale" in answer(page, query="?tool=ship", confirm="on").context
    assert "is_stale" in answer(page, query="", confirm="on").context
    assert wiped == shipped == []


@pytest.mark.parametrize("forged", ["", "x", "e30:1xURlX:" + "b" * 43, "é", "x" * 1_100_000])
def test_forged_questions_go_on_with_nothing(post, wiped, forged):
    page = post("?tool=wipe", {"asked": forged, "action_0": "accept", "argument_what": "all"})

    assert "Nothing was called" in text_of(page)
    assert wiped == []


def test_a_question_that_is_too_old_is_refused(call, answer, wiped, monkeypatch):
    page = call("wipe", what="all")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 601)

    late = answer(page, confirm="on")

    assert "too old" in text_of(late)
    assert wiped == []


def test_a_tool_that_was_switched_off_meanwhile_is_gone(call, answer, wiped):
    page = call("wipe", what="all")
    ExposedTool.objects.create(name="wipe", enabled=False)

    assert "There is no tool wipe." in text_of(answer(page, confirm="on"))
    assert wiped == []


def test_a_tool_that_asks_a_model_says_that_there_is_none(call, add_tool):
    def draft(ctx: mcp.Context) -> str:
        """Ask the client's model."""
        return str(ctx.sample("line", "A line.", max_tokens=10).text)

    add_tool(draft, asks=True)

    assert "declares: sampling" in text_of(call("draft"))


def test_a_resource_that_asks_is_answered_as_well(post, answer, request):
    def seat(ctx: mcp.Context) -> str:
        """A seat."""

        class Seat(forms.Form):
            row = forms.IntegerField()

        return f"Row {ctx.ask('seat', Seat, 'Which row?')['row']}"

    mcp.resource("desk://seat", asks=True, mime_type="text/plain")(seat)
    request.addfinalizer(lambda: registry.remove_resource("desk://seat"))
    page = post("", {"uri": "desk://seat"})

    assert "Which row?" in text_of(page)
    assert "Row 7" in text_of(answer(page, query="", row="7"))


@pytest.mark.thorough
def test_what_was_done_before_a_question_is_taken_back(call, answer, add_tool):
    order = Order.objects.create(number="A-1")

    def rename(ctx: mcp.Context) -> str:
        """Rename first, ask then."""
        Order.objects.update(number="B-1")
        ctx.confirm("Sure?")
        return "renamed"

    add_tool(rename, read_only=False, asks=True)
    page = call("rename")

    order.refresh_from_db()
    assert order.number == "A-1"
    answer(page, confirm="on")
    order.refresh_from_db()
    assert order.number == "B-1"
