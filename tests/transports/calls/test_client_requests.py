"""Questions of a running call as requests to a client with a session."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import pytest
from asgiref.sync import sync_to_async
from django import forms

import mcp_django as mcp
from mcp_django.exposure.registry import registry
from mcp_django.models import ExposedModel
from mcp_django.protocol.revisions import LEGACY, Revision
from mcp_django.stores.bounds import MOST_QUESTIONS
from mcp_django.stores.interface import Question, get_store
from mcp_django.stores.memory import MemoryStore
from mcp_django.subscriptions.outbox import publish
from mcp_django.subscriptions.topics import Change
from mcp_django.transports.calls import client_requests
from mcp_django.transports.sessions import LONGEST_ANSWER, session_topic
from tests.clients import CheckedClient
from tests.shop.models import Customer, Order
from tests.spec import requirement
from tests.transports.session_client import SessionClient, id_of, text_of
from tests.transports.wire import Connection, Gate, speaking
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]

LATEST = Revision.V2025_11_25
ASKED = [one for one in LEGACY if one.features.elicitation]
MUTE = [one for one in LEGACY if not one.features.elicitation]


class NumberForm(forms.Form):
    number = forms.CharField(max_length=5, label="Order number")
    urgent = forms.BooleanField(required=False)


class EverythingForm(forms.Form):
    color = forms.ChoiceField(choices=[("r", "Red"), ("b", "Blue")], initial="b")
    sizes = forms.MultipleChoiceField(choices=[("s", "Small"), ("l", "Large")], required=False)
    count = forms.IntegerField(min_value=1, max_value=9, initial=2)
    share = forms.FloatField(required=False)
    day = forms.DateField(required=False)
    mail = forms.EmailField(required=False, initial="a@example.com")
    page = forms.URLField(required=False, assume_scheme="https")
    sure = forms.BooleanField(required=False, initial=True)


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
    return answer["number"]


def remove(ctx: mcp.Context, number: str) -> str:
    """Delete an order."""
    order = Order.objects.get(number=number)
    ctx.confirm(f"Delete {order.number}?", digest=order.status)
    order.delete()
    return "Deleted."


@pytest.fixture
def offer(add_tool):
    """Offer a function that asks, and may write."""

    def offer(function, **options):
        add_tool(function, **{"read_only": False, "asks": True, **options})

    return offer


@pytest.fixture
def party(client):
    return partial(SessionClient.begin, client)


@pytest.fixture
def eve(make_user):
    return CheckedClient(user=make_user("eve", is_staff=True))


async def orders():
    return sorted([order.number async for order in Order.objects.all()])


# One question


@requirement("elicitation:form")
@pytest.mark.parametrize("revision", ASKED, ids=lambda one: one.value)
async def test_a_form_is_asked_for_in_the_words_of_the_revision(offer, party, revision):
    def pick(ctx: mcp.Context) -> str:
        """Ask for everything that can be asked."""
        return str(ctx.ask("all", EverythingForm, "Which?")["color"])

    offer(pick)
    person = await party(revision)
    call = await person.called("pick")

    question = await call.message()
    await person.accept(question, color="r", count=3)

    assert text_of(await call.message()) == "r"
    assert ("mode" in question["params"]) == revision.features.url_elicitation
    await call.end()


@pytest.mark.parametrize("function", [create, acreate])
async def test_what_was_done_before_a_question_is_undone_until_it_is_answered(
    offer, party, function
):
    offer(function)
    person = await party(LATEST)
    call = await person.called(function.__name__)

    question = await call.message()
    before = await orders()
    answered = await person.accept(question, number="A-7")

    assert before == []
    assert answered.status == 202
    assert text_of(await call.message()) == "A-7"
    assert await orders() == ["A-7"]
    await call.end()


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"result": {"action": "decline"}}, "The person declined."),
        ({"result": {"action": "cancel"}}, "closed the question"),
        ({"error": {"code": -1, "message": "No"}}, "closed the question"),
        ({"error": {"code": -32601, "message": "Method not found"}}, "closed the question"),
    ],
)
async def test_no_is_an_answer_that_ends_the_call(offer, party, said, sentence):
    offer(create)
    person = await party(LATEST)
    call = await person.called("create")

    question = await call.message()
    await person.post(id=question["id"], **said)

    answer = await call.message()
    assert answer["result"]["isError"]
    assert sentence in text_of(answer)
    assert await orders() == []
    await call.end()


@pytest.mark.parametrize(
    "result",
    [
        {"action": "accept", "content": {"number": "far too long"}},
        {"action": "accept", "content": {"number": {"a": 1}}},
        {"action": "accept", "content": []},
        {"action": "accept"},
        {"action": "perhaps"},
        {},
    ],
    ids=str,
)
async def test_what_is_no_answer_is_asked_for_again(offer, party, result):
    offer(create)
    person = await party(LATEST)
    call = await person.called("create")

    first = await call.message()
    await person.post(id=first["id"], result=result)
    second = await call.message()
    await person.accept(second, number="A-7")

    assert second["method"] == "elicitation/create"
    assert second["id"] != first["id"]
    assert text_of(await call.message()) == "A-7"
    await call.end()


@pytest.mark.thorough
async def test_the_time_that_answers_take_is_not_time_that_the_tool_runs(offer, party, configure):
    configure(TOOL_TIMEOUT=0.3)
    offer(create)
    person = await party(LATEST)
    call = await person.called("create")
    question = await call.message()

    # The limit of a job begins with it, so nothing of it is left behind.
    waits = asyncio.Event()
    asyncio.get_running_loop().call_later(0.5, waits.set)
    await waits.wait()
    await person.accept(question, number="A-7")

    assert text_of(await call.message()) == "A-7"
    await call.end()


# Answers that are none


@requirement("http:unknown-response", "client-requests:ids")
async def test_answers_that_nobody_asked_for_are_accepted_and_ignored(offer, party):
    offer(create)
    person, other = await party(LATEST), await party(LATEST)
    call = await person.called("create")
    question = await call.message()

    statuses = [
        (await person.post(id=wrong, result={"action": "decline"})).status
        for wrong in ("unknown", 7, "", "x" * 256, id_of(call))
    ]
    statuses.append((await other.accept(question, number="other")).status)
    statuses.append((await person.accept(question, number="A-7")).status)
    statuses.append((await person.accept(question, number="twice")).status)
    answer = await call.message()
    statuses.append((await person.accept(question, number="late")).status)

    assert set(statuses) == {202}
    assert text_of(answer) == "A-7"
    assert await orders() == ["A-7"]
    await call.end()


async def test_another_user_answers_nothing(offer, party, eve):
    offer(create)
    person = await party(LATEST)
    call = await person.called("create")
    question = await call.message()

    foreign = await SessionClient(speaking(eve, LATEST), person.id).accept(question, number="eve")
    await person.accept(question, number="A-7")

    assert foreign.status == 404
    assert text_of(await call.message()) == "A-7"
    await call.end()


async def test_an_answer_that_is_too_long_is_none(offer, party):
    offer(create)
    person = await party(LATEST)
    call = await person.called("create")

    question = await call.message()
    answered = await person.accept(question, number="x" * LONGEST_ANSWER)

    assert answered.status == 202
    assert "closed the question" in text_of(await call.message())
    await call.end()


async def test_an_answer_that_is_too_long_to_be_kept_for_the_next_ends_the_call(offer, party):
    class Long(forms.Form):
        text = forms.CharField()

    def twice(ctx: mcp.Context) -> str:
        """Ask for a long text, and then for a number."""
        ctx.ask("text", Long)
        return ctx.ask("number", NumberForm)["number"]

    offer(twice)
    person = await party(LATEST)
    call = await person.called("twice")

    question = await call.message()
    await person.accept(question, text="x" * (LONGEST_ANSWER - 1000))

    answer = await call.message()
    assert answer["result"]["isError"]
    assert text_of(answer).startswith("The answers so far are too long")
    await call.end()


@pytest.mark.thorough
async def test_a_flood_of_answers_hurts_nobody_else(offer, party, configure):
    configure(CALLS_PER_MINUTE=60)
    offer(create)
    person = await party(LATEST)
    call = await person.called("create")
    question = await call.message()

    flood = [person.post(id=f"{n}", result={}) for n in range(50)]
    statuses = [one.status for one in await asyncio.gather(*flood)]
    await person.accept(question, number="A-7")
    more = [(await person.post(id="x", result={})).status for _ in range(10)]

    assert set(statuses) == {202}
    assert text_of(await call.message()) == "A-7"
    assert more[-1] == 429
    await call.end()


async def test_what_a_client_with_a_session_sends_as_answers_in_its_request_has_no_effect(
    offer, party
):
    offer(create)
    person = await party(LATEST)
    call = await person.ask(
        "tools/call",
        name="create",
        arguments={},
        inputResponses={"number": {"action": "accept", "content": {"number": "forged"}}},
        requestState="forged",
    ).opened()

    question = await call.message()
    await person.accept(question, number="A-7")

    assert text_of(await call.message()) == "A-7"
    await call.end()


# Streams that are lost, clients that stay away


async def test_a_client_that_comes_back_is_asked_and_answered(offer, party):
    offer(create)
    person = await party(LATEST)
    call = await person.called("create")
    priming = await call.event()
    await call.message()
    await call.left()

    again = await person.get(priming.id)
    question = await again.message()
    await person.accept(question, number="A-7")

    assert text_of(await again.message()) == "A-7"
    await again.end()


async def test_an_answer_may_come_while_nobody_listens(offer, party):
    offer(create)
    person = await party(Revision.V2025_06_18)
    call = await person.called("create")
    asked = await call.event()
    await call.left()
    await person.accept(asked.message, number="A-7")

    again = await person.get(asked.id)

    assert text_of(await again.message()) == "A-7"
    await again.end()


@requirement("client-requests:timeout")
@pytest.mark.parametrize("function", [create, acreate])
async def test_a_client_that_never_answers_is_told_that_nobody_waits(
    offer, party, monkeypatch, function
):
    monkeypatch.setattr(client_requests, "PATIENCE", 0.05)
    offer(function)
    person = await party(LATEST)
    call = await person.called(function.__name__)

    question = await call.message()
    taken_back = await call.message()
    answer = await call.message()
    late = await person.accept(question, number="A-7")

    assert taken_back["method"] == "notifications/cancelled"
    assert taken_back["params"]["requestId"] == question["id"]
    assert answer["result"]["isError"]
    assert text_of(answer) == client_requests.TOO_LATE
    assert late.status == 202
    assert await orders() == []
    await call.end()


async def test_an_answer_that_nobody_told_of_is_found(offer, party, monkeypatch):
    """It came in a process whose messages do not get here."""
    monkeypatch.setattr(client_requests, "LOOK", 0.05)
    offer(create)
    person = await party(LATEST)
    call = await person.called("create")
    question = await call.message()
    data = b'{"result": {"action": "accept", "content": {"number": "A-7"}}}'

    kept = await sync_to_async(get_store().answer)(person.key, question["id"], data)

    assert kept
    assert text_of(await call.message()) == "A-7"
    await call.end()


async def test_a_session_that_ends_asks_no_more(offer, party):
    offer(create)
    person = await party(LATEST)
    call = await person.called("create")
    await call.message()

    await person.end()
    *_, answer = await call.rest()

    assert text_of(answer) == client_requests.ENDED
    assert await orders() == []
    await call.end()


async def test_a_client_that_left_before_it_was_asked_is_not_waited_for(offer, party, gate):
    """2025-06-18 has nothing yet to come back with."""

    def pick(ctx: mcp.Context) -> str:
        """Ask when the client has left."""
        gate.wait()
        return ctx.ask("number", NumberForm)["number"]

    offer(pick)
    person = await party(Revision.V2025_06_18)
    call = person.call("pick")
    call.start()
    await gate.until_reached()
    await call.left()
    gate.open()

    await until_free(person, id_of(call))


async def until_free(person, request_id):
    """Until a request with this id is not refused any more: the one before it is over."""
    async with asyncio.timeout(PATIENCE):
        while (await person.post(id=request_id, method="tools/list")).status == 400:
            await asyncio.to_thread(int)


class GatedStore(MemoryStore):
    """Waits where a question is kept."""

    gate = Gate()

    def ask(self, question):
        self.gate.wait()
        super().ask(question)


async def test_a_client_that_leaves_while_it_is_asked_is_not_waited_for(offer, party, configure):
    configure(STORE=f"{__name__}.GatedStore")
    offer(create)
    person = await party(Revision.V2025_06_18)
    call = person.call("create")
    call.start()
    await GatedStore.gate.until_reached()

    await call.left()
    GatedStore.gate.open()

    await until_free(person, id_of(call))
    assert call.sent == []


class ForgetfulStore(MemoryStore):
    """Keeps questions, and breaks when it is asked for answers."""

    def take_answer(self, question):
        raise RuntimeError("The store is gone.")


async def test_a_call_whose_store_is_gone_fails_for_a_client_that_comes_back_too(
    offer, party, configure
):
    configure(STORE=f"{__name__}.ForgetfulStore")
    offer(create)
    person = await party(LATEST)
    first, second = await person.called("create"), await person.called("create")
    await first.message()
    priming, question = await second.event(), await second.message()
    await second.left()

    await person.say(question, action="decline")
    publish({Change(topic=session_topic(person.key))})
    answers = [(await first.rest())[-1]]
    answers.append((await (await person.get(priming.id)).rest())[-1])

    for answer in answers:
        assert answer["error"]["code"] == -32603
        assert answer["error"]["message"] == "Internal error"
        assert len(answer["error"]["data"]["id"]) == 16
    assert await orders() == []


# Many


@pytest.mark.thorough
async def test_fifty_open_questions_leave_the_one_thread_of_the_lane_free(
    offer, party, configure, fresh_lanes, client
):
    configure(WORK_THREADS=1)
    offer(create)
    order = await Order.objects.acreate(number="old")
    person = await party(LATEST)

    calls = [await person.called("create") for _ in range(50)]
    questions = [await call.message() for call in calls]
    record = await person.call("get_record", model="shop.order", pk=order.pk).whole()
    for number, question in enumerate(questions):
        await person.accept(question, number=f"{number}")
    answers = [text_of(await call.message()) for call in calls]

    assert not record.json["result"]["isError"]
    assert answers == [f"{number}" for number in range(50)]
    assert len(await orders()) == 51
    for call in calls:
        await call.end()


@pytest.mark.thorough
async def test_more_questions_than_a_session_may_have_are_a_tool_error(offer, party):
    offer(create)
    person = await party(LATEST)
    key = person.key

    def fill():
        for number in range(MOST_QUESTIONS):
            get_store().ask(Question(session=key, id=f"q{number}", owner="x"))

    await sync_to_async(fill)()
    call = await person.call("create").whole()

    assert call.json["result"]["isError"]
    assert text_of(call.json) == client_requests.TOO_MANY


@pytest.mark.thorough
async def test_of_questions_of_which_one_is_too_many_none_is_asked(offer, party):
    def both(ctx: mcp.Context) -> str:
        """Ask for two numbers."""
        with ctx.together():
            ctx.ask("one", NumberForm)
            ctx.ask("two", NumberForm)
        return ""

    offer(both)
    person = await party(LATEST)
    key = person.key

    def fill():
        for number in range(MOST_QUESTIONS - 1):
            get_store().ask(Question(session=key, id=f"q{number}", owner="x"))

    await sync_to_async(fill)()
    call = await person.call("both").whole()

    assert text_of(call.json) == client_requests.TOO_MANY


async def test_questions_that_are_asked_together_are_answered_in_any_order(offer, party):
    def both(ctx: mcp.Context) -> str:
        """Ask for two numbers."""
        with ctx.together():
            one = ctx.ask("one", NumberForm, "First?")
            two = ctx.ask("two", NumberForm, "Second?")
        return f"{one['number']} {two['number']}"

    offer(both)
    person = await party(LATEST)
    call = await person.called("both")

    first, second = await call.message(), await call.message()
    await person.accept(second, number="2")
    await person.accept(first, number="1")

    assert text_of(await call.message()) == "1 2"
    await call.end()


async def test_questions_one_after_the_other_keep_the_answers_before(offer, party):
    def steps(ctx: mcp.Context) -> str:
        """Ask three times."""
        return "".join(ctx.ask(key, NumberForm, key)["number"] for key in "abc")

    offer(steps)
    person = await party(LATEST)
    call = await person.called("steps")

    for number in "123":
        await person.accept(await call.message(), number=number)

    assert text_of(await call.message()) == "123"
    await call.end()


# Who can be asked


@requirement("client-requests:declared")
@pytest.mark.parametrize("revision", MUTE, ids=lambda one: one.value)
async def test_the_first_revisions_ask_no_person(offer, party, revision):
    def look(ctx: mcp.Context) -> str:
        """Tell what can be asked."""
        return f"{ctx.can_ask} {ctx.can_ask_url} {ctx.can_sample} {ctx.can_list_roots}"

    offer(look)
    offer(create)
    person = await party(revision)

    looked = await person.call("look").whole()
    asked = await person.call("create").whole()

    assert text_of(looked.json) == "False False True True"
    assert "speaks MCP 2025-06-18 or newer" in text_of(asked.json)


@requirement("client-requests:declared")
@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}, {"sampling": {}}])
async def test_a_client_that_did_not_declare_it_is_not_asked(offer, party, capabilities):
    offer(create)
    person = await party(LATEST, capabilities)

    call = await person.call("create").whole()

    assert call.json["result"]["isError"]
    assert "it did not declare in its handshake" in text_of(call.json)


@requirement("lifecycle:quiet-before-initialized")
async def test_a_client_that_did_not_say_that_it_is_ready_is_not_asked(offer, party, monkeypatch):
    monkeypatch.setattr(client_requests, "READINESS", 0.05)
    offer(create)
    person = await party(LATEST, is_ready=False)

    call = await person.call("create").whole()

    assert text_of(call.json) == client_requests.UNREADY


@requirement("lifecycle:quiet-before-initialized")
async def test_a_client_may_say_that_it_is_ready_while_its_call_runs(offer, party):
    begun = threading.Event()

    def create_slowly(ctx: mcp.Context) -> str:
        """Make an order, as soon as the client is ready."""
        begun.set()
        return create(ctx)

    offer(create_slowly)
    person = await party(LATEST, is_ready=False)
    call = person.call("create_slowly")
    call.start()
    # The call has read the session, in which the client is not ready.
    assert await asyncio.to_thread(begun.wait, PATIENCE)

    await person.notify("notifications/initialized")
    await call.next()
    await person.accept(await call.message(), number="A-7")

    assert text_of(await call.message()) == "A-7"
    await call.end()


async def test_a_request_in_a_batch_cannot_ask(offer, party):
    def pick(ctx: mcp.Context) -> str:
        """Ask for the folders."""
        return str(len(ctx.roots()))

    offer(pick)
    person = await party(Revision.V2025_03_26)
    body = b'[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pick"}}]'
    headers = {"MCP-Protocol-Version": "2025-03-26", **person.headers}

    call = await Connection(person.client, body, headers=headers).whole()

    assert "sends no batches" in text_of(call.json[0])


# Everything else that asks


@pytest.mark.parametrize("revision", LEGACY, ids=lambda one: one.value)
async def test_a_model_of_the_client_and_its_folders_are_asked(offer, party, revision):
    def write(ctx: mcp.Context) -> str:
        """Ask the model, and for the folders."""
        line = ctx.sample("line", "Write a line.", max_tokens=5, temperature=0.5)
        return f"{line.text} {[one.uri for one in ctx.roots()]}"

    offer(write)
    person = await party(revision)
    call = await person.called("write")

    sampled = await call.message()
    block = {"type": "text", "text": "Roses"}
    await person.say(sampled, role="assistant", content=block, model="m")
    listed = await call.message()
    await person.say(listed, roots=[{"uri": "file:///home"}])

    assert (sampled["method"], listed["method"]) == ("sampling/createMessage", "roots/list")
    assert text_of(await call.message()) == "Roses ['file:///home']"
    await call.end()


async def test_the_first_revision_has_no_sounds_for_a_model(offer, party):
    def listen(ctx: mcp.Context) -> str:
        """Ask the model what it hears."""
        sound = mcp.PromptMessage(content=mcp.Audio(data=b"x", mime_type="audio/wav"))
        return ctx.sample("sound", [sound], max_tokens=5).text

    offer(listen)
    first, second = await party(Revision.V2024_11_05), await party(Revision.V2025_03_26)

    silent = await first.call("listen").whole()
    call = await second.called("listen")
    asked = await call.message()
    block = {"type": "text", "text": "A bell."}
    await second.say(asked, role="assistant", content=block, model="m")

    assert "speaks MCP 2025-03-26 or newer" in text_of(silent.json)
    assert asked["params"]["messages"][0]["content"]["type"] == "audio"
    assert text_of(await call.message()) == "A bell."
    await call.end()


async def test_a_client_that_refuses_to_sample_ends_the_call(offer, party):
    def write(ctx: mcp.Context) -> str:
        """Ask the model, and for the folders at once."""
        with ctx.together():
            ctx.sample("line", "Write a line.", max_tokens=5)
            ctx.roots()
        return ""

    offer(write)
    person = await party(LATEST)
    call = await person.called("write")

    sampled, listed = await call.message(), await call.message()
    await person.post(id=sampled["id"], error={"code": -1, "message": "User rejected"})
    taken_back, answer = await call.rest()

    assert taken_back["params"]["requestId"] == listed["id"]
    assert text_of(answer) == client_requests.REFUSED
    await call.end()


async def test_a_confirmation_is_good_for_one_call(offer, party):
    offer(remove)
    await Order.objects.acreate(number="A-1")
    person = await party(LATEST)

    call = await person.called("remove", number="A-1")
    question = await call.message()
    await person.accept(question, confirm=True)
    done = await call.message()
    await Order.objects.acreate(number="A-1")
    again = await person.called("remove", number="A-1")
    asked = await again.message()
    await person.accept(asked, confirm=False)

    assert question["params"]["message"] == "Delete A-1?"
    assert text_of(done) == "Deleted."
    assert asked["method"] == "elicitation/create"
    assert (await again.message())["result"]["isError"]
    assert await orders() == ["A-1"]
    await call.end()
    await again.end()


async def test_a_confirmation_is_asked_for_again_when_what_it_is_about_has_changed(offer, party):
    offer(remove)
    order = await Order.objects.acreate(number="A-1")
    person = await party(LATEST)
    call = await person.called("remove", number="A-1")
    question = await call.message()
    await Order.objects.filter(pk=order.pk).aupdate(status=Order.Status.PAID)

    await person.accept(question, confirm=True)
    again = await call.message()
    await person.accept(again, confirm=True)

    assert again["method"] == "elicitation/create"
    assert text_of(await call.message()) == "Deleted."
    await call.end()


@pytest.mark.parametrize("revision", ASKED, ids=lambda one: one.value)
@pytest.mark.parametrize("agrees", [True, False])
async def test_the_person_is_asked_before_a_record_is_deleted(make_user, revision, agrees):
    boss = await sync_to_async(make_user)("boss", is_staff=True, is_superuser=True)
    await ExposedModel.objects.acreate(label="shop.customer", level=5)
    customer = await Customer.objects.acreate(name="Ada")
    client = await sync_to_async(CheckedClient)(user=boss)
    person = await SessionClient.begin(client, revision)
    call = await person.called("delete_record", model="shop.customer", pk=customer.pk)

    question = await call.message()
    yes, no = {"action": "accept", "content": {"confirm": True}}, {"action": "decline"}
    await person.say(question, **(yes if agrees else no))
    answer = await call.message()

    assert question["method"] == "elicitation/create"
    assert question["params"]["message"].startswith("Delete this customer? 1 record: ")
    assert await Customer.objects.acount() == (0 if agrees else 1)
    assert ("The person declined. Nothing was done." in text_of(answer)) is not agrees
    await call.end()


def draft(ctx: mcp.Context) -> str:
    """Draft a letter about an order."""
    return f"About {ctx.ask('number', NumberForm, 'Which?')['number']}."


async def test_a_prompt_asks_and_a_refusal_is_an_error(add_prompt, party):
    add_prompt(draft, asks=True)
    person = await party(LATEST)
    call = await person.ask("prompts/get", name="draft").opened()
    await person.accept(await call.message(), number="A-1")
    answer = await call.message()
    no = await person.ask("prompts/get", name="draft").opened()
    await person.say(await no.message(), action="decline")

    assert answer["result"]["messages"][0]["content"]["text"] == "About A-1."
    assert (await no.message())["error"]["code"] == -32602
    await call.end()
    await no.end()


async def test_a_prompt_that_nobody_answers_is_an_error_but_none_of_ours(
    add_prompt, party, monkeypatch
):
    monkeypatch.setattr(client_requests, "PATIENCE", 0.05)
    add_prompt(draft, asks=True)
    person = await party(LATEST)

    call = await person.ask("prompts/get", name="draft").whole()

    assert call.messages[-1]["error"] == {"code": -32602, "message": client_requests.TOO_LATE}


async def test_a_resource_asks(party):
    def report(ctx: mcp.Context, year: int) -> str:
        """What was sold in a year."""
        return f"{year} of {ctx.ask('number', NumberForm, 'Which?')['number']}"

    mcp.resource("shop://asked/{year}", asks=True)(report)
    try:
        person = await party(LATEST)
        call = await person.ask("resources/read", uri="shop://asked/2026").opened()
        await person.accept(await call.message(), number="A-1")

        answer = await call.message()
        await call.end()
    finally:
        registry.remove_resource("shop://asked/{year}")

    assert answer["result"]["contents"][0]["text"] == "2026 of A-1"


# Pages


def pay_online(ctx: mcp.Context) -> str:
    """Let a person pay."""
    ctx.ask_url("pay", "https://shop.example.com/pay/7", "Pay order 7.")
    return "Paid."


async def apay_online(ctx: mcp.Context) -> str:
    """Let a person pay."""
    await ctx.aask_url("pay", "https://shop.example.com/pay/7")
    return "Paid."


@pytest.mark.parametrize("function", [pay_online, apay_online])
async def test_a_person_is_sent_to_a_page(offer, party, function):
    offer(function)
    person = await party(LATEST)
    call = await person.called(function.__name__)

    question = await call.message()
    await person.say(question, action="accept")

    params = question["params"]
    assert (params["mode"], params["url"]) == ("url", "https://shop.example.com/pay/7")
    assert params["elicitationId"] == question["id"]
    assert params["message"] in ("Pay order 7.", "apay_online needs you to open a page.")
    assert text_of(await call.message()) == "Paid."
    await call.end()


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_may_not_want_to_see_the_page(offer, party, action):
    offer(pay_online)
    person = await party(LATEST)
    call = await person.called("pay_online")

    await person.say(await call.message(), action=action)

    assert (await call.message())["result"]["isError"]
    await call.end()


@requirement("elicitation:url-required")
@pytest.mark.parametrize(
    ("revision", "capabilities", "sentence"),
    [
        (LATEST, {"elicitation": {}}, "did not declare"),
        (LATEST, {"elicitation": {"form": {}}}, "did not declare"),
        (Revision.V2025_06_18, None, "speaks MCP 2025-11-25 or newer"),
        (Revision.V2024_11_05, None, "speaks MCP 2025-11-25 or newer"),
    ],
)
async def test_a_client_that_did_not_declare_pages_is_sent_to_none(
    offer, party, revision, capabilities, sentence
):
    def look(ctx: mcp.Context) -> str:
        """Tell what can be asked."""
        return str(ctx.can_ask_url)

    offer(look)
    offer(pay_online)
    person = await party(revision, capabilities)

    looked = await person.call("look").whole()
    call = await person.call("pay_online").whole()

    assert text_of(looked.json) == "False"
    assert sentence in text_of(call.json)
