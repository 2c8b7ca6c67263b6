"""Somebody who gets a column masked cannot set it, and no write tells what is in it."""

from __future__ import annotations

import re
from itertools import count

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import transaction

from mcp_django.exposure.registry import registry
from tests.workshop.exposed import EXPOSED
from tests.workshop.models import Tag, Thing

pytestmark = pytest.mark.django_db

PSEUDONYM = re.compile(r"p-[0-9a-f]{12}(@masked\.invalid)?")
THING = {
    "fields": [*EXPOSED[Thing]["fields"], "mail", "slug"],
    "label_fields": ["mail"],
    "mask": {"mail": "email", "note": "text"},
}
TAG = {"mask": {"name": "text"}}

masked = pytest.mark.exposure(Thing=THING, Tag=TAG)
in_clear = pytest.mark.exposure(Thing={**THING, "mask": {}})


def call(client, tool, **arguments):
    return client.call_tool(tool, model="workshop.thing", **arguments)


@masked
def test_a_masked_column_is_not_listed_in_writing(client, thing):
    writing = call(client, "describe_model").data["writing"]

    assert "title" in str(writing)
    for name in ("mail", "note"):
        assert f"'{name}'" not in str(writing)


@masked
@pytest.mark.parametrize("name", ["mail", "note"])
def test_a_masked_column_is_refused_as_a_name_that_does_not_exist(client, thing, name):
    refused = call(client, "update_record", pk=thing.pk, values={name: "x@example.com"})
    missing = call(client, "update_record", pk=thing.pk, values={"mxxxl": "x@example.com"})

    assert refused.is_error
    assert (
        refused.text.replace(f'"{name}"', "").replace(name, "mxxxl", 1).split(".")[0]
        == (missing.text.split(".")[0])
    )
    thing.refresh_from_db()
    assert (thing.mail, thing.note) == ("a@example.com", "  kept spaces \n x ")


@pytest.mark.thorough
@pytest.mark.exposure(Thing={**THING, "write_fields": ["title", "mail"]})
def test_not_even_write_fields_open_a_masked_column(client, thing):
    refused = call(client, "update_record", pk=thing.pk, values={"mail": "x@example.com"})

    assert refused.is_error
    assert not call(client, "update_record", pk=thing.pk, values={"title": "new"}).is_error


@pytest.mark.thorough
@masked
def test_an_update_keeps_what_is_masked_and_shows_its_pseudonym(client, thing):
    before = call(client, "get_record", pk=thing.pk).data

    answer = call(client, "update_record", pk=thing.pk, values={"title": "new"}).data

    assert answer["changed"] == {"title": ["T", "new"]}
    assert answer["record"]["mail"] == before["mail"]
    assert PSEUDONYM.fullmatch(before["mail"])
    thing.refresh_from_db()
    assert (thing.title, thing.mail) == ("new", "a@example.com")


@pytest.mark.thorough
@masked
def test_a_masked_value_that_a_save_changes_is_not_named(client, thing, monkeypatch):
    save = Thing.save

    def changing(self, *args, **kwargs):
        self.note = f"by {self.title}"
        return save(self, *args, **kwargs)

    monkeypatch.setattr(Thing, "save", changing)

    answer = call(client, "update_record", pk=thing.pk, values={"title": "new"})

    assert answer.data["changed"] == {"title": ["T", "new"]}
    assert "by new" not in answer.text


@masked
def test_history_does_not_name_a_masked_field(client, boss, thing):
    message = '[{"changed": {"fields": ["Mail", "Title"]}}]'
    log(boss, thing, message)
    log(boss, thing, "Mail changed to a@example.com")

    history = call(client, "get_history", pk=thing.pk)

    assert "Title" in history.text
    assert "Mail" not in history.text
    assert "a@example.com" not in history.text


@in_clear
def test_history_names_it_for_who_reads_it(client, boss, thing):
    log(boss, thing, '[{"changed": {"fields": ["Mail", "Title"]}}]')

    assert "Mail" in call(client, "get_history", pk=thing.pk).text


def log(user, thing, message):
    LogEntry.objects.create(
        user=user,
        content_type=ContentType.objects.get_for_model(Thing),
        object_id=str(thing.pk),
        object_repr="thing",
        action_flag=CHANGE,
        change_message=message,
    )


#: Calls that write, preview, refuse and read, with whatever could repeat a value.
CALLS = (
    ("update_record", {"values": {"title": "new"}}),
    ("update_record", {"values": {"title": "new"}, "dry_run": True}),
    ("update_record", {"values": {"title": ""}}),
    ("update_record", {"values": {"low": 5, "high": 1}}),
    ("update_record", {"values": {"state": "void"}}),
    ("update_record", {"values": {"tag": "red"}}),
    ("update_record", {"values": {"tag": "r"}}),
    ("update_record", {"values": {"tag_searched": "e"}}),
    ("update_record", {"values": {"tags": {"add": ["red"]}}}),
    ("update_record", {"values": {"mail": "z@example.com"}}),
    ("update_record", {"values": {"title": "new"}, "version": "x"}),
    ("delete_record", {}),
    ("delete_record", {"dry_run": True}),
    ("get_history", {}),
    ("get_record", {"fields": ["mail", "tag"]}),
    ("get_record", {}),
)
OTHERS = (
    ("create_record", {"values": {"title": "x"}, "dry_run": True}),
    ("create_record", {"values": {"title": "x", "tag": "red"}, "dry_run": True}),
    ("update_records", {"filters": {"title": "T"}, "values": {"count": 1}, "dry_run": True}),
    ("update_records", {"filters": {"mail": "a@example.com"}, "values": {"count": 1}}),
    ("update_records", {"filters": {"note__contains": "x"}, "values": {"count": 1}}),
    ("delete_record", {"filters": {"mail__startswith": "a"}}),
    ("delete_record", {"filters": {"tag__name": "red"}}),
    ("find_records", {"filters": {"tag": "red"}}),
    ("find_records", {"search": "red"}),
    ("describe_model", {}),
)
VALUES = (
    {"mail": "a@example.com", "note": "first", "tags": ("red", "green")},
    {"mail": "zzz@example.org", "note": "qqq", "tags": ("blue", "x")},
)


def answers(client, thing, values):
    """What is done with one set of values is undone before the next."""
    with transaction.atomic():
        found = answers_over(client, thing, values)
        transaction.set_rollback(True)
    return found


def answers_over(client, thing, values):
    Thing.objects.filter(pk=thing.pk).update(mail=values["mail"], note=values["note"])
    for tag, name in zip(Tag.objects.order_by("pk"), values["tags"], strict=False):
        Tag.objects.filter(pk=tag.pk).update(name=name)
    Thing.objects.filter(pk=thing.pk).update(
        title="T", state="paid", tag=Tag.objects.order_by("pk")[0]
    )
    found = [call(client, tool, pk=thing.pk, **arguments) for tool, arguments in CALLS]
    found += [call(client, tool, **arguments) for tool, arguments in OTHERS]
    uris = (f"django://objects/workshop.thing/{thing.pk}", "django://objects/workshop.tag")
    texts = [one.text for one in found] + [str(client.read_resource(uri)) for uri in uris]
    return [without_chance(text) for text in texts]


def without_chance(text):
    """The text without what two equal calls differ in."""
    numbers = count()
    known = {}
    text = PSEUDONYM.sub(lambda one: known.setdefault(one[0], f"#{next(numbers)}"), text)
    for name in ("version", "_version", "confirmation"):
        text = re.sub(rf"\"{name}\":\"[^\"]*\"", name, text)
    text = re.sub(r"its version is now \w+", "version", text)
    # PostgreSQL takes back no number that a sequence gave.
    text = re.sub(
        r"(\"created\":\[\{\"model\":\"[\w.]+\",\"record\":\{\"id\":)\d+", r"\1new", text
    )
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z?", "time", text)


@pytest.fixture
def silent(monkeypatch):
    """Texts of the site's own say nothing: they may repeat whatever the site wants."""
    monkeypatch.setattr(Thing, "__str__", lambda self: f"thing {self.pk}")
    monkeypatch.setattr(Tag, "__str__", lambda self: f"tag {self.pk}")


@pytest.mark.thorough
@masked
def test_no_tool_that_writes_tells_masked_values_apart(client, thing, silent):
    first, second = (answers(client, thing, values) for values in VALUES)

    assert first == second
    assert not any(word in text for text in second for word in ("zzz", "qqq", "blue"))


@pytest.mark.thorough
@in_clear
def test_the_same_calls_tell_them_apart_where_they_are_not_masked(client, thing, silent):
    first, second = (answers(client, thing, values) for values in VALUES)

    assert sum(one != other for one, other in zip(first, second, strict=True)) > 10


@masked
@pytest.mark.exposure(Thing={**THING, "mask": {"title": "text"}})
def test_a_record_that_needs_a_masked_value_cannot_be_created(client, thing):
    refused = call(client, "create_record", values={"note": "x"})

    assert refused.is_error
    assert "a field that assistants cannot set" in refused.text
    assert registry.candidates[Thing].mask == {"title": "text"}
