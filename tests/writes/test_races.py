"""Two writers at once, each in a thread and a connection of its own."""

from __future__ import annotations

import pytest

from tests.clients import CheckedClient
from tests.exposure.races import together
from tests.workshop.models import Tag, Thing

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.database]


@pytest.fixture
def clients(boss):
    """The token is made before any thread begins."""
    token = CheckedClient(user=boss).token
    return [CheckedClient(token=token, inline=False) for _ in range(4)]


@pytest.mark.thorough
def test_writers_of_different_fields_lose_nothing_of_each_other(clients, thing, snapshot):
    before = snapshot(thing)
    wanted = [{"title": "new"}, {"count": 7}, {"tags": {"set": []}}, {"note": "other"}]

    answers = together(
        lambda number: clients[number].call_tool(
            "update_record", model="workshop.thing", pk=thing.pk, values=wanted[number]
        ),
        count=4,
    )

    assert [answer.is_error for answer in answers] == [False] * 4
    assert snapshot(thing) == {
        **before, "title": "new", "count": 7, "tags": [], "note": "other",
    }  # fmt: skip


@pytest.mark.thorough
def test_of_two_writers_with_one_version_one_is_refused(clients, thing):
    record = clients[0].call_tool("get_record", model="workshop.thing", pk=thing.pk).data

    answers = together(
        lambda number: clients[number].call_tool(
            "update_record", model="workshop.thing", pk=thing.pk,
            values={"title": f"of {number}"}, version=record["_version"],
        )
    )  # fmt: skip

    assert sorted(answer.is_error for answer in answers) == [False, True]
    refused = next(answer for answer in answers if answer.is_error)
    assert "changed after you read it" in refused.text
    winner = next(number for number, answer in enumerate(answers) if not answer.is_error)
    assert Thing.objects.get().title == f"of {winner}"


def test_of_two_calls_with_one_key_one_creates(clients, db):
    answers = together(
        lambda number: clients[number].call_tool(
            "create_record", model="workshop.tag", values={"name": "x"}, idempotency_key="k"
        )
    )

    assert [answer.is_error for answer in answers] == [False, False]
    assert answers[0].data == answers[1].data
    assert Tag.objects.count() == 1


def test_a_confirmation_that_is_used_twice_at_once_deletes_once(clients, tags):
    keys = [tag.pk for tag in tags[:2]]
    preview = clients[0].call_tool("delete_record", model="workshop.tag", pk=keys)
    token = preview.data["confirmation"]

    answers = together(
        lambda number: clients[number].call_tool(
            "delete_record", model="workshop.tag", pk=keys, confirmation=token
        )
    )

    assert sorted(answer.is_error for answer in answers) == [False, True]
    assert Tag.objects.count() == 1


def test_two_creations_of_what_must_be_unique_make_one(clients, db):
    values = {"title": "T", "group": "g", "number": 1}

    answers = together(
        lambda number: clients[number].call_tool(
            "create_record", model="workshop.thing", values=values
        )
    )

    assert sorted(answer.is_error for answer in answers) == [False, True]
    refused = next(answer for answer in answers if answer.is_error)
    assert refused.text.startswith("Nothing was saved")
    assert Thing.objects.count() == 1
