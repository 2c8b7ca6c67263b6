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
from tests.writes.calls import refusal, update

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


# Not even `write_fields` open a masked column.
@pytest.mark.parametrize("name", ["mail", "note"])
@pytest.mark.parametrize(
    "exposure",
    [
        pytest.param(None, marks=masked),
        pytest.param(
            None, marks=pytest.mark.exposure(Thing={**THING, "write_fields": ["title", "mail"]})
        ),
    ],
    ids=["form", "write_fields"],
)
def test_a_masked_column_is_refused_as_a_name_that_does_not_exist(client, thing, name, exposure):
    refused = refusal(update(client, thing, **{name: "x@example.com"}))
    missing = update(client, thing, mxxxl="x@example.com")

    assert refused.replace(name, "mxxxl", 1).split(".")[:2] == missing.text.split(".")[:2]
    thing.refresh_from_db()
    assert (thing.mail, thing.note) == ("a@example.com", "  kept spaces \n x ")
    assert f"'{name}'" not in str(client.call_tool("describe_model", model=Thing).data["writing"])


@pytest.mark.thorough
@masked
def test_an_update_keeps_what_is_masked_and_names_no_change_of_it(client, thing, monkeypatch):
    save = Thing.save

    def changing(self, *args, **kwargs):
        self.note = f"by {self.title}"
        return save(self, *args, **kwargs)

    monkeypatch.setattr(Thing, "save", changing)

    answer = client.call_tool("update_record", model=Thing, pk=thing.pk, values={"title": "new"})

    assert answer.data["changed"] == {"title": ["T", "new"]}
    assert "by new" not in answer.text
    thing.refresh_from_db()
    assert (thing.title, thing.mail) == ("new", "a@example.com")


@masked
def test_history_does_not_name_a_masked_field(client, superuser, thing):
    log(superuser, thing, '[{"changed": {"fields": ["Mail", "Title"]}}]')
    log(superuser, thing, "Mail changed to a@example.com")

    history = client.call_tool("get_history", model=Thing, pk=thing.pk)

    assert "Title" in history.text
    assert "Mail" not in history.text
    assert "a@example.com" not in history.text


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
        texts = answers_over(client, thing, values)
        transaction.set_rollback(True)
    return texts


def answers_over(client, thing, values):
    Thing.objects.filter(pk=thing.pk).update(mail=values["mail"], note=values["note"])
    for tag, name in zip(Tag.objects.order_by("pk"), values["tags"], strict=False):
        Tag.objects.filter(pk=tag.pk).update(name=name)
    Thing.objects.filter(pk=thing.pk).update(
        title="T", state="paid", tag=Tag.objects.order_by("pk")[0]
    )
    results = [
        client.call_tool(tool, model=Thing, pk=thing.pk, **arguments) for tool, arguments in CALLS
    ]
    results += [client.call_tool(tool, model=Thing, **arguments) for tool, arguments in OTHERS]
    uris = (f"django://objects/workshop.thing/{thing.pk}", "django://objects/workshop.tag")
    texts = [result.text for result in results] + [str(client.read_resource(uri)) for uri in uris]
    return [without_chance(text) for text in texts]


def without_chance(text):
    """The text without what two equal calls differ in."""
    numbers = count()
    numbered = {}
    text = PSEUDONYM.sub(lambda match: numbered.setdefault(match[0], f"#{next(numbers)}"), text)
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
def test_the_same_calls_tell_them_apart_where_they_are_not_masked(
    client, superuser, thing, silent
):
    log(superuser, thing, '[{"changed": {"fields": ["Mail", "Title"]}}]')
    first, second = (answers(client, thing, values) for values in VALUES)
    history = client.call_tool("get_history", model=Thing, pk=thing.pk)

    assert sum(one != other for one, other in zip(first, second, strict=True)) > 10
    assert "Mail" in history.text


@masked
@pytest.mark.exposure(Thing={**THING, "mask": {"title": "text"}})
def test_a_record_that_needs_a_masked_value_cannot_be_created(client, thing):
    refused = client.refusal("create_record", model=Thing, values={"note": "x"})

    assert "a field that assistants cannot set" in refused
    assert registry.candidates[Thing].mask == {"title": "text"}
