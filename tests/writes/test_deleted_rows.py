"""Before rows are deleted in the form of a record, a person agrees to it."""

from __future__ import annotations

import pytest

from mcp_django.models import ExposedTool
from mcp_django.testing import DECLINE
from tests.clients import CheckedClient, call_with_token

pytestmark = pytest.mark.django_db

YES = {"confirm": True}


@pytest.fixture
def asker(boss):
    def make(answer=YES):
        return CheckedClient(user=boss, answers={"confirmation": answer})

    return make


def asked(client):
    return client.questions["confirmation"]["params"]["message"]


def deletion(thing, *parts, **more):
    rows = [{"pk": part.pk, "delete": True} for part in parts]
    return {"model": "workshop.thing", "pk": thing.pk, "inlines": {"parts": rows}, **more}


@pytest.fixture
def parts(thing):
    return list(thing.parts.order_by("pk"))


@pytest.mark.thorough
def test_the_person_is_told_which_rows_would_be_deleted(asker, thing, parts):
    client = asker()
    rows = [{"pk": parts[0].pk, "delete": True}, {"pk": parts[1].pk, "quantity": 7}]

    done = client.call_tool(
        "update_record",
        model="workshop.thing",
        pk=thing.pk,
        values={"title": "New"},
        inlines={"parts": rows},
    )

    assert not done.is_error, done.text
    assert asked(client) == (
        f"Change this thing? 1 record: {thing.pk}.\n\n"
        "Title: New\n\n"
        f"Parts:\n    1:\n        Pk: {parts[1].pk}\n        Quantity: 7\n\n"
        f"Delete 1 part: {parts[0].pk}"
    )
    assert list(thing.parts.order_by("pk")) == parts[1:]


@pytest.mark.thorough
def test_a_client_that_cannot_ask_comes_back_with_a_token(client, thing, parts):
    first = client.call_tool("update_record", **deletion(thing, *parts[:2]))

    assert first.data["question"] == (
        f"Change this thing? 1 record: {thing.pk}.\n\nDelete 2 parts: {parts[0].pk}, {parts[1].pk}"
    )
    assert thing.parts.count() == 3
    done = call_with_token(client, "update_record", **deletion(thing, *parts[:2]))
    assert not done.is_error, done.text
    assert list(thing.parts.all()) == parts[2:]


@pytest.mark.thorough
def test_a_token_is_for_one_call_with_the_same_rows(client, thing, parts):
    first = client.call_tool("update_record", **deletion(thing, parts[0]))
    token = first.data["confirmation"]

    other = client.call_tool("update_record", **deletion(thing, parts[1]), confirmation=token)
    done = client.call_tool("update_record", **deletion(thing, parts[0]), confirmation=token)
    again = client.call_tool("update_record", **deletion(thing, parts[0]), confirmation=token)

    assert "This confirmation is not valid for this call" in other.text
    assert not done.is_error, done.text
    assert again.is_error
    assert list(thing.parts.order_by("pk")) == parts[1:]


@pytest.mark.parametrize(
    "rows",
    [[], [{"quantity": 1, "name": "new"}], [{"pk": "first", "delete": False, "quantity": 2}]],
    ids=str,
)
def test_a_change_without_deletions_asks_nobody(asker, thing, parts, rows):
    client = asker(DECLINE)
    rows = [{**row, "pk": parts[0].pk} if "pk" in row else row for row in rows]

    done = client.call_tool(
        "update_record",
        model="workshop.thing",
        pk=thing.pk,
        values={"title": "New"},
        inlines={"parts": rows},
        confirmation="",
    )

    assert not done.is_error, done.text
    assert not client.questions


def test_a_dry_run_asks_nobody(asker, thing, parts):
    client = asker(DECLINE)

    done = client.call_tool("update_record", **deletion(thing, parts[0], dry_run=True))

    assert not done.is_error, done.text
    assert not client.questions
    assert thing.parts.count() == 3


def test_what_would_be_refused_is_not_asked(asker, thing, parts):
    client = asker()
    rows = [{"pk": 9999, "delete": True}]

    refused = client.call_tool(
        "update_record", model="workshop.thing", pk=thing.pk, inlines={"parts": rows}
    )

    assert "There is no row with the key 9999." in refused.text
    assert not client.questions


@pytest.mark.thorough
def test_where_staff_want_it_confirmed_the_person_is_asked_once(asker, client, thing, parts):
    ExposedTool.objects.create(name="update_record", needs_confirmation=True)

    first = client.call_tool("update_record", **deletion(thing, parts[0]))
    done = call_with_token(client, "update_record", **deletion(thing, parts[0]))
    talkative = asker()
    also = talkative.call_tool("update_record", **deletion(thing, parts[1]))

    assert first.data["question"].startswith("Change this thing?")
    assert not done.is_error, done.text
    assert not also.is_error, also.text
    assert f"Delete 1 part: {parts[1].pk}" in asked(talkative)
    assert list(thing.parts.all()) == parts[2:]
