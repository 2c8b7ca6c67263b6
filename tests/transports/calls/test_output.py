"""The pace of what a call says. What a call can show of the rest: test_call_messages.py."""

from __future__ import annotations

import msgspec
import pytest

from mcp_django.protocol.render import log_message, progress
from mcp_django.protocol.revisions import Revision
from mcp_django.transports.calls.output import PACE, Output
from tests.spec import requirement


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
def test_of_unsent_values_of_progress_the_last_and_highest_is_sent_at_its_pace(
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
def test_progress_does_not_wait_where_anything_comes_behind_it(output, push):
    output.add(progress("t", 1))
    taken(output)
    output.add(progress("t", 2))

    push(output)

    assert taken(output)[0] == 2


def test_what_runs_on_behind_the_answer_says_nothing_more(output):
    output.add(log_message("info", "before"))
    output.close()

    output.add(log_message("info", "after"))
    output.add(progress("t", 1))
    output.say(b'{"params": {"data": "of the transport"}}')

    assert taken(output) == ["before", "of the transport"]


@requirement("logging:secrets")
def test_twenty_log_messages_are_sent_in_a_second_and_one_of_them_counts_the_others(output, clock):
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
