"""A person who can be asked is asked before records are deleted, and no token spares that."""

from __future__ import annotations

import pytest

from mcp_django.testing import Client, ProtocolFailure
from tests.asking import TALKATIVE, Talk
from tests.clients import CheckedClient
from tests.workshop.models import Job, Keeper, Part, Scrap, Tag, Thing

pytestmark = pytest.mark.django_db

YES = {"confirm": True}


@pytest.fixture
def asker(boss):
    def make(answer=YES):
        return CheckedClient(user=boss, answers={"confirmation": answer})

    return make


def delete(client, model="workshop.tag", **arguments):
    return client.call_tool("delete_record", model=model, **arguments)


def asked(client):
    return client.questions["confirmation"]["params"]["message"]


def test_the_person_is_told_what_goes_and_what_goes_along(asker, thing):
    client = asker()

    done = delete(client, "workshop.thing", pk=thing.pk)

    assert asked(client) == (
        f"Delete this thing? 1 record: {thing.pk}.\n\n"
        "Deleted along with it: 3 parts. "
        "Other records that are not named here are affected as well."
    )
    assert done.data["deleted"] == {"workshop.thing": 1, "workshop.part": 3}
    assert [model.objects.count() for model in (Thing, Part, Scrap)] == [0, 0, 0]


def test_one_agreement_deletes_once_and_only_what_was_asked_about(boss, tags):
    client = Client(user=boss, capabilities=TALKATIVE)
    query = {"model": "workshop.tag", "filters": {"name__startswith": "b"}}
    talk = Talk.call(client, "delete_record", **query)
    other = {"name": "delete_record", "arguments": {"model": "workshop.tag", "pk": tags[0].pk}}

    with pytest.raises(ProtocolFailure):
        talk.answer({"confirmation": {"action": "accept", "content": YES}}, **other)
    first = talk.accept("confirmation", **YES)
    Tag.objects.create(pk=tags[1].pk, name="blue")
    second = talk.accept("confirmation", **YES)

    assert not first.result["isError"]
    assert second.result["isError"]
    assert sorted(Tag.objects.values_list("name", flat=True)) == ["blue", "old", "red"]


def test_the_person_is_asked_again_when_something_else_would_go(boss, tags):
    client = Client(user=boss, capabilities=TALKATIVE)
    query = {"model": "workshop.tag", "filters": {"name__startswith": "b"}}
    talk = Talk.call(client, "delete_record", **query)
    Tag.objects.create(name="black")

    again = talk.accept("confirmation", **YES)

    assert "1 record:" in talk.messages["confirmation"]
    assert "2 records:" in again.messages["confirmation"]
    assert Tag.objects.count() == 4


def test_nobody_is_asked_about_what_cannot_be_deleted(asker, thing):
    Keeper.objects.create(thing=thing)
    client = asker()

    shown = delete(client, "workshop.thing", pk=thing.pk)

    assert client.questions == {}
    assert shown.data["protected_by"] == {"workshop.keeper": 1}
    assert "confirmation" not in shown.data
    assert Thing.objects.exists()


def test_nobody_is_asked_about_records_that_are_not_there_for_the_caller(asker):
    theirs = Job.objects.create(tenant="x", name="theirs")
    client = asker()

    missing = delete(client, "workshop.job", pk=theirs.pk)

    assert client.questions == {}
    assert missing.text.startswith("There is no workshop.job with the key")


def test_many_records_are_named_by_the_first_five_and_the_number_of_the_rest(asker):
    made = [Tag.objects.create(name=f"t{at}") for at in range(7)]
    client = asker()

    done = delete(client, pk=[one.pk for one in made])

    assert asked(client).startswith("Delete tags? 7 records: ")
    assert " and 2 more." in asked(client)
    assert done.data["deleted"] == {"workshop.tag": 7}
