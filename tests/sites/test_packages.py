"""What packages add to the admin happens when an assistant writes, as when a person does."""

from __future__ import annotations

import json

import pytest
from guardian.shortcuts import assign_perm
from reversion.models import Version

from mcp_django.protocol.revisions import LATEST_LEGACY, MODERN
from tests.clients import CheckedClient, WSGIClient
from tests.sites.parcels.models import Guarded, Tracked, Versioned

pytestmark = pytest.mark.django_db


@pytest.fixture
def boss(make_user):
    return make_user("boss", is_staff=True, is_superuser=True)


@pytest.fixture
def client(boss):
    return CheckedClient(user=boss)


def call(client, tool, model, **arguments):
    answer = client.call_tool(tool, model=f"parcels.{model}", **arguments)
    assert not answer.is_error, answer.text
    return answer.structured


def delete(client, model, pk):
    token = call(client, "delete_record", model, pk=pk)["confirmation"]
    return call(client, "delete_record", model, pk=pk, confirmation=token)


def test_each_write_is_one_version_of_reversion(client, boss):
    made = call(client, "create_record", "versioned", values={"name": "a"})
    found = Versioned.objects.get(pk=made["pk"])
    assert Version.objects.get_for_object(found).count() == 1

    call(client, "update_record", "versioned", pk=found.pk, values={"size": 5})

    last, first = Version.objects.get_for_object(found)
    assert (first.field_dict["size"], last.field_dict["size"]) == (0, 5)
    assert last.revision.user == boss
    assert "Changed Size." in last.revision.get_comment()
    assert "through an assistant: mcp_django.testing" in last.revision.get_comment()
    delete(client, "versioned", found.pk)
    assert not Versioned.objects.exists()
    assert Version.objects.get_deleted(Versioned).count() == 1


def test_a_write_that_is_refused_or_tried_leaves_no_version(client):
    client.call_tool("create_record", model="parcels.versioned", values={"name": ""})
    call(client, "create_record", "versioned", values={"name": "a"}, dry_run=True)

    assert not Version.objects.exists()


def test_each_write_is_one_row_of_simple_history(client, boss):
    made = call(client, "create_record", "tracked", values={"name": "a"})
    call(client, "update_record", "tracked", pk=made["pk"], values={"size": 5})
    delete(client, "tracked", made["pk"])

    rows = list(Tracked.history.order_by("history_id"))
    assert [row.history_type for row in rows] == ["+", "~", "-"]
    assert [row.size for row in rows] == [0, 5, 5]
    assert {row.history_user_id for row in rows} == {boss.pk}


@pytest.mark.parametrize("kind", [CheckedClient, WSGIClient])
@pytest.mark.parametrize("revision", [LATEST_LEGACY, MODERN[-1]])
@pytest.mark.parametrize(
    ("name", "rights"),
    [
        ("staff", ["view_tracked", "change_tracked"]),
        ("viewer", ["view_tracked"]),
        ("outsider", []),
    ],
)
def test_the_admin_of_simple_history_leaves_numbers(make_user, kind, revision, name, rights):
    for size in (1, 2):
        Tracked.objects.create(name="a", size=size)
    client = kind(user=make_user(name, *rights, is_staff=True), revision=revision)
    if revision is LATEST_LEGACY:
        client.initialize()

    models = json.loads(client.call_tool("list_models").text)["models"]
    metrics = {"total": {"sum": "size"}}
    groups = client.call_tool("aggregate_records", model="parcels.tracked", metrics=metrics)

    counts = {one["model"]: one["records"] for one in models}
    if not rights:
        assert "parcels.tracked" not in counts
        assert groups.is_error
        return
    assert counts["parcels.tracked"] == 2
    assert json.loads(groups.text)["groups"] == [{"total": 3}]


def test_the_rights_of_guardian_on_single_objects_hold(make_user):
    clerk = make_user("clerk", is_staff=True)
    mine, seen, hidden = (Guarded.objects.create(name=name) for name in ("mine", "seen", "hidden"))
    for verb in ("view", "change", "delete"):
        assign_perm(f"parcels.{verb}_guarded", clerk, mine)
    assign_perm("parcels.view_guarded", clerk, seen)
    client = CheckedClient(user=clerk)

    def update(one):
        return client.call_tool(
            "update_record", model="parcels.guarded", pk=one.pk, values={"size": 5}
        )

    assert not update(mine).is_error
    assert update(seen).text == f"The record with the key {seen.pk} is read-only for you."
    missing = client.call_tool("update_record", model="parcels.guarded", pk=999, values={})
    assert update(hidden).text.replace(str(hidden.pk), "999") == missing.text
    refused = client.call_tool("delete_record", model="parcels.guarded", pk=seen.pk)
    assert refused.text == "You may not do this."
    several = client.call_tool("delete_record", model="parcels.guarded", pk=[mine.pk, seen.pk])
    assert several.is_error
    delete(client, "guarded", mine.pk)
    assert sorted(Guarded.objects.values_list("name", "size")) == [("hidden", 0), ("seen", 0)]


def test_a_superuser_creates_what_guardian_guards(client):
    made = call(client, "create_record", "guarded", values={"name": "a"})

    assert Guarded.objects.get(pk=made["pk"]).name == "a"


def grow(client, model, *rows):
    """Run the action, with what confirms it where that is asked for."""
    name, pks = f"parcels_{model}_grow", [one.pk for one in rows]
    answer = client.call_tool(name, pks=pks)
    asked = answer.structured or {}
    if "confirmation" in asked:
        answer = client.call_tool(name, pks=pks, confirmation=asked["confirmation"])
    return answer


def test_an_action_is_one_version_of_reversion(client, boss):
    one = Versioned.objects.create(name="a")

    assert "Grew 1." in grow(client, "versioned", one).text

    (version,) = Version.objects.get_for_object(one)
    assert version.field_dict["size"] == 1
    assert version.revision.user == boss


def test_an_action_is_one_row_of_simple_history_with_its_user(client, boss):
    one = Tracked.objects.create(name="a")

    assert "Grew 1." in grow(client, "tracked", one).text

    last = Tracked.history.order_by("history_id").last()
    assert (last.history_type, last.size, last.history_user_id) == ("~", 1, boss.pk)


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
