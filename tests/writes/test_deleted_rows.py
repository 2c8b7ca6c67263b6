"""Before rows are deleted in the form of a record, a person agrees to it."""

from __future__ import annotations

import pytest
from django.contrib.admin import ModelAdmin

from mcp_django.models import ExposedTool
from mcp_django.testing import DECLINE
from tests.clients import CheckedClient, call_with_token
from tests.workshop.admin import ThingAdmin
from tests.workshop.models import Tag
from tests.writes.calls import asked

pytestmark = pytest.mark.django_db


@pytest.fixture
def decliner(superuser):
    return CheckedClient(user=superuser, answers={"confirmation": DECLINE})


def deletion(thing, *parts, **more):
    rows = [{"pk": part.pk, "delete": True} for part in parts]
    return {"model": "workshop.thing", "pk": thing.pk, "inlines": {"parts": rows}, **more}


@pytest.fixture
def parts(thing):
    return list(thing.parts.order_by("pk"))


@pytest.mark.thorough
def test_the_person_is_told_which_rows_would_be_deleted(asker, thing, parts):
    call = deletion(thing, parts[0], values={"title": "New"})
    call["inlines"]["parts"].append({"pk": parts[1].pk, "quantity": 7})

    asker.data("update_record", **call)

    assert asked(asker) == (
        f"Change this thing? 1 record: {thing.pk}.\n\n"
        "Title: New\n\n"
        f"Parts:\n    1:\n        Pk: {parts[1].pk}\n        Quantity: 7\n\n"
        f"Delete 1 part: {parts[0].pk}"
    )
    assert list(thing.parts.order_by("pk")) == parts[1:]


@pytest.mark.thorough
def test_a_client_that_cannot_ask_comes_back_with_a_token_for_the_same_rows(client, thing, parts):
    first = client.data("update_record", **deletion(thing, *parts[:2]))
    token = first["confirmation"]

    other = client.refusal("update_record", **deletion(thing, parts[2]), confirmation=token)
    client.data("update_record", **deletion(thing, *parts[:2]), confirmation=token)
    client.refusal("update_record", **deletion(thing, *parts[:2]), confirmation=token)

    assert first["question"] == (
        f"Change this thing? 1 record: {thing.pk}.\n\nDelete 2 parts: {parts[0].pk}, {parts[1].pk}"
    )
    assert "This confirmation is not valid for this call" in other
    assert list(thing.parts.all()) == parts[2:]


@pytest.mark.parametrize(
    "rows",
    [[], [{"quantity": 1, "name": "new"}], [{"pk": "first", "delete": False, "quantity": 2}]],
    ids=str,
)
def test_a_change_without_deletions_asks_nobody(decliner, thing, parts, rows):
    rows = [{**row, "pk": parts[0].pk} if "pk" in row else row for row in rows]
    call = deletion(thing, values={"title": "New"}, inlines={"parts": rows}, confirmation="")

    decliner.data("update_record", **call)

    assert not decliner.questions


def test_nobody_is_asked_about_a_dry_run_a_row_that_is_not_there_or_what_the_form_refuses(
    decliner, thing, parts
):
    decliner.data("update_record", **deletion(thing, parts[0], dry_run=True))
    missing = {"parts": [{"pk": 9999, "delete": True}]}
    refusal = decliner.refusal("update_record", **deletion(thing, inlines=missing))
    wrong = decliner.refusal(
        "update_record", **deletion(thing, parts[0], values={"title": "", "address": "1.2.3"})
    )

    assert "There is no row with the key 9999." in refusal
    assert not decliner.questions
    assert thing.parts.count() == 3
    assert "title: This field is required." in wrong
    assert "address: Enter a valid IPv4 or IPv6 address." in wrong
    assert thing.parts.count() == len(parts)


@pytest.mark.thorough
def test_where_staff_want_it_confirmed_the_person_is_asked_once(asker, client, thing, parts):
    ExposedTool.objects.create(name="update_record", needs_confirmation=True)

    first = client.data("update_record", **deletion(thing, parts[0]))
    done = call_with_token(client, "update_record", **deletion(thing, parts[0]))
    asker.data("update_record", **deletion(thing, parts[1]))

    assert first["question"].startswith("Change this thing?")
    assert not done.is_error, done.text
    assert f"Delete 1 part: {parts[1].pk}" in asked(asker)
    assert list(thing.parts.all()) == parts[2:]


def test_what_the_page_writes_before_the_person_agreed_is_taken_back(
    client, thing, parts, monkeypatch
):
    def change_view(self, request, *args):
        Tag.objects.create(name=request.method)
        return ModelAdmin.change_view(self, request, *args)

    monkeypatch.setattr(ThingAdmin, "change_view", change_view, raising=False)

    question = client.data("update_record", **deletion(thing, parts[0]))

    assert "confirmation" in question
    assert not Tag.objects.filter(name="POST").exists()
