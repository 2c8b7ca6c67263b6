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


def taken(output, revision=Revision.V2025_11_25):
    return [msgspec.json.decode(one)["params"] for one in output.take(revision)]


@requirement("progress:token")
def test_of_unsent_values_of_progress_the_last_is_sent(output):
    for value in (1, 2, 3):
        output.add(progress("t", value))

    assert taken(output) == [{"progressToken": "t", "progress": 3}]


@requirement("progress:token")
def test_progress_rises_also_where_the_call_counts_again(output, clock):
    output.add(progress("t", 2))
    first = taken(output)
    clock.now += PACE

    for value in (1, 2, 3):
        output.add(progress("t", value))

    assert [one["progress"] for one in (*first, *taken(output))] == [2, 3]


def test_progress_is_sent_at_once_and_then_at_its_pace(output, clock, later):
    output.add(progress("t", 1))
    first = taken(output)
    output.add(progress("t", 2))
    too_soon = taken(output)
    output.add(progress("t", 3))
    clock.now += PACE

    assert [one["progress"] for one in first] == [1]
    assert too_soon == []
    assert later == [PACE]
    assert [one["progress"] for one in taken(output)] == [3]


@pytest.mark.parametrize(
    "push",
    [
        lambda output: output.close(),
        lambda output: output.add(log_message("info", "x")),
        lambda output: output.say(b'{"params": "question"}'),
    ],
    ids=["answer", "log message", "question"],
)
def test_progress_does_not_wait_where_anything_comes_behind_it(output, push):
    output.add(progress("t", 1))
    taken(output)
    output.add(progress("t", 2))

    push(output)

    assert taken(output)[0] == {"progressToken": "t", "progress": 2}


@requirement("progress:message")
def test_the_oldest_revision_has_no_message_in_progress(output):
    output.add(progress("t", 1, message="x"))

    assert taken(output, Revision.V2024_11_05) == [{"progressToken": "t", "progress": 1}]


def test_what_is_said_keeps_its_order(output):
    output.add(progress("t", 1))
    output.add(log_message("info", "between"))
    output.add(progress("t", 2))

    assert [one.get("progress", "line") for one in taken(output)] == ["line", 2]


def test_what_runs_on_behind_the_answer_says_nothing_more(output):
    output.add(log_message("info", "before"))
    output.close()

    output.add(log_message("info", "after"))
    output.add(progress("t", 1))
    output.say(b'{"params": "of the transport"}')

    assert taken(output) == [{"level": "info", "data": "before"}, "of the transport"]


# Log messages


@requirement("logging:secrets")
def test_twenty_log_messages_are_sent_in_a_second_and_then_how_many_there_were(output, clock):
    for number in range(25):
        output.add(log_message("info", number))
    first = taken(output)

    clock.now += 0.9
    output.add(log_message("warning", "still in that second"))
    clock.now += 0.1
    output.add(log_message("info", "in the next"))

    assert [one["data"] for one in first] == list(range(20))
    assert taken(output) == [
        {"level": "warning", "data": "6 messages were left out: a call sends 20 in a second."},
        {"level": "info", "data": "in the next"},
    ]


def test_the_end_of_a_call_tells_how_many_messages_were_left_out(output):
    for number in range(21):
        output.add(log_message("info", number))

    output.close()
    output.close()

    assert [one["data"] for one in taken(output)][20:] == [
        "1 messages were left out: a call sends 20 in a second."
    ]


def test_the_line_about_messages_left_out_is_one_of_the_twenty(output, clock):
    for number in range(21):
        output.add(log_message("info", number))
    taken(output)

    clock.now += 1
    for number in range(25):
        output.add(log_message("info", number))

    assert len(taken(output)) == 20
