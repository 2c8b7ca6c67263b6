from __future__ import annotations

import pytest

import mcp_django as mcp
from mcp_django import signals
from mcp_django.models import CallRecord, ExposedTool
from tests.clients import over_asgi_and_wsgi

pytestmark = [pytest.mark.django_db, pytest.mark.client(record=True), over_asgi_and_wsgi]


def outcomes():
    return list(CallRecord.objects.order_by("pk").values_list("method", "outcome"))


# One tool


def test_a_tool_beyond_its_limit_says_when_to_try_again(client, clock, make_user):
    other = type(client)(user=make_user("other", is_staff=True))
    ExposedTool.objects.create(name="echo", calls_per_minute=2)
    ExposedTool.objects.create(name="echo_later", calls_per_minute=0)
    for _ in range(2):
        assert not client.call_tool("echo", text="x").is_error
    clock.now += 15

    third = client.call_tool("echo", text="x")

    assert third.is_error
    assert third.text == "echo may be called 2 times in a minute. Try again in 45 seconds."
    assert not client.call_tool("count_to", number=1).is_error
    assert [outcome for _, outcome in outcomes()] == ["done", "done", "limited", "done"]
    assert not other.call_tool("echo", text="x").is_error
    assert other.call_tool("echo_later", text="x").is_error
    clock.now += 46
    assert not client.call_tool("echo", text="x").is_error


def test_a_limit_tells_nobody_of_a_tool_that_is_not_there_for_them(client):
    ExposedTool.objects.create(name="pay", calls_per_minute=1)

    failures = [client.failure("tools/call", name="pay") for _ in range(3)]

    assert failures == [(-32602, "Unknown tool: pay")] * 3


def test_a_question_before_it_does_not_count_as_a_call_of_its_tool(client, staff, add_tool):
    def decide(ctx: mcp.Context) -> str:
        """Have a person agree."""
        ctx.confirm("Really?")
        return "Done."

    add_tool(decide, asks=True)
    ExposedTool.objects.create(name="decide", calls_per_minute=1)
    asking = type(client)(user=staff, answers={"confirm": {"confirm": True}})

    assert asking.call_tool("decide").text == "Done."
    assert "may be called 1 times" in asking.refusal("decide")


# Completion


def test_completions_have_a_limit_of_their_own(client, configure, clock):
    configure(COMPLETIONS_PER_MINUTE=2)
    asked = {
        "ref": {"type": "ref/resource", "uri": "django://models/{model}"},
        "argument": {"name": "model", "value": ""},
    }
    for _ in range(2):
        assert client.request("completion/complete", asked)

    failure = client.error("completion/complete", **asked)

    assert failure.message == "Too many completions. Try again in 60 seconds."
    assert failure.data == {"retryAfter": 60}
    assert not client.call_tool("echo", text="x").is_error
    assert outcomes()[2] == ("completion/complete", "limited")


# Failing


def test_who_only_fails_has_to_wait_method_by_method_and_is_told_so(client, configure, clock):
    configure(FAILURES_PER_MINUTE=3)
    client.call_tool("fail", kind="tool")
    client.call_tool("find_records", model="shop.order", filters={"margin": 1})
    client.error("tools/call", name="no_such_tool")

    answer = client.call_tool("echo", text="x")

    assert answer.is_error
    assert answer.text == "Too many calls have failed. Try again in 60 seconds."
    assert outcomes()[-1] == ("tools/call", "limited")
    # Another method has another count.
    assert client.read_resource("django://site")["models"]
    for pk in range(3):
        client.error("resources/read", uri=f"django://objects/shop.order/{pk}")
    failure = client.error("resources/read", uri="django://site")
    assert failure.message.startswith("Too many calls have failed.")
    assert failure.data == {"retryAfter": 60}
    clock.now += 61
    assert not client.call_tool("echo", text="x").is_error


def test_calls_that_work_crash_list_or_are_limited_are_no_failures(client, configure):
    configure(FAILURES_PER_MINUTE=1)
    ExposedTool.objects.create(name="echo", calls_per_minute=1)
    for _ in range(3):
        client.call_tool("echo", text="x")
    client.error("tools/call", name="fail", arguments={"kind": "bug"})
    client.error("tools/list", cursor="nonsense")

    assert not client.call_tool("count_to", number=1).is_error
    assert client.list_tools()


# All calls


@pytest.mark.parametrize("method", ["tools/list", "tools/call", "server/discover"])
def test_of_many_refusals_the_first_is_recorded_and_heard_of(
    client, configure, clock, hear, method
):
    configure(CALLS_PER_MINUTE=3)
    params = {"name": "echo", "arguments": {"text": "x"}} if method == "tools/call" else {}
    for _ in range(3):
        client.request(method, params)
    CallRecord.objects.all().delete()
    counts = []
    # On an event loop this would raise.
    heard = hear(signals.call_denied, lambda: counts.append(CallRecord.objects.count()))
    statuses = [client.error(method, **params).status for _ in range(5)]
    limited = CallRecord.objects.filter(outcome="limited")
    before = limited.count()
    clock.now += 61
    for _ in range(3):
        client.request(method, params)
    client.error(method, **params)

    assert statuses == [429] * 5
    assert [outcome for _, outcome in outcomes()][:1] == ["limited"]
    assert (before, limited.count()) == (1, 2)
    assert [record.outcome for record, _ in heard] == ["limited"] * 2
    assert counts[0] == 0
