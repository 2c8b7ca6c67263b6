"""Many records change in the same way, as the admin would change each, or none of them does."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.core.exceptions import ValidationError

from mcp_django.models import ExposedTool
from mcp_django.testing import Client
from tests.asking import TALKATIVE, Talk
from tests.clients import CheckedClient, call_with_token
from tests.workshop.admin import JobAdmin, TagAdmin
from tests.workshop.models import Job, Tag
from tests.writes.calls import asked, refusal, tag_names

pytestmark = pytest.mark.django_db


def change(client, model="workshop.tag", **arguments):
    return client.call_tool("update_records", model=model, **arguments)


def agreed(client, model="workshop.tag", **arguments):
    return call_with_token(client, "update_records", model=model, **arguments)


@pytest.fixture
def jobs(db):
    return [Job.objects.create(tenant="b", name=f"job {at}") for at in range(3)]


def test_with_the_confirmation_all_are_changed_once(client, superuser, tags):
    call = {"pks": [tag.pk for tag in tags[:2]], "values": {"name": "same"}}
    preview = change(client, **call)
    token = preview.data["confirmation"]

    done = change(client, **call, confirmation=token)
    again = change(client, **call, confirmation=token)

    assert done.data == {
        "records": 2,
        "keys": call["pks"],
        "changes": [
            {"pk": tags[0].pk, "changed": {"name": ["red", "same"]}},
            {"pk": tags[1].pk, "changed": {"name": ["blue", "same"]}},
        ],
    }
    assert tag_names() == ["old", "same", "same"]
    assert again.is_error
    assert [entry.user for entry in LogEntry.objects.all()] == [superuser, superuser]
    assert all("assistant" in one.change_message for one in LogEntry.objects.all())


def test_filters_select_what_is_changed(client, tags):
    call = {"filters": {"name__in": ["red", "blue"]}, "exclude": {"name": "blue"}}

    done = agreed(client, **call, values={"name": "new"})

    assert done.data["keys"] == [tags[0].pk]
    assert tag_names() == ["blue", "new", "old"]


def test_the_person_is_asked_where_that_is_possible(asker, tags):
    done = change(asker, filters={"name": "red"}, values={"name": "crimson"})

    assert asked(asker) == "Change this tag? 1 record: red.\n\nName: crimson"
    assert done.data["records"] == 1
    assert tag_names() == ["blue", "crimson", "old"]


@pytest.mark.thorough
def test_the_person_is_asked_again_when_others_match_by_then(superuser, tags):
    client = Client(user=superuser, capabilities=TALKATIVE)
    call = {"model": "workshop.tag", "filters": {"name__startswith": "b"}, "values": {"name": "x"}}
    talk = Talk.call(client, "update_records", **call)
    Tag.objects.create(name="black")

    again = talk.accept("confirmation", confirm=True)

    assert "2 records: blue, black." in again.messages["confirmation"]
    assert "x" not in tag_names()


# All or none


def test_one_refusal_of_the_form_leaves_all_as_they_were(client, tags, monkeypatch):
    def clean(self):
        if self.name == "blue" or Tag.objects.get(pk=self.pk).name == "blue":
            raise ValidationError({"name": "Blue stays."})

    monkeypatch.setattr(Tag, "clean", clean)
    saved = []
    monkeypatch.setattr(TagAdmin, "save_model", lambda *args: saved.append(args[2].save()))

    refused = refusal(agreed(client, pks=[tag.pk for tag in tags], values={"name": "new"}))

    assert len(saved) == 1
    assert refused == (
        "None of these records was changed, because of the one with the key "
        f"{tags[1].pk}:\nNothing was saved.\nname: Blue stays."
    )
    assert tag_names() == ["blue", "old", "red"]
    assert not LogEntry.objects.exists()


def test_a_confirmation_of_a_call_that_failed_is_not_spent(client, tags, monkeypatch):
    def clean(self):
        raise ValidationError("Not today.")

    call = {"pks": [tag.pk for tag in tags], "values": {"name": "new"}}
    token = change(client, **call).data["confirmation"]
    with monkeypatch.context() as patched:
        patched.setattr(Tag, "clean", clean)
        assert "Not today." in change(client, **call, confirmation=token).text

    done = change(client, **call, confirmation=token)

    assert done.data["records"] == 3


def test_what_no_form_takes_is_refused_before_anybody_is_asked(asker, tags):
    refused = refusal(change(asker, pks=[tags[0].pk], values={"nmae": "x"}))

    assert "Did you mean name?" in refused
    assert asker.questions == {}


# Rights


def test_a_record_that_is_read_only_for_the_caller_stops_all(client, asker, jobs, monkeypatch):
    monkeypatch.setattr(
        JobAdmin,
        "has_change_permission",
        lambda self, request, obj=None: obj is None or obj.name != "job 1",
    )
    call = {"pks": [one.pk for one in jobs], "values": {"name": "new"}}

    refused = change(client, "workshop.job", **call)
    unasked = change(asker, "workshop.job", **call)

    read_only = f"The record with the key {jobs[1].pk} is read-only for you."
    assert refused.text == unasked.text == read_only
    assert asker.questions == {}
    assert not Job.objects.filter(name="new").exists()


def test_a_right_that_is_lost_before_the_confirmation_comes_is_missed(make_user, tags):
    clerk = make_user("clerk", "view_tag", "change_tag", is_staff=True)
    client = CheckedClient(user=clerk)
    call = {"pks": [tags[0].pk], "values": {"name": "x"}}
    token = change(client, **call).data["confirmation"]
    clerk.user_permissions.clear()

    with pytest.raises(AssertionError, match="Unknown tool"):
        change(CheckedClient(token=client.token), **call, confirmation=token)
    assert "x" not in tag_names()


def test_the_tool_is_off_where_staff_switch_update_record_off(client, tags):
    before = client.tools().keys()
    ExposedTool.objects.create(name="update_record", enabled=False)
    after = client.tools().keys()

    assert before - after == {"update_record", "update_records", "undo_change"}


# What cannot be asked


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "Name the records"),
        ({"pks": [1], "filters": {"id": 1}}, "Name the records"),
        ({"filters": {}}, "Name the records"),
        ({"pks": []}, "Name the records"),
        ({"search": " "}, "Empty filters would select every record"),
        ({"pks": [10**9, "x", 10**40]}, "Not found: "),
        ({"filters": {"is_active": True}}, "cannot be used in filters"),
        ({"pks": [1], "any_of": [{"id": 1}]}, "any_of"),
        ({"pks": [{"a": 1}]}, "pks"),
        ({"pks": [1], "values": {}}, "at least one field"),
        ({"pks": [1], "model": "workshop.nothing"}, "There is no model"),
    ],
    ids=str,
)
def test_what_names_no_records_changes_none(arguments, words, client, tags):
    answer = refusal(change(client, **{"values": {"name": "x"}, **arguments}))

    assert words in answer
    assert "x" not in tag_names()


def test_more_than_two_hundred_are_refused(client):
    Tag.objects.bulk_create(Tag(name=f"t{at}") for at in range(201))

    answer = refusal(change(client, filters={"id__gt": 0}, values={"name": "x"}))

    assert "These are 201 records, and one call changes 200 at most." in answer


@pytest.mark.thorough
def test_what_changed_is_shown_of_twenty(client):
    Tag.objects.bulk_create(Tag(name=f"t{at}") for at in range(25))

    done = agreed(client, filters={"id__gt": 0}, values={"name": "x"})

    assert done.data["records"] == len(done.data["keys"]) == 25
    assert len(done.data["changes"]) == 20
    assert set(tag_names()) == {"x"}


def test_a_dry_run_shows_the_changes_and_asks_nobody(asker, tags):
    tried = change(asker, pks=[tag.pk for tag in tags[:2]], values={"name": "x"}, dry_run=True)

    assert asker.questions == {}
    assert tried.data["dry_run"] is True
    assert tried.data["records"] == 2
    assert [one["changed"]["name"][1] for one in tried.data["changes"]] == ["x", "x"]
    assert tag_names() == ["blue", "old", "red"]
