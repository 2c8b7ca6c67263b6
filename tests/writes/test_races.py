"""Two writers at once, each in a thread and a connection of its own."""

from __future__ import annotations

import pytest

from tests.clients import CheckedClient
from tests.exposure.races import together
from tests.workshop.models import Tag, Thing
from tests.writes.calls import names

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.database]


@pytest.fixture
def race(superuser):
    """Make these calls of a tool at once. Returns the answers, those of refused calls last."""
    # The token is made before any thread begins.
    token = CheckedClient(user=superuser).token
    clients = [CheckedClient(token=token, inline=False) for _ in range(4)]

    def race(tool, *calls):
        answers = together(
            lambda number: clients[number].call_tool(tool, **calls[number]), count=len(calls)
        )
        return sorted(answers, key=lambda answer: answer.is_error)

    return race


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("changes", "after"),
    [
        (
            [{"title": "new"}, {"count": 7}, {"tags": {"set": []}}, {"note": "other"}],
            {"title": "new", "count": 7, "tags": [], "note": "other"},
        ),
        (
            [
                {"tags": {"add": ["green"]}},
                {"tags": {"add": ["old"]}},
                {"tags": {"remove": ["red"]}},
                {"tags": {"remove": ["blue"]}},
            ],
            {"tags": ["green", "old"]},
        ),
    ],
    ids=["fields", "members"],
)
def test_writers_at_once_lose_nothing_of_each_other(race, thing, snapshot, changes, after):
    Tag.objects.create(name="green")
    before = snapshot(thing)

    answers = race(
        "update_record",
        *({"model": "workshop.thing", "pk": thing.pk, "values": values} for values in changes),
    )

    assert [answer.is_error for answer in answers] == [False] * 4
    assert {**snapshot(thing), "tags": names(thing)} == {**before, **after}


@pytest.mark.thorough
def test_of_two_writers_with_one_version_one_is_refused(race, client, thing):
    read = {"model": "workshop.thing", "pk": thing.pk}
    version = client.data("get_record", **read)["_version"]

    done, refused = race(
        "update_record",
        *({**read, "values": {"title": title}, "version": version} for title in "ab"),
    )

    assert [done.is_error, refused.is_error] == [False, True]
    assert "changed after you read it" in refused.text
    assert Thing.objects.get().title == done.data["changed"]["title"][1]


def test_of_two_calls_with_one_key_one_creates(race, db):
    call = {"model": "workshop.tag", "values": {"name": "x"}, "idempotency_key": "k"}

    first, second = race("create_record", call, call)

    assert [first.is_error, second.is_error] == [False, False]
    assert first.data == second.data
    assert Tag.objects.count() == 1


def test_a_confirmation_that_is_used_twice_at_once_deletes_once(race, client, tags):
    call = {"model": "workshop.tag", "pk": [tag.pk for tag in tags[:2]]}
    call["confirmation"] = client.data("delete_record", **call)["confirmation"]

    answers = race("delete_record", call, call)

    assert [answer.is_error for answer in answers] == [False, True]
    assert Tag.objects.count() == 1


def test_two_creations_of_what_must_be_unique_make_one(race, db):
    call = {"model": "workshop.thing", "values": {"title": "T", "group": "g", "number": 1}}

    done, refused = race("create_record", call, call)

    assert [done.is_error, refused.is_error] == [False, True]
    assert refused.text.startswith("Nothing was saved")
    assert Thing.objects.count() == 1
