"""What packages add to the admin happens when an assistant writes, as when a person does."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from guardian.shortcuts import assign_perm
from reversion.models import Version

from mcp_django.levels import Level
from mcp_django.models import CallRecord, ExposedModel
from tests.clients import CheckedClient, browser_of, call_with_token
from tests.same_as_admin import compare
from tests.served import SocketClient, served
from tests.sites.parcels.models import Guarded, Tracked, Versioned
from tests.writes.calls import update

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(connect, superuser):
    return connect(superuser)


def delete(client, model, pk):
    answer = call_with_token(client, "delete_record", model=f"parcels.{model}", pk=pk)
    assert not answer.is_error, answer.text


def test_each_write_is_one_version_of_reversion(client, superuser):
    made = client.data("create_record", model=Versioned, values={"name": "a"})
    found = Versioned.objects.get(pk=made["pk"])
    assert Version.objects.get_for_object(found).count() == 1

    client.data("update_record", model=Versioned, pk=found.pk, values={"size": 5})

    last, first = Version.objects.get_for_object(found)
    assert (first.field_dict["size"], last.field_dict["size"]) == (0, 5)
    assert last.revision.user == superuser
    assert "Changed Size." in last.revision.get_comment()
    assert "through an assistant: " in last.revision.get_comment()
    delete(client, "versioned", found.pk)
    assert not Versioned.objects.exists()
    assert Version.objects.get_deleted(Versioned).count() == 1


def test_a_write_that_is_refused_or_tried_leaves_no_version(client):
    client.call_tool("create_record", model="parcels.versioned", values={"name": ""})
    client.data("create_record", model=Versioned, values={"name": "a"}, dry_run=True)

    assert not Version.objects.exists()


def test_each_write_is_one_row_of_simple_history(client, superuser):
    made = client.data("create_record", model=Tracked, values={"name": "a"})
    client.data("update_record", model=Tracked, pk=made["pk"], values={"size": 5})
    delete(client, "tracked", made["pk"])

    rows = list(Tracked.history.order_by("history_id"))
    assert [row.history_type for row in rows] == ["+", "~", "-"]
    assert [row.size for row in rows] == [0, 5, 5]
    assert {row.history_user_id for row in rows} == {superuser.pk}


def test_the_admin_of_simple_history_leaves_numbers(client):
    for size in (1, 2):
        Tracked.objects.create(name="a", size=size)
    total = {"model": "parcels.tracked", "metrics": {"total": {"sum": "size"}}}

    models = json.loads(client.call_tool("list_models").text)["models"]
    groups = json.loads(client.call_tool("aggregate_records", **total).text)

    assert {one["model"]: one["records"] for one in models}["parcels.tracked"] == 2
    assert groups["rows"] == [[3]]


def test_the_rights_of_guardian_on_single_objects_hold(make_user):
    clerk = make_user("clerk", is_staff=True)
    mine, seen, hidden = (Guarded.objects.create(name=name) for name in ("mine", "seen", "hidden"))
    for verb in ("view", "change", "delete"):
        assign_perm(f"parcels.{verb}_guarded", clerk, mine)
    assign_perm("parcels.view_guarded", clerk, seen)
    client = CheckedClient(user=clerk)

    changed, read_only, unseen = (update(client, one, size=5) for one in (mine, seen, hidden))
    guarded = {"model": "parcels.guarded"}
    missing = client.refusal("update_record", **guarded, pk=999, values={})
    refusal = client.refusal("delete_record", **guarded, pk=seen.pk)
    client.refusal("delete_record", **guarded, pk=[mine.pk, seen.pk])
    delete(client, "guarded", mine.pk)

    assert not changed.is_error
    assert read_only.text == f"The record with the key {seen.pk} is read-only for you."
    assert unseen.text.replace(str(hidden.pk), "999") == missing
    assert refusal == f"You may not delete the record with the key {seen.pk}."
    assert sorted(Guarded.objects.values_list("name", "size")) == [("hidden", 0), ("seen", 0)]


def grow(client, model, *rows):
    """Run the action, with what confirms it where that is asked for."""
    name, pks = f"parcels_{model}_grow", [one.pk for one in rows]
    answer = client.call_tool(name, pks=pks)
    asked = {} if answer.is_error else answer.data
    if "confirmation" in asked:
        answer = client.call_tool(name, pks=pks, confirmation=asked["confirmation"])
    return answer


def test_an_action_is_one_version_and_one_row_of_history_with_its_user(client, superuser):
    versioned, tracked = Versioned.objects.create(name="a"), Tracked.objects.create(name="a")

    assert "Grew 1." in grow(client, "versioned", versioned).text
    assert "Grew 1." in grow(client, "tracked", tracked).text

    (version,) = Version.objects.get_for_object(versioned)
    assert (version.field_dict["size"], version.revision.user) == (1, superuser)
    last = Tracked.history.order_by("history_id").last()
    assert (last.history_type, last.size, last.history_user_id) == ("~", 1, superuser.pk)


def test_an_action_reaches_no_object_that_guardian_hides(make_user):
    clerk = make_user("clerk", is_staff=True)
    mine, hidden = (Guarded.objects.create(name=name) for name in ("mine", "hidden"))
    for verb in ("view", "change"):
        assign_perm(f"parcels.{verb}_guarded", clerk, mine)
    client = CheckedClient(user=clerk)

    both = grow(client, "guarded", mine, hidden)

    assert both.is_error
    assert f"{hidden.pk}" in both.text
    assert set(Guarded.objects.values_list("size", flat=True)) == {0}
    assert "Grew 1." in grow(client, "guarded", mine).text
    assert dict(Guarded.objects.values_list("name", "size")) == {"mine": 1, "hidden": 0}


# The history that they keep


def kept_by(package, entries):
    found = [one for one in entries if one.get("source") == package]
    return [(one["user"], one["action"], one["change"]) for one in found]


def test_rows_of_simple_history_are_in_the_history(client):
    pk = client.data("create_record", model=Tracked, values={"name": "a"})["pk"]
    client.data("update_record", model=Tracked, pk=pk, values={"size": 5})
    Tracked.objects.get(pk=pk).save()  # by nobody, and nothing is another

    found = kept_by("django-simple-history", client.history(Tracked, pk=pk))

    assert found == [("boss", "changed", "Changed size."), ("boss", "added", "")]


def test_simple_history_names_no_field_that_the_caller_does_not_read(client):
    one = Tracked.objects.create(name="a")
    one.size = 5
    one.save()
    one.name, one.size = "b", 6
    one.save()
    ExposedModel.objects.create(label="parcels.tracked", fields=["id", "name"], level=Level.READ)

    found = kept_by("django-simple-history", client.history(Tracked, pk=one.pk))

    assert found == [(None, "changed", "Changed name."), (None, "added", "")]


def test_packages_cost_the_same_whatever_they_keep(client, django_assert_max_num_queries):
    pk = client.data("create_record", model=Tracked, values={"name": "a"})["pk"]
    for size in range(20):
        client.data("update_record", model=Tracked, pk=pk, values={"size": size})

    with django_assert_max_num_queries(6):
        assert len(client.history(Tracked, pk=pk)) == 20


@pytest.mark.parametrize("is_narrow", [False, True])
def test_versions_of_reversion_have_comments_for_those_who_read_the_whole_page(client, is_narrow):
    pk = client.data("create_record", model=Versioned, values={"name": "a"})["pk"]
    client.data("update_record", model=Versioned, pk=pk, values={"size": 5})
    if is_narrow:
        fields = ["id", "name"]
        ExposedModel.objects.create(label="parcels.versioned", fields=fields, level=Level.READ)

    entries = client.history(Versioned, pk=pk)

    versions = kept_by("django-reversion", entries)
    assert [(user, action) for user, action, _ in versions] == [("boss", "saved")] * 2
    assert ("Changed Size." in versions[0][2]) is not is_narrow
    assert ("Size" in json.dumps(entries)) is not is_narrow


@pytest.mark.parametrize("name", ["superuser", "clerk", "staff"])
def test_the_pages_of_the_admin_and_the_tools_answer_the_same(make_user, name):
    user = make_user(
        name, "view_tracked", "change_tracked", is_staff=True, is_superuser=name == "superuser"
    )
    for model in (Guarded, Tracked, Versioned):
        for number in range(3):
            row = model.objects.create(name=f"{model.__name__} {number}", size=number)
            if model is Guarded and name == "clerk" and number:
                assign_perm("parcels.view_guarded", user, row)

    client = CheckedClient(user=user)
    by_design = {"parcels.guarded count": "no database can count what code judges one by one"}

    found = compare(browser_of(user), client, [Guarded, Tracked, Versioned], by_design=by_design)

    assert found["differences"] == []
    rows = {label: compared[0] for label, compared in found["compared"].items()}
    expected = {
        "superuser": {"parcels.guarded": 3, "parcels.tracked": 3, "parcels.versioned": 3},
        "clerk": {"parcels.guarded": 2, "parcels.tracked": 3},
        "staff": {"parcels.guarded": 0, "parcels.tracked": 3},
    }
    assert rows == expected[name]
    assert found["left_out"] == ([] if name == "superuser" else [*by_design])


# A server of its own, which writes the records of calls while it answers others


@pytest.mark.skipif(connection.vendor != "sqlite", reason="Other databases have many writers.")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("interface", ["asgi", "wsgi"])
def test_no_write_is_lost_while_records_of_calls_are_written(superuser, interface):
    with served(interface) as port:
        client = SocketClient(port, user=superuser)
        answers = [
            client.call_tool("create_record", model="parcels.versioned", values={"name": "a"})
            for _ in range(100)
        ]

    assert [answer.text for answer in answers if answer.is_error] == []
    assert Versioned.objects.count() == 100
    assert CallRecord.objects.filter(method="tools/call").count() == 100
