from __future__ import annotations

import pytest

from mcp_django.exposure.prompts.stored import (
    add_version,
    difference,
    readable,
)
from tests.exposure import stored
from tests.exposure.races import together
from tests.exposure.stored import ORDER, TONE

pytestmark = pytest.mark.database


@pytest.mark.django_db(transaction=True)
def test_of_saves_at_once_each_becomes_a_version_with_a_number_of_its_own():
    template = stored.make_prompt("apple", "one")

    made = together(
        lambda number: add_version(template, stored.contents_of(f"by {number}")), count=4
    )

    versions = list(template.versions.order_by("number"))
    assert {one.number for one in made} == {2, 3, 4, 5}
    assert [one.number for one in versions] == [1, 2, 3, 4, 5]
    assert {one.messages[0]["text"] for one in versions[1:]} == {f"by {n}" for n in range(4)}


def test_a_difference_shows_lines_that_people_can_read():
    before = stored.contents_of("Hi\nthere", arguments=[TONE])
    after = stored.contents_of(
        "Hi\nyou",
        {"role": "assistant", "resource": "django://site"},
        arguments=[TONE, {**ORDER, "title": "Order", "description": "Which."}],
    )

    assert [*readable(before)] == [
        "argument tone: choice, optional",
        "  choice: warm",
        "  choice: firm",
        "user:",
        "  Hi",
        "  there",
    ]
    assert difference(before, after) == [
        "@@ -2,5 +2,10 @@",
        "   choice: warm",
        "   choice: firm",
        "+argument order: object, shop.order, required",
        "+  title: Order",
        "+  description: Which.",
        " user:",
        "   Hi",
        "-  there",
        "+  you",
        "+assistant:",
        "+  resource django://site",
    ]
    assert difference(before, before) == []
