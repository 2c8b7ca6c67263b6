"""What a desk asks its assistant, with the calls and the text that the answers take."""

from __future__ import annotations

import pytest

#: Over all tasks: calls, and characters that the assistant receives.
MOST_CALLS, MOST_RECEIVED = 25, 30_000


@pytest.fixture(scope="module")
def solved(demo):
    return demo.ask("solve_tasks")


def test_every_task_is_solved_with_the_answer_of_the_orm(solved):
    wrong = [one for one in solved if one["answer"] != one["right"] or not one["answer"]]

    assert not wrong, wrong


def test_all_tasks_together_take_few_calls_and_little_text(solved):
    calls = sum(one["calls"] for one in solved)
    received = sum(one["received"] for one in solved)
    figures = {one["task"]: (one["calls"], one["received"]) for one in solved}

    told = f"{calls} calls and {received} characters for {len(solved)} tasks: {figures}"
    assert len(solved) == 13
    assert calls <= MOST_CALLS, told
    assert received <= MOST_RECEIVED, told
