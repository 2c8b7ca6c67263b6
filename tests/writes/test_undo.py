"""What the log keeps of a change, who reads it, and how one change is undone."""

from __future__ import annotations

import json

import pytest
from django.contrib.admin.models import LogEntry

from mcp_django.levels import Level
from mcp_django.models import ExposedModel
from tests.workshop.models import Tag, Thing
from tests.writes.calls import changed, create, hide_by_admin, hide_by_exposure, names, update

FIELDS = [
    *("id", "title", "note", "slug", "price", "state", "tag", "tags", "day", "at", "span", "data"),
    "secret_code",
]

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.exposure(Thing={"fields": FIELDS, "modified_field": ""}),
]


def undo(client, thing, change=None, **arguments):
    change = client.history(thing)[0]["undo"] if change is None else change
    return client.call_tool(
        "undo_change", model="workshop.thing", pk=thing.pk, change=change, **arguments
    )


def kept():
    """All that the log says of the last change."""
    return LogEntry.objects.latest("pk").change_message


VALUES = {
    "title": "new", "slug": "new", "price": "7.125", "state": "void", "tag": None,
    "day": "2026-02-28", "at": "2026-02-28T23:59:59.123456Z", "span": "P1DT2H", "data": {"a": [1]},
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_a_change_is_undone_by_the_value_before(asker, thing, name):
    before = getattr(Thing.objects.get(pk=thing.pk), name)
    update(asker, thing, **{name: VALUES[name]})
    assert getattr(Thing.objects.get(pk=thing.pk), name) != before

    done = undo(asker, thing)

    assert not done.is_error, done.text
    assert getattr(Thing.objects.get(pk=thing.pk), name) == before
    # It is a change like others: it can be undone as well.
    assert asker.history(thing)[0]["undo"] != asker.history(thing)[1]["undo"]


def test_a_set_gets_back_what_went_and_keeps_what_came_since(asker, thing, tags):
    red, blue, _ = tags
    thing.tags.set([red])
    update(asker, thing, tags={"set": [blue.pk]})
    [entry] = asker.history(thing)

    assert entry["values"] == {"tags": [[red.pk], [blue.pk]]}
    assert "values" not in LogEntry.objects.get().get_change_message()
    assert not undo(asker, thing).is_error
    assert names(thing) == ["red"]


def test_the_person_is_asked_and_sees_what_would_be_set(client, thing):
    update(client, thing, title="new")

    asked = undo(client, thing)
    change = client.history(thing)[0]["undo"]
    done = undo(client, thing, change, confirmation=asked.data["confirmation"])

    assert "Title: T" in asked.data["question"]
    assert done.data["changed"] == {"title": ["new", "T"]}
    assert Thing.objects.get(pk=thing.pk).title == "T"


def test_what_changed_since_is_not_undone_and_is_named(asker, thing):
    update(asker, thing, title="new", price=5)
    Thing.objects.filter(pk=thing.pk).update(price=6, note="another field")

    refused = undo(asker, thing)
    Thing.objects.filter(pk=thing.pk).update(price=5)

    assert "Nothing was undone: price changed since then." in refused.text
    assert not undo(asker, thing).is_error
    assert Thing.objects.get(pk=thing.pk).title == "T"


NOTHING = "There is no such change that can be undone."


def of_another_record(asker, thing):
    other = Thing.objects.create(title="other", number=77)
    update(asker, other, title="new")
    return asker.history(other)[0]["undo"]


def of_another_model(asker, thing):
    tag = Tag.objects.first()
    update(asker, tag, name="new")
    return LogEntry.objects.latest("pk").pk


def of_one_that_keeps_nothing(asker, thing):
    update(asker, thing, note="kept")
    LogEntry.objects.update(change_message="")
    return LogEntry.objects.latest("pk").pk


@pytest.mark.parametrize(
    "change_of",
    [of_another_record, of_another_model, of_one_that_keeps_nothing, lambda asker, thing: 2**80],
)
def test_only_changes_of_this_record_that_the_log_kept_are_undone(asker, thing, change_of):
    refused = undo(asker, thing, change_of(asker, thing))

    assert NOTHING in refused.text or "out of range" in refused.text
    assert Thing.objects.get(pk=thing.pk).title == "T"


def test_a_caller_who_does_not_read_all_of_a_change_learns_and_undoes_nothing_of_it(asker, thing):
    update(asker, thing, title="new", price=5)
    change = asker.history(thing)[0]["undo"]
    ExposedModel.objects.create(label="workshop.thing", fields=["id", "title"], level=Level.WRITE)

    [entry] = asker.history(thing)

    assert entry["change"].startswith("Changed Title. Through an assistant")
    assert entry["values"] == {"title": ["T", "new"]}
    assert "undo" not in entry
    assert NOTHING in undo(asker, thing, change).text


def test_members_that_a_caller_may_not_see_are_neither_named_nor_touched(
    asker, thing, tags, monkeypatch
):
    red, blue, _ = tags
    thing.tags.set([red, blue])
    hide_by_exposure(monkeypatch, Tag, name="blue")
    update(asker, thing, tags={"remove": [red.pk]})

    [entry] = asker.history(thing)

    assert entry["values"] == {"tags": [[red.pk], []]}
    assert not undo(asker, thing).is_error
    assert names(thing) == ["blue", "red"]
    # Who no longer sees what came or went learns nothing of it.
    Tag.objects.filter(pk=blue.pk).update(name="seen")
    update(asker, thing, tags={"remove": [blue.pk]})
    Tag.objects.filter(pk=blue.pk).update(name="blue")
    entry = asker.history(thing)[0]
    assert entry["values"] == {"tags": [[red.pk], [red.pk]]}
    assert "undo" not in entry
    assert NOTHING in undo(asker, thing, LogEntry.objects.latest("pk").pk).text


@pytest.mark.parametrize(
    "sent",
    [{"secret_code": "x"}, {"paper": {"filename": "a.txt", "data": "eA=="}}],
    ids=lambda sent: next(iter(sent)),
)
def test_of_what_cannot_be_undone_as_a_whole_no_value_is_kept(asker, thing, sent):
    update(asker, thing, title="kept nowhere", **sent)

    assert "kept nowhere" not in kept()


def test_rows_of_inlines_are_not_undone(asker, thing):
    row = {"pk": thing.parts.first().pk, "quantity": 9}
    changed(update(asker, thing, title="kept nowhere", inlines={"parts": [row]}))

    assert "kept nowhere" not in kept()
    assert "undo" not in asker.history(thing)[0]


def test_values_are_kept_where_the_settings_say_so_alone(asker, thing, configure):
    for names_of_models, is_kept in ((["workshop.Thing"], True), (["shop"], False), ([], False)):
        configure(KEEP_CHANGES=names_of_models)
        update(asker, thing, title=f"Title {len(names_of_models)}{is_kept}")

        assert ("values" in json.loads(kept())[-1]["added"]) is is_kept


# The last changes of a model


def test_the_last_changes_of_a_model_are_those_of_records_that_the_caller_sees(
    asker, make_client, thing, monkeypatch
):
    other = Thing.objects.create(title="other", number=77)
    hidden = Thing.objects.create(title="seen", number=78)
    hide_by_admin(monkeypatch, Thing, title="hidden")
    for one in (thing, hidden, other):
        update(asker, one, note=f"of {one.pk}")
    Thing.objects.filter(pk=hidden.pk).update(title="hidden")

    entries = asker.history(Thing)

    assert [entry["pk"] for entry in entries] == [other.pk, thing.pk]
    assert entries[0]["values"] == {"note": ["", f"of {other.pk}"]}
    assert [entry["pk"] for entry in asker.history(Thing, limit=1)] == [other.pk]


def test_changes_are_found_by_who_made_them(asker, make_client, thing):
    clerk = make_client("view_thing", "change_thing", "view_tag")
    update(asker, thing, note="by the boss")
    update(clerk, thing, note="by a clerk")
    (first, second) = asker.history(Thing)

    assert [one["values"]["note"][1] for one in (first, second)] == ["by a clerk", "by the boss"]
    assert asker.history(Thing, user=first["user"]) == [first]
    assert asker.history(thing, user="boss") == [
        {name: value for name, value in second.items() if name != "pk"}
    ]
    assert asker.history(Thing, user="nobody\0") == []


def test_a_created_record_is_in_the_last_changes_and_cannot_be_undone(asker, thing, tags):
    create(asker, title="made", number=79)

    entry = asker.history(Thing)[0]
    Thing.objects.get(title="made").delete()

    assert entry["action"] == "added"
    assert "undo" not in entry
    assert asker.history(Thing) == []


@pytest.mark.exposure(Thing={"fields": ["id", "title"], "modified_field": "", "exclude": ["note"]})
def test_a_history_does_not_name_whom_an_excluded_column_names(asker, make_client, thing):
    clerk = make_client("view_thing", "change_thing")
    update(asker, thing, title="by the boss")
    update(clerk, thing, title="by a clerk")
    name = asker.history(thing)[0]["user"]
    Thing.objects.update(note=name.upper())

    assert [entry["user"] for entry in asker.history(thing)] == [None, "boss"]
    assert [entry["user"] for entry in asker.history(Thing)] == [None, "boss"]
    for found in (asker.history(Thing, user=name), asker.history(thing, user=name)):
        assert found == []
