"""Questions of a running call as requests to a client with a session."""

from __future__ import annotations

import asyncio
import threading

import pytest
from asgiref.sync import sync_to_async
from django import forms

import mcp_django as mcp
from mcp_django.protocol.revisions import LEGACY
from mcp_django.stores import sessions as store_of_sessions
from mcp_django.stores.sessions import get_store
from mcp_django.transports import client_requests
from mcp_django.transports.sessions import LONGEST_ANSWER
from tests.shop.models import Order
from tests.spec import requirement
from tests.transports.session_client import NumberForm, id_of, text_of
from tests.transports.wire import Connection
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]

_, V2503, V2506, LATEST = LEGACY
ASKED = [revision for revision in LEGACY if revision.features.elicitation]
CLOSED = "closed the question"


class TextForm(forms.Form):
    text = forms.CharField()


def create(ctx: mcp.Context) -> str:
    """Make an order, and ask for its number afterwards."""
    order = Order.objects.create(number="?")
    answer = ctx.ask("number", NumberForm, "Which number?")
    order.number = answer["number"]
    order.save()
    return f"{order.number}{'!' if answer['urgent'] else ''}"


async def acreate(ctx: mcp.Context) -> str:
    """Ask for a number, and make its order."""
    answer = await ctx.aask("number", NumberForm, "Which number?")
    await Order.objects.acreate(number=answer["number"])
    return f"{answer['number']}{'!' if answer['urgent'] else ''}"


def steps(ctx: mcp.Context) -> str:
    """Ask for a text, and then for numbers."""
    text = ctx.ask("text", TextForm)["text"]
    return text + "".join(ctx.ask(key, NumberForm, key)["number"] for key in "ab")


def write(ctx: mcp.Context) -> str:
    """Ask the model, and for the folders at once."""
    with ctx.together():
        line = ctx.sample("line", "Write a line.", max_tokens=5, temperature=0.5)
        roots = ctx.roots()
    return f"{line.text} {[root.uri for root in roots]}"


def pay_online(ctx: mcp.Context) -> str:
    """Let a person pay."""
    ctx.ask_url("pay", "https://shop.example.com/pay/7", "Pay order 7.")
    return "Paid."


#: Options of a tool that asks and may write.
ASKS = {"read_only": False, "asks": True}


@pytest.fixture
def asked(add_tool, party):
    """The client of a call that asks, the call and its first question."""

    async def ask(function, revision=LATEST, **arguments):
        add_tool(function, **ASKS)
        person = await party(revision)
        call = await person.called(function.__name__, **arguments)
        return person, call, await call.message()

    return ask


async def answer_to(call):
    """The last message of a call."""
    answer = await call.message()
    await call.end()
    return answer


async def orders():
    return sorted([order.number async for order in Order.objects.all()])


# One question


@requirement("elicitation:form")
@pytest.mark.parametrize("function", [create, acreate])
@pytest.mark.parametrize("revision", ASKED, ids=lambda revision: revision.value)
async def test_a_form_is_asked_for_in_the_words_of_the_revision_and_holds_up_nothing_until_then(
    asked, configure, fresh_lanes, revision, function
):
    configure(WORK_THREADS=1)
    person, call, question = await asked(function, revision)

    echo = await person.call("echo", text="x").whole()
    before = await orders()
    answered = await person.accept(question, number="A-7", urgent=True)

    assert not echo.json["result"]["isError"]
    assert before == []
    assert ("mode" in question["params"]) == revision.features.url_elicitation
    assert answered.status == 202
    assert text_of(await answer_to(call)) == "A-7!"
    assert await orders() == ["A-7"]


LONG = {"action": "accept", "content": {"text": "x" * (LONGEST_ANSWER - 1000)}}


@pytest.mark.parametrize(
    ("function", "said", "sentence"),
    [
        (create, {"result": {"action": "decline"}}, "The person declined."),
        (create, {"error": {"code": -32601, "message": "Method not found"}}, CLOSED),
        (create, {"result": {"a": "x" * LONGEST_ANSWER}}, CLOSED),
        (steps, {"result": LONG}, "The answers so far are too long"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)[:30]),
)
async def test_no_is_an_answer_that_ends_the_call_and_so_is_one_that_is_too_long(
    asked, function, said, sentence
):
    person, call, question = await asked(function)

    answered = await person.post(id=question["id"], **said)

    answer = await answer_to(call)
    assert answered.status == 202
    assert answer["result"]["isError"]
    assert sentence in text_of(answer)
    assert await orders() == []


# Answers that are none


@requirement("http:unknown-response", "client-requests:ids")
async def test_answers_that_nobody_asked_for_are_accepted_and_ignored(add_tool, party):
    add_tool(create, **ASKS)
    person, other = await party(LATEST), await party(LATEST)
    # A client with a session sends no answers in its request.
    forged = {"number": {"action": "accept", "content": {"number": "forged"}}}
    answers = {"inputResponses": forged, "requestState": "forged"}
    call = await person.ask("tools/call", name="create", arguments={}, **answers).opened()
    question = await call.message()

    statuses = [
        (await person.post(id=wrong, result={"action": "decline"})).status
        for wrong in ("unknown", 7, "", "x" * 256, id_of(call))
    ]
    for client, number in ((other, "other"), (person, "A-7"), (person, "twice")):
        statuses.append((await client.accept(question, number=number)).status)
    answer = await answer_to(call)
    statuses.append((await person.accept(question, number="late")).status)

    assert set(statuses) == {202}
    assert text_of(answer) == "A-7"
    assert await orders() == ["A-7"]


# Streams that are lost, clients that stay away


@pytest.mark.parametrize(("revision", "is_asked_again"), [(LATEST, True), (V2506, False)])
async def test_a_client_that_comes_back_is_asked_and_answered_also_if_it_answered_meanwhile(
    add_tool, party, revision, is_asked_again
):
    add_tool(create, **ASKS)
    person = await party(revision)
    call = await person.called("create")
    # The first event of 2025-11-25 has no message, and that of 2025-06-18 is the question.
    event = await call.event()
    await call.left()

    if not is_asked_again:
        await person.accept(event.message, number="A-7")
    again = await person.get(event.id)
    if is_asked_again:
        await person.accept(await again.message(), number="A-7")

    assert text_of(await answer_to(again)) == "A-7"


@requirement("client-requests:timeout")
@pytest.mark.parametrize("is_late", [True, False], ids=["never answered", "taken back"])
async def test_a_question_is_over_when_nobody_answers_it_and_with_its_call(
    asked, monkeypatch, is_late
):
    monkeypatch.setattr(client_requests, "PATIENCE", 0.05 if is_late else PATIENCE)
    person, call, question = await asked(create)

    if not is_late:
        await person.notify("notifications/cancelled", requestId=id_of(call))
    taken_back, *answers = await call.rest()
    late = await person.accept(question, number="A-7")

    assert taken_back["method"] == "notifications/cancelled"
    assert taken_back["params"]["requestId"] == question["id"]
    assert [answer["result"]["isError"] for answer in answers] == [True] * is_late
    assert [text_of(answer) for answer in answers] == [client_requests.TOO_LATE] * is_late
    assert late.status == 202
    assert await orders() == []
    await call.end()


async def test_an_answer_that_nobody_told_of_is_found(asked, monkeypatch):
    """It came in a process whose messages do not get here."""
    monkeypatch.setattr(client_requests, "LOOK", 0.05)
    person, call, question = await asked(create)
    data = b'{"result": {"action": "accept", "content": {"number": "A-7"}}}'

    await sync_to_async(get_store().answer)(person.key, question["id"], data)

    assert text_of(await answer_to(call)) == "A-7"


@pytest.mark.parametrize("when", ["before it is asked", "while it is asked"])
async def test_a_client_that_leaves_unasked_is_not_waited_for(
    add_tool, party, gate, monkeypatch, when
):
    """2025-06-18 has nothing yet to come back with."""
    keep = get_store().ask

    def ask_late(ctx: mcp.Context) -> str:
        """Ask when the client has left."""
        if when == "before it is asked":
            gate.wait()
        else:
            monkeypatch.setattr(
                get_store(), "ask", lambda *asked, **by: (gate.wait(), keep(*asked, **by))
            )
        return ctx.ask("number", NumberForm)["number"]

    add_tool(ask_late, **ASKS)
    person = await party(V2506)
    call = await gate.held(person.call("ask_late"))

    await call.left()
    gate.open()

    # A request with this id is not refused any more: the one before it is over.
    async with asyncio.timeout(PATIENCE):
        while (await person.post(id=id_of(call), method="tools/list")).status == 400:
            await asyncio.to_thread(int)
    assert call.sent == []


async def test_a_call_whose_store_is_gone_fails_and_one_whose_session_ends_asks_no_more(
    asked, monkeypatch
):
    person, call, _ = await asked(create)
    await person.end()
    *_, ended = await call.rest()
    other, call, question = await asked(acreate)
    monkeypatch.delattr(type(get_store()), "take_answer")

    await other.say(question, action="decline")

    *_, answer = await call.rest()
    assert text_of(ended) == client_requests.ENDED
    assert (answer["error"]["code"], answer["error"]["message"]) == (-32603, "Internal error")
    assert await orders() == []


# Many


@pytest.mark.parametrize(
    ("function", "most"), [(create, 0), (write, 1)], ids=["none", "one of two"]
)
async def test_more_questions_than_a_session_may_have_are_a_tool_error_and_not_asked(
    add_tool, party, monkeypatch, function, most
):
    monkeypatch.setattr(store_of_sessions, "MOST_QUESTIONS", most)
    add_tool(function, **ASKS)
    person = await party(LATEST)

    call = await person.call(function.__name__).whole()

    assert call.json["result"]["isError"]
    assert text_of(call.json) == client_requests.TOO_MANY


# Who can be asked


@requirement("client-requests:declared", "elicitation:url-required")
@pytest.mark.parametrize(
    ("revision", "options", "function", "sentence"),
    [
        (V2503, {}, create, "speaks MCP 2025-06-18 or newer"),
        (LATEST, {"capabilities": {}}, create, "it did not declare in its handshake"),
        (LATEST, {"capabilities": {"elicitation": {}}}, pay_online, "did not declare"),
        (V2506, {}, pay_online, "speaks MCP 2025-11-25 or newer"),
        (LATEST, {"is_ready": False}, create, client_requests.UNREADY),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)[:30]),
)
async def test_a_client_is_not_asked_before_it_is_ready_for_what_it_declared_and_its_revision_has(
    add_tool, party, monkeypatch, revision, options, function, sentence
):
    monkeypatch.setattr(client_requests, "READINESS", 0.05)
    add_tool(function, **ASKS)
    person = await party(revision, **options)

    call = await person.call(function.__name__).whole()

    assert call.json["result"]["isError"]
    assert sentence in text_of(call.json)


@requirement("lifecycle:quiet-before-initialized")
async def test_a_client_may_say_that_it_is_ready_while_its_call_runs(add_tool, party):
    begun = threading.Event()

    def create_slowly(ctx: mcp.Context) -> str:
        """Make an order, as soon as the client is ready."""
        begun.set()
        return create(ctx)

    add_tool(create_slowly, **ASKS)
    person = await party(LATEST, is_ready=False)
    call = person.call("create_slowly")
    call.start()
    # The call has read the session, in which the client is not ready.
    assert await asyncio.to_thread(begun.wait, PATIENCE)

    await person.notify("notifications/initialized")
    await call.next()
    await person.accept(await call.message(), number="A-7")

    assert text_of(await answer_to(call)) == "A-7"


async def test_a_request_in_a_batch_cannot_ask(add_tool, party):
    add_tool(write, **ASKS)
    person = await party(V2503)
    body = b'[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write"}}]'
    headers = {"MCP-Protocol-Version": "2025-03-26", **person.headers}

    call = await Connection(person.client, body, headers=headers).whole()

    assert "sends no batches" in text_of(call.json[0])


# Everything else that asks


@pytest.mark.parametrize("revision", LEGACY, ids=lambda revision: revision.value)
async def test_a_model_of_the_client_and_its_folders_are_asked_together_and_answer_in_any_order(
    asked, revision
):
    person, call, sampled = await asked(write, revision)
    listed = await call.message()

    await person.say(listed, roots=[{"uri": "file:///home"}])
    block = {"type": "text", "text": "Roses"}
    await person.say(sampled, role="assistant", content=block, model="m")

    assert (sampled["method"], listed["method"]) == ("sampling/createMessage", "roots/list")
    assert text_of(await answer_to(call)) == "Roses ['file:///home']"


async def test_what_was_asked_together_with_what_is_refused_is_taken_back(asked):
    person, call, sampled = await asked(write)
    listed = await call.message()

    await person.post(id=sampled["id"], error={"code": -1, "message": "User rejected"})

    taken_back, answer = await call.rest()
    assert taken_back["params"]["requestId"] == listed["id"]
    assert text_of(answer) == client_requests.REFUSED


async def test_a_person_is_sent_to_a_page(asked):
    person, call, question = await asked(pay_online)

    await person.say(question, action="accept")

    params = question["params"]
    assert (params["mode"], params["url"]) == ("url", "https://shop.example.com/pay/7")
    assert params["elicitationId"] == question["id"]
    assert params["message"] == "Pay order 7."
    assert text_of(await answer_to(call)) == "Paid."


@pytest.mark.parametrize(
    ("answers", "message"), [(True, "The person declined."), (False, client_requests.TOO_LATE)]
)
async def test_a_prompt_that_is_not_answered_is_an_error_but_none_of_ours(
    add_prompt, party, monkeypatch, answers, message
):
    monkeypatch.setattr(client_requests, "PATIENCE", PATIENCE if answers else 0.05)
    add_prompt(pay_online, asks=True)
    person = await party(LATEST)
    call = await person.ask("prompts/get", name="pay_online").opened()

    question = await call.message()
    if answers:
        await person.say(question, action="decline")

    *_, answer = await call.rest()
    assert answer["error"]["code"] == -32602
    assert message in answer["error"]["message"]


@pytest.mark.thorough
async def test_the_time_that_answers_take_is_not_time_that_the_tool_runs(asked, configure):
    configure(TOOL_TIMEOUT=0.3)
    person, call, question = await asked(create)

    # The limit of a job begins with it, so nothing of it is left behind.
    waits = asyncio.Event()
    asyncio.get_running_loop().call_later(0.5, waits.set)
    await waits.wait()
    await person.accept(question, number="A-7")

    assert text_of(await answer_to(call)) == "A-7"


@pytest.mark.thorough
async def test_a_flood_of_answers_hurts_nobody_else(asked, configure):
    configure(CALLS_PER_MINUTE=60)
    person, call, question = await asked(create)

    flood = [person.post(id=f"{number}", result={}) for number in range(50)]
    statuses = [answer.status for answer in await asyncio.gather(*flood)]
    await person.accept(question, number="A-7")
    more = [(await person.post(id="x", result={})).status for _ in range(10)]

    assert set(statuses) == {202}
    assert text_of(await answer_to(call)) == "A-7"
    assert more[-1] == 429
