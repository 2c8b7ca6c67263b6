"""The answer of a write shows each change before and after, and nothing that is not to be read.

A dry run shows the same, and takes it back.
"""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry

from tests.workshop.admin import ThingAdmin
from tests.workshop.models import Job, Tag, Thing
from tests.writes.calls import changed, hide_by_admin, update

pytestmark = pytest.mark.django_db

UNREADABLE = "Set. You cannot read it."
IN_FILTERS = {"filter_fields": ["count", "tags"]}


def labels(value):
    """The same with the labels of related records in their place, and those of a set sorted."""
    if isinstance(value, list):
        return [labels(part) for part in value]
    if isinstance(value, dict) and "label" in value:
        return value["label"]
    if isinstance(value, dict):
        return {
            name: part if isinstance(part, int) else sorted(labels(part))
            for name, part in value.items()
        }
    return value


def shown(answer):
    return {name: labels(values) for name, values in changed(answer).items()}


@pytest.fixture(params=[False, True], ids=["done", "tried"])
def shows(request, client, thing, snapshot):
    """Return what an update of the thing, or its dry run, shows."""

    def shows(**values):
        before = snapshot(thing)
        answer = update(client, thing, dry_run=request.param, **values)
        if request.param:
            assert snapshot(thing) == before
            assert answer.data.keys() == {"dry_run", "changed"}
        # What the caller may set and not read.
        assert "12345" not in answer.text
        return shown(answer)

    return shows


@pytest.mark.parametrize(
    ("values", "change"),
    [
        (
            {"title": "new", "state": "new", "price": "5.00", "tag": "blue"},
            {
                "title": ["T", "new"],
                "price": ["1234.500", "5.000"],
                "state": ["paid", "new"],
                "tag": ["red", "blue"],
            },
        ),
        ({"title": "T", "state": "paid"}, {}),
        ({"tag": None}, {"tag": ["red", None]}),
        # What cannot be read counts as changed, whatever it held.
        ({"count": 12345, "title": "new"}, {"title": ["T", "new"], "count": UNREADABLE}),
        ({"count": 7, "title": "new"}, {"title": ["T", "new"], "count": UNREADABLE}),
        ({"tags": {"set": ["red", "blue"]}}, {"tags": UNREADABLE}),
        ({"tags": {"remove": ["red"]}}, {"tags": UNREADABLE}),
        ({"inlines": {"parts": [{"name": "new"}]}}, {"parts": {"added": 1}}),
    ],
    ids=str,
)
def test_values_are_shown_before_and_after_as_far_as_the_caller_reads(shows, values, change):
    assert shows(**values) == change


@pytest.mark.exposure(Thing=IN_FILTERS)
@pytest.mark.parametrize(
    ("values", "change"),
    [
        ({"count": 12345, "tags": {"set": ["red", "blue"]}, "title": "T"}, {}),
        ({"count": 7}, {"count": UNREADABLE}),
        (
            {"tags": {"add": ["old"], "remove": ["red"]}},
            {"tags": {"added": ["old"], "removed": ["red"]}},
        ),
        ({"tags": {"set": ["old"]}}, {"tags": {"added": ["old"], "removed": ["blue", "red"]}}),
    ],
    ids=str,
)
def test_fields_that_are_no_secret_are_named_where_they_changed(shows, values, change):
    assert shows(**values) == change


@pytest.mark.exposure(Part={"fields": ["id", "name"]})
@pytest.mark.parametrize("quantity", [1, 2])
def test_a_row_counts_as_changed_whatever_it_held_that_cannot_be_read(shows, thing, quantity):
    row = {"pk": thing.parts.first().pk, "quantity": quantity}

    assert shows(inlines={"parts": [row]}) == {"parts": UNREADABLE}


def test_a_value_that_was_empty_is_null(shows, thing):
    Thing.objects.filter(pk=thing.pk).update(tag=None)

    assert shows(tag="red") == {"tag": [None, "red"]}


#: The last is longer than an answer may be.
@pytest.mark.parametrize("length", [201, 5_000, 600_000])
def test_long_texts_are_cut_on_both_sides(client, thing, length):
    Thing.objects.filter(pk=thing.pk).update(note="a" * length)
    cut = ["a" * 200 + "…", "b" * 200]

    tried = update(client, thing, note="b" * 200, dry_run=True)
    done = update(client, thing, note="b" * 200)
    back = update(client, thing, note="a" * length)

    assert changed(tried) == changed(done) == {"note": cut}
    assert changed(back) == {"note": cut[::-1]}


def test_what_code_of_the_site_changes_along_is_named(client, thing, monkeypatch):
    save = Thing.save

    def saving(self, *args, **kwargs):
        self.note = f"by {self.title}"
        save(self, *args, **kwargs)

    monkeypatch.setattr(Thing, "save", saving)

    answer = update(client, thing, title="new")

    assert changed(answer) == {"title": ["T", "new"], "note": [thing.note, "by new"]}
    assert answer.data.keys() == {"pk", "changed", "version"}


@pytest.mark.exposure(Thing=IN_FILTERS)
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_new_record_had_no_values_before(dry_run, client, tags):
    answer = client.call_tool(
        "create_record",
        model="workshop.thing",
        values={"title": "T", "count": 3, "tags": ["red"]},
        inlines={"parts": [{"name": "p"}]},
        dry_run=dry_run,
    )

    assert shown(answer) == {
        "title": [None, "T"],
        "slug": UNREADABLE,
        "count": UNREADABLE,
        "tags": {"added": ["red"], "removed": []},
        "parts": {"added": 1},
    }
    assert ("pk" in answer.data) is not dry_run
    assert "unseen" not in answer.text
    assert Thing.objects.count() == LogEntry.objects.count() == (not dry_run)


def test_a_record_that_leaves_what_the_caller_sees_shows_no_values(client):
    job = Job.objects.create(tenant="b", name="mine")

    answer = update(client, job, tenant="c")
    again = update(client, job, tenant="b")

    assert changed(answer) == {"tenant": UNREADABLE}
    assert "There is no workshop.job" in again.text
    assert Job.objects.get().tenant == "c"


@pytest.mark.exposure(Tag={"label_fields": []}, Thing=IN_FILTERS)
def test_members_without_a_label_are_keys(client, thing, tags):
    answer = update(client, thing, tags={"remove": [tags[0].pk]})

    assert changed(answer) == {"tags": {"added": [], "removed": [{"pk": tags[0].pk}]}}


@pytest.mark.exposure(Thing=IN_FILTERS)
def test_members_that_the_caller_does_not_see_are_not_shown(client, thing, tags, monkeypatch):
    hide_by_admin(monkeypatch, Tag, name="blue")

    answer = update(client, thing, tags={"set": []})

    assert shown(answer) == {"tags": {"added": [], "removed": ["red"]}}
    assert "blue" not in answer.text


@pytest.mark.parametrize(
    ("stored", "change"), [("T", {}), ("NEW", {"title": ["T", "NEW"]})], ids=["as it was", "other"]
)
def test_a_value_is_shown_as_the_site_stores_it(client, thing, monkeypatch, stored, change):
    def save_model(self, request, obj, form, change):
        obj.title = stored
        obj.save()

    monkeypatch.setattr(ThingAdmin, "save_model", save_model)

    assert changed(update(client, thing, title="new")) == change
