"""The version of a record: whatever is read or written with it counts, and nothing hidden."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.workshop.admin import ThingAdmin
from tests.workshop.models import Part, Remark, Tag, Thing
from tests.writes.calls import hide_by_admin, refusal

pytestmark = pytest.mark.django_db


def read(client, record):
    return client.data("get_record", model=record._meta.label_lower, pk=record.pk)["_version"]


def change(client, record, **condition):
    values = {"title": "mine"}
    call = {"model": "workshop.thing", "pk": record.pk, "values": values, **condition}
    return client.call_tool("update_record", **call)


#: What changes, and how.
COUNTED = {
    "the case of a letter": lambda thing, tags: set_columns(thing, title="t"),
    "a secret": lambda thing, tags: set_columns(thing, secret_code="x"),
    "an element in JSON": lambda thing, tags: set_columns(thing, data={"a": [2]}),
    "a digit": lambda thing, tags: set_columns(thing, price="1234.501"),
    "null": lambda thing, tags: set_columns(thing, is_odd=None),
    "a microsecond": lambda thing, tags: set_columns(thing, at="2026-01-02T03:04:05.678902Z"),
    "a member comes": lambda thing, tags: thing.tags.add(tags[2]),
    "a member leaves": lambda thing, tags: thing.tags_boxes.remove(tags[0]),
    "members are replaced": lambda thing, tags: thing.tags.set([tags[0], tags[2]]),
    "rows change": lambda thing, tags: thing.parts.update(quantity=9),
    "a row comes": lambda thing, tags: thing.parts.create(name="new"),
    "a row goes": lambda thing, tags: thing.parts.first().delete(),
}
UNCOUNTED = {
    "a hidden row": lambda thing, tags: thing.parts.create(name="hidden"),
    "a row of a hidden model": lambda thing, tags: thing.scraps.create(text="hidden"),
    "a row of another": lambda thing, tags: Part.objects.create(thing=other_than(thing), name="p"),
}


@pytest.mark.parametrize("what", [*COUNTED, *UNCOUNTED])
def test_a_change_of_a_column_or_of_visible_members_or_rows_is_another_version(
    what, client, thing, tags, monkeypatch
):
    hide_by_admin(monkeypatch, Part, name="hidden")
    version, counts = read(client, thing), what in COUNTED
    (COUNTED | UNCOUNTED)[what](thing, tags)

    now = read(client, thing)
    answer = change(client, thing, version=version)

    assert answer.is_error == (now != version) == counts
    if counts:
        assert "This record was changed after you read it." in answer.text
        assert f"its version is now {now}." in answer.text
        answer = change(client, thing, version=now)
    assert read(client, thing) == answer.data["version"]


def set_columns(thing, **values):
    Thing.objects.filter(pk=thing.pk).update(**values)


def other_than(thing):
    return Thing.objects.create(title="other", number=5)


def test_a_version_is_good_for_one_change(client, thing):
    first = change(client, thing).data["version"]

    second = change(client, thing, version=first)
    third = refusal(change(client, thing, version=first))

    assert second.data["version"] != first
    assert second.data["version"] in third
    for text in ("x", "0" * 18, "\N{SNOWMAN}", "x" * 10_000):
        assert "was changed after you read it" in change(client, thing, version=text).text


@pytest.mark.exposure(Tag=None)
def test_members_of_a_hidden_model_count_for_the_version(client, thing, tags):
    version = read(client, thing)
    thing.tags.add(tags[2])

    assert change(client, thing, version=version).is_error


def test_a_created_record_has_the_version_that_reading_gives(client, tags):
    made = client.data(
        "create_record",
        model="workshop.thing",
        values={"title": "T", "tags": [tags[0].pk]},
        inlines={"parts": [{"name": "p"}]},
    )

    assert made["version"] == read(client, Thing.objects.get())


def test_generic_rows_count_for_the_version(client, thing, remarks):
    before = read(client, thing)
    Remark.objects.create(target=Tag.objects.first(), text="elsewhere")
    same = read(client, thing)
    Remark.objects.create(target=thing, text="here")

    assert before == same != read(client, thing)


def test_inlines_that_cannot_be_listed_leave_the_record(client, thing, monkeypatch, caplog):
    def fail(self, request, obj):
        return request.resolver_match.kwargs["object_id"]

    version = read(client, thing)
    monkeypatch.setattr(ThingAdmin, "get_inlines", fail)

    assert read(client, thing) not in (None, version)
    assert "The inlines of workshop.Thing cannot be listed." in caplog.text


def test_rows_that_no_key_ties_to_the_record_do_not_count(client, thing, monkeypatch):
    """As with packages whose formsets find their rows themselves."""

    class TagInline(admin.TabularInline):
        model = Tag

    monkeypatch.setattr(ThingAdmin, "inlines", [TagInline])
    version = read(client, thing)
    Tag.objects.create(name="new")

    assert read(client, thing) == version


def test_a_version_costs_a_query_for_each_relation_and_inline(client, thing, tags):
    def queries():
        with CaptureQueriesContext(connection) as captured:
            read(client, thing)
        return [query["sql"] for query in captured]

    queries()
    few = queries()
    thing.tags.set(Tag.objects.bulk_create(Tag(name=str(at)) for at in range(50)))
    Part.objects.bulk_create(Part(thing=thing, name=str(at)) for at in range(50))
    many = queries()

    assert len(few) == len(many)
    between = [sql for sql in many if "workshop_thing_tags" in sql]
    assert len(between) == len(Thing._meta.many_to_many) == 6
    assert len([sql for sql in many if "workshop_part" in sql]) == 1


# The time of the last change


@pytest.mark.thorough
def test_a_record_can_be_changed_if_nobody_did_since_a_time(client, thing):
    shown = client.data("get_record", model="workshop.thing", pk=thing.pk)

    for since, words in [
        ("yesterday", "takes a time"),
        ("2026-13-45T00:00:00", "takes a time"),
        ("2026-01-01T00:00:00Z", "was changed after that time"),
        (shown["modified_at"], ""),
        (shown["modified_at"], "was changed after that time"),
    ]:
        answer = change(client, thing, if_unmodified_since=since)

        assert answer.is_error == bool(words)
        assert words in answer.text


@pytest.mark.exposure(Thing={"fields": ["id", "day"], "modified_field": "day"})
def test_a_day_of_the_last_change_counts_as_a_day(client, thing):
    before = change(client, thing, if_unmodified_since="2026-01-01T23:00:00Z")
    on_the_day = change(client, thing, if_unmodified_since="2026-01-02T00:00:00")

    assert "was changed on 2026-01-02" in before.text
    assert not on_the_day.is_error


@pytest.mark.exposure(Thing={"modified_field": ""})
def test_where_nobody_keeps_the_time_of_changes_the_version_is_pointed_to(client, thing):
    answer = refusal(change(client, thing, if_unmodified_since="2026-01-01T00:00:00Z"))

    assert "send the version" in answer
