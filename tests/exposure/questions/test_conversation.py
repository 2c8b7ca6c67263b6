from __future__ import annotations

from contextlib import suppress

import pytest
from django import forms
from django.utils.safestring import mark_safe
from django.utils.text import format_lazy

import mcp_django as mcp
from mcp_django.protocol.revisions import LEGACY
from mcp_django.testing import ACCEPT, CANCEL, DECLINE, Client, ProtocolFailure, Unanswered
from tests.asking import TALKATIVE, Talk, accepted
from tests.clients import CheckedClient
from tests.shop.models import Order
from tests.spec import requirement
from tests.transports.session_client import NumberForm

pytestmark = [pytest.mark.django_db, pytest.mark.client(capabilities=TALKATIVE)]


class ColorForm(forms.Form):
    color = forms.ChoiceField(choices=[("r", "Red"), ("b", "Blue")])


def create(ctx: mcp.Context) -> str:
    """Make an order, and ask for its number afterwards."""
    order = Order.objects.create(number="?")
    answer = ctx.ask("number", NumberForm, format_lazy("Which {}?", mark_safe("number")))
    order.number = answer["number"]
    order.save()
    return f"{order.number}{'!' if answer['urgent'] else ''}"


def remove(ctx: mcp.Context, number: str) -> str:
    """Delete an order."""
    order = Order.objects.get(number=number)
    ctx.confirm(f"Delete {order.number} of {order.total}?", digest=order.status)
    order.delete()
    return "Deleted."


@pytest.fixture
def offer(add_tool):
    """Offer a function that asks, and may write."""

    def offer(function, **options):
        add_tool(function, **{"read_only": False, "asks": True, **options})

    return offer


@pytest.fixture
def answering(staff):
    return lambda **answers: CheckedClient(user=staff, answers=answers)


# One question


@requirement("input:members", "elicitation:flat-form")
def test_a_question_ends_the_call_with_a_flat_form(offer, client):
    offer(create)

    asked = Talk.call(client, "create")

    assert asked.result["resultType"] == "input_required"
    number = {"title": "Order number", "type": "string", "minLength": 1, "maxLength": 5}
    properties = {"number": number, "urgent": {"title": "Urgent", "type": "boolean"}}
    schema = {"type": "object", "properties": properties, "required": ["number"]}
    params = {"mode": "form", "message": "Which number?", "requestedSchema": schema}
    assert asked.questions == {"number": {"method": "elicitation/create", "params": params}}
    assert asked.state


def visit(ctx: mcp.Context, url: str = "https://shop.example.com/pay") -> str:
    """Send the person to a page."""
    ctx.ask_url("page", url, "Pay there.")
    return "Paid."


@requirement("input:declined")
@pytest.mark.parametrize(
    ("answer", "said"), [(DECLINE, "The person declined."), (CANCEL, "closed the question")]
)
@pytest.mark.parametrize(("function", "key"), [(create, "number"), (visit, "page")])
def test_no_is_an_answer_that_ends_the_call(offer, answering, function, key, answer, said):
    offer(function)

    answer = answering(**{key: answer}).call_tool(function.__name__)

    assert answer.is_error
    assert said in answer.text
    assert not Order.objects.exists()


@pytest.mark.parametrize(("answer", "said"), [(DECLINE, "said no"), (CANCEL, "closed it")])
def test_a_tool_can_tell_no_from_a_closed_question_and_go_on(offer, answering, answer, said):
    def pick(ctx: mcp.Context) -> str:
        """Ask for a color, and then for another."""
        try:
            ctx.ask("color", ColorForm)
        except mcp.Declined as declined:
            ctx.ask("second", ColorForm)
            return "said no" if declined.is_explicit else "closed it"
        return "answered"

    offer(pick)

    assert answering(color=answer, second={"color": "r"}).call_tool("pick").text == said


@requirement("input:answers")
@pytest.mark.parametrize(
    "broken",
    [
        5, None, "accept", [], {}, {"action": "yes"}, {"action": "accept", "content": "A-1"},
        {"action": "accept"}, {"content": {"number": "A-1"}}, accepted(number=["A-1"]),
        accepted(number="far too long"),
    ],
)  # fmt: skip
def test_what_is_no_answer_to_the_form_is_never_taken_and_asked_for_again(offer, client, broken):
    offer(create)
    asked = Talk.call(client, "create")

    again = asked.answer({"number": broken, "color": accepted(number="A-1")})
    before = Order.objects.count()
    wanted = accepted(number="A-1", urgent=True, more=1)
    answered = again.answer({"number": wanted, "other": 5})

    # What was done before the question is undone.
    assert again.questions.keys() == {"number"}
    assert before == 0
    assert answered.text == "A-1!"
    assert [order.number for order in Order.objects.all()] == ["A-1"]


def count(ctx: mcp.Context) -> str:
    """Report, and ask."""
    ctx.progress(1)
    return ctx.ask("color", ColorForm)["color"]


def test_a_question_ends_a_stream_that_has_begun(offer, client, staff):
    offer(count)
    params = {"name": "count", "arguments": {}, "_meta": {"progressToken": "p"}}

    report, asked = client.send("tools/call", params)
    with pytest.raises(ProtocolFailure) as refused:
        CheckedClient(user=staff).send("tools/call", params)

    assert report["method"] == "notifications/progress"
    assert asked["result"]["resultType"] == "input_required"
    # The stream has begun with 200, so the error has nothing but its code.
    assert (refused.value.status, refused.value.code) == (200, -32021)


# Several


def steps(ctx: mcp.Context) -> str:
    """Ask for a number, and then for a color."""
    number = ctx.ask("number", NumberForm)["number"]
    color = ctx.ask("color", ColorForm, f"Which color has {number}?")["color"]
    Order.objects.create(number=f"{number}{color}")
    return f"{number} is {color}"


def at_once(ctx: mcp.Context) -> str:
    """Ask for three things at once."""
    with ctx.together():
        number = ctx.ask("number", NumberForm)
        word = ctx.sample("word", "Say a word.", max_tokens=5)
        roots = ctx.roots()
    return f"{number['number']} {word.text} {[root.uri for root in roots]}"


#: What no model was asked for.
NO_ANSWERS = [
    {"role": "nobody"},
    {"content": {"type": "image", "data": "no base64!", "mimeType": "image/png"}},
    {"content": {"type": "tool_use", "id": "1", "name": "x", "input": {}}},
    {"content": "text"},
]


def test_of_several_questions_only_those_without_an_answer_are_asked_again(
    offer, client, answering
):
    offer(at_once)

    asked = Talk.call(client, "at_once")
    again = asked.answer(
        {"number": accepted(number="A-1"), "roots": {"roots": [{"uri": "file:///a"}]}}
    )
    answer = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}
    wrong = [again.answer({"word": {**answer, **odd}}) for odd in NO_ANSWERS]
    declined = answering(number=DECLINE, word="hi", roots=[]).call_tool("at_once")

    methods = {key: question["method"] for key, question in asked.questions.items()}
    samples = {"word": "sampling/createMessage", "roots": "roots/list"}
    assert methods == {"number": "elicitation/create", **samples}
    assert {*again.questions} == {"word"}
    assert all({*one.questions} == {"word"} for one in wrong)
    assert wrong[-1].answer({"word": answer}).text == "A-1 hi ['file:///a']"
    assert "The person declined." in declined.text


# Models and folders of the client


def test_a_model_of_the_client_is_asked_with_what_the_tool_says(offer, client):
    def write(ctx: mcp.Context) -> str:
        """Have something written."""
        said = ctx.sample(
            "poem",
            ["Be short.", mcp.PromptMessage(role="assistant", content=mcp.Text("Yes."))],
            max_tokens=9,
            system_prompt="You rhyme.",
            temperature=0,
            stop_sequences=["."],
            preferences={"speedPriority": 1},
        )
        return f"{said.text} {said.model} {said.stop_reason} {len(said.content)}"

    offer(write)

    asked = Talk.call(client, "write")
    parts = [{"type": "text", "text": text} for text in "ab"]
    for kind, mime_type in (("image", "image/png"), ("audio", "audio/wav")):
        parts.append({"type": kind, "data": "AAAA", "mimeType": mime_type})
    answer = {"role": "assistant", "content": parts, "model": "m", "stopReason": "endTurn"}

    assert asked.questions["poem"]["params"] == {
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "Be short."}},
            {"role": "assistant", "content": {"type": "text", "text": "Yes."}},
        ],
        "maxTokens": 9,
        "systemPrompt": "You rhyme.",
        "temperature": 0,
        "stopSequences": ["."],
        "modelPreferences": {"speedPriority": 1},
    }
    assert asked.answer({"poem": answer}).text == "a\nb m endTurn 4"


# What a client can be asked


@requirement("input:declared", "envelope:capability-required")
@pytest.mark.parametrize(
    ("capabilities", "missing"),
    [
        ({}, {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}),
        ({"elicitation": {}, "roots": {}}, {"sampling": {}}),
        ({"elicitation": {"form": {}}, "sampling": {}}, {"roots": {}}),
        ({"elicitation": {"url": {}}, "sampling": {}, "roots": {}}, {"elicitation": {"form": {}}}),
        ({"elicitation": True, "sampling": {}, "roots": {}}, {"elicitation": {"form": {}}}),
    ],
)
def test_what_a_client_cannot_be_asked_is_named_to_it(offer, staff, capabilities, missing):
    offer(at_once)

    with pytest.raises(ProtocolFailure) as refused:
        CheckedClient(user=staff, capabilities=capabilities).call_tool("at_once")

    assert (refused.value.status, refused.value.code) == (400, -32021)
    assert refused.value.data == {"requiredCapabilities": missing}


@requirement("input:declared")
def test_a_tool_may_do_without_what_the_client_cannot_be_asked(offer, staff, answering, client):
    def pick(ctx: mcp.Context) -> str:
        """Ask for a color, or take red."""
        color = ctx.ask("color", ColorForm)["color"] if ctx.can_ask else "red"
        return f"{color} {ctx.can_sample} {ctx.can_list_roots}"

    offer(pick)

    assert CheckedClient(user=staff).call_tool("pick").text == "red False False"
    assert answering(color={"color": "b"}).call_tool("pick").text == "b True True"


@pytest.mark.parametrize("revision", LEGACY, ids=lambda one: one.value)
def test_a_client_without_a_session_is_told_what_to_use_instead(offer, staff, revision):
    offer(create)

    answer = CheckedClient(user=staff, revision=revision).call_tool("create")

    assert answer.is_error
    assert "Use a client that speaks MCP 2026-07-28, or one that keeps a session" in answer.text
    assert not Order.objects.exists()


# Pages


@requirement("input:members", "input:declared")
def test_a_page_is_a_question_too_for_clients_that_open_pages(offer, staff):
    offer(visit)
    client = CheckedClient(user=staff, capabilities={"elicitation": {"url": {}}})

    with pytest.raises(ProtocolFailure) as refused:
        CheckedClient(user=staff, capabilities={"elicitation": {}}).call_tool("visit")
    asked = Talk.call(client, "visit")

    assert refused.value.data == {"requiredCapabilities": {"elicitation": {"url": {}}}}
    page = {"mode": "url", "message": "Pay there.", "url": "https://shop.example.com/pay"}
    assert asked.questions == {"page": {"method": "elicitation/create", "params": page}}
    assert asked.answer({"page": {"action": "accept"}}).text == "Paid."


# Confirmations


@pytest.fixture
def order():
    return Order.objects.create(number="A-1", total=5)


@pytest.mark.parametrize(
    "answer",
    [
        {"action": "accept"}, accepted(), accepted(confirm="true"), accepted(confirm="yes"),
        accepted(confirm=1), accepted(confirm=None), accepted(yes=True),
    ],
)  # fmt: skip
def test_a_person_confirms_with_a_tick_and_is_asked_again_until_it_is_yes_or_no(
    offer, client, order, answer
):
    offer(remove)

    asked = Talk.call(client, "remove", number="A-1")
    again = asked.answer({"confirm": answer})
    before = Order.objects.count()
    answered = again.accept("confirm", confirm=True)

    assert asked.messages == {"confirm": "Delete A-1 of 5.00?"}
    schema = asked.questions["confirm"]["params"]["requestedSchema"]
    assert schema["properties"] == {"confirm": {"title": "Yes, do this", "type": "boolean"}}
    assert schema["required"] == ["confirm"]
    hint = "Tick the box if you agree, or decline."
    assert again.messages == {"confirm": f"Delete A-1 of 5.00?\n\n{hint}"}
    assert before == 1
    assert answered.text == "Deleted."
    assert not Order.objects.exists()


@pytest.mark.parametrize("change", [{"total": 500}, {"status": "paid"}])
def test_what_looks_different_by_now_is_confirmed_again(offer, client, order, add_tool, change):
    offer(remove)
    add_tool(create)
    schemas = {tool["name"]: tool["inputSchema"] for tool in client.list_tools()}
    asked = Talk.call(client, "remove", number="A-1")

    Order.objects.update(**change)
    again = asked.accept("confirm", confirm=True)

    assert again.result["resultType"] == "input_required"
    assert again.accept("confirm", confirm=True).text == "Deleted."
    # The argument for tokens is in the schema of what asks.
    assert schemas["remove"]["properties"]["confirmation"]["type"] == "string"
    assert schemas["remove"]["required"] == ["number"]
    assert schemas["create"]["properties"] == {}


def test_a_confirmation_may_be_asked_for_with_other_questions(offer, client):
    def pick(ctx: mcp.Context) -> str:
        """Ask for a color, and whether it may be used."""
        with ctx.together():
            answer = ctx.ask("color", ColorForm)
            ctx.confirm("Paint it?")
        return f"Painted {answer['color']}."

    offer(pick)

    asked = Talk.call(client, "pick")
    unticked = asked.answer({"confirm": accepted()})
    one = asked.accept("color", color="r")

    assert asked.questions.keys() == unticked.questions.keys() == {"color", "confirm"}
    assert one.questions.keys() == {"confirm"}
    assert one.accept("confirm", confirm=True).text == "Painted r."


# Mistakes of a site


@pytest.mark.parametrize("is_async", [False, True])
def test_a_tool_that_catches_everything_asks_all_the_same(offer, client, is_async):
    def careless(ctx: mcp.Context) -> str:
        """Catch everything."""
        Order.objects.create(number="A")
        with suppress(Exception):
            ctx.ask("color", ColorForm)
        return "Done."

    async def careless_later(ctx: mcp.Context) -> str:
        """Catch everything."""
        with suppress(Exception):
            await ctx.aask("color", ColorForm)
        return "Done."

    function = careless_later if is_async else careless
    offer(function)

    assert Talk.call(client, function.__name__).questions.keys() == {"color"}
    assert not Order.objects.exists()


class LoginForm(forms.Form):
    password = forms.CharField(widget=forms.PasswordInput)


LINK = mcp.PromptMessage(content=mcp.ResourceLink(uri="x://y", name="y"))
MISTAKES = {
    "1 to 64 characters": lambda ctx: ctx.ask("", ColorForm),
    "has 1 to 64 characters": lambda ctx: ctx.ask("x" * 65, ColorForm),
    "have the key 'color'": lambda ctx: (
        ctx.ask("color", ColorForm, "Yours?"),
        ctx.ask("color", ColorForm, "Mine?"),
    ),
    "confirms once": lambda ctx: (ctx.confirm("One?", key="one"), ctx.confirm("2?", key="two")),
    "cannot be asked for password": lambda ctx: ctx.ask("login", LoginForm),
    "has a credential": lambda ctx: visit(ctx, "https://shop.example.com/?token=abc"),
    "texts, pictures and sounds": lambda ctx: ctx.sample("link", [LINK], max_tokens=5),
}


@requirement("elicitation:no-secrets", "elicitation:secrets")
@pytest.mark.parametrize("said", MISTAKES)
def test_a_mistake_of_the_site_is_an_internal_error_that_the_log_tells_about(
    offer, answering, caplog, said
):
    def odd(ctx: mcp.Context) -> str:
        """Ask what cannot be asked."""
        return str(MISTAKES[said](ctx))

    offer(odd)
    client = answering(color={"color": "r"}, one={"confirm": True}, page=ACCEPT)

    with pytest.raises(ProtocolFailure, match="Internal error"):
        client.call_tool("odd")
    assert said in caplog.text


def test_a_tool_that_catches_everything_changes_nothing_without_a_confirmation(
    offer, staff, order
):
    def careless(ctx: mcp.Context) -> str:
        """Catch everything."""
        with suppress(Exception):
            ctx.confirm("Delete?")
        Order.objects.all().delete()
        return "Done."

    offer(careless)
    client = CheckedClient(user=staff)

    assert "confirmation" in client.call_tool("careless").data
    assert client.call_tool("careless", confirmation="made up").is_error
    assert Order.objects.exists()


@pytest.mark.parametrize("way", ["ask", "confirm", "sample", "roots", "together"])
def test_what_does_not_say_that_it_asks_cannot(add_tool, client, caplog, way):
    def sly(ctx: mcp.Context) -> str:
        """Ask without having said so."""
        ways = {
            "ask": lambda: ctx.ask("color", ColorForm),
            "confirm": lambda: ctx.confirm("Really?"),
            "sample": lambda: ctx.sample("word", "Say a word.", max_tokens=5),
            "roots": ctx.roots,
            "together": ctx.together,
        }
        return str(ways[way]())

    add_tool(sly)

    with pytest.raises(ProtocolFailure, match="Internal error"):
        client.call_tool("sly")
    assert "write @mcp.tool(asks=True)" in caplog.text


# Prompts and resources


def draft(ctx: mcp.Context, tone: str = "warm") -> str:
    """Draft a letter about an order."""
    return f"A {tone} letter about {ctx.ask('number', NumberForm, 'Which?')['number']}."


async def adraft(ctx: mcp.Context) -> str:
    """Draft a letter about an order."""
    return f"A letter about {(await ctx.aask('number', NumberForm, 'Which?'))['number']}."


@requirement("input:methods")
@pytest.mark.parametrize(("function", "word"), [(draft, "A warm"), (adraft, "A")])
def test_a_prompt_asks(add_prompt, answering, function, word):
    add_prompt(function, asks=True)

    client = answering(number={"number": "A-1"})
    messages = client.get_prompt(function.__name__)
    refused = answering(number=DECLINE).failure("prompts/get", name=function.__name__)

    assert messages[0]["content"]["text"] == f"{word} letter about A-1."
    assert client.questions["number"]["params"]["message"] == "Which?"
    assert "The person declined" in refused[1]


def report(ctx: mcp.Context, year: int) -> str:
    """What was sold in a year."""
    return f"{year} of {ctx.ask('number', NumberForm, 'Which?')['number']}"


async def areport(ctx: mcp.Context, year: int) -> str:
    """What was sold in a year."""
    return f"{year} of {(await ctx.aask('number', NumberForm, 'Which?'))['number']}"


@requirement("input:methods")
@pytest.mark.parametrize("function", [report, areport])
def test_a_resource_asks_also_where_a_tool_reads_it(add_resource, answering, function):
    add_resource("shop://asked/{year}", function, asks=True)
    client, uri = answering(number={"number": "A-1"}), "shop://asked/2026"

    for read in (
        client.request("resources/read", {"uri": uri}),
        client.data("read_resource", uri=uri),
    ):
        assert read["contents"][0]["text"] == "2026 of A-1"


def test_a_confirmation_of_a_resource_needs_a_client_that_can_be_asked(
    add_resource, staff, answering
):
    def confirmed(ctx: mcp.Context, year: int) -> str:
        """Show what a person wants to see."""
        ctx.confirm("Show it?")
        return str(year)

    add_resource("shop://asked/{year}", confirmed, asks=True)
    asked = {"uri": "shop://asked/2026"}

    code, _ = CheckedClient(user=staff).failure("resources/read", **asked)
    shown = answering(confirm={"confirm": True}).request("resources/read", asked)

    assert code == -32021
    assert shown["contents"][0]["text"] == "2026"


# The client of tests


def test_the_client_of_tests_answers_what_it_is_asked_and_says_what_it_has_no_answer_to(
    offer, staff, answering
):
    offer(steps)

    def answer(question):
        color = question["params"]["requestedSchema"]["properties"]["color"]
        return {"color": color["oneOf"][1]["const"]}

    answered = answering(number={"number": "A"}, color=answer).call_tool("steps")
    with pytest.raises(Unanswered, match="Asked for number: steps needs an answer") as asked:
        Client(user=staff, answers={}).call_tool("steps")

    assert answered.text == "A is b"
    assert asked.value.questions.keys() == {"number"}
