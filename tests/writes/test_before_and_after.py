"""The answer of a write shows each change before and after, and nothing that is not to be read."""

from __future__ import annotations

import pytest

from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from tests.workshop.admin import TagAdmin, ThingAdmin
from tests.workshop.exposed import EXPOSED
from tests.workshop.models import Job, Tag, Thing

pytestmark = pytest.mark.django_db


def update(client, thing, inlines=None, **values):
    return client.call_tool(
        "update_record", model="workshop.thing", pk=thing.pk, values=values, inlines=inlines or {}
    )


def changed(answer):
    assert not answer.is_error, answer.text
    return answer.data["changed"]


def member(tag):
    return {"pk": tag.pk, "label": tag.name}


def test_values_are_shown_before_and_after(client, thing, tags):
    answer = update(client, thing, title="new", state="new", price="5.00", tag=tags[1].pk)

    assert changed(answer) == {
        "title": ["T", "new"],
        "price": ["1234.500", "5.000"],
        "state": ["paid", "new"],
        "tag": [member(tags[0]), member(tags[1])],
    }


def test_what_is_as_it_was_is_not_named(client, thing):
    assert changed(update(client, thing, title="T", state="paid")) == {}


@pytest.mark.thorough
def test_a_value_that_was_empty_and_one_that_is_emptied_are_null(client, thing, tags):
    Thing.objects.filter(pk=thing.pk).update(tag=None)

    assert changed(update(client, thing, tag=tags[0].pk)) == {"tag": [None, member(tags[0])]}
    assert changed(update(client, thing, tag=None)) == {"tag": [member(tags[0]), None]}


@pytest.mark.thorough
def test_long_texts_are_cut_on_both_sides(client, thing):
    Thing.objects.filter(pk=thing.pk).update(note="a" * 300)

    answer = update(client, thing, note="b" * 200)
    longer = update(client, thing, note="c" * 5000)

    assert changed(answer) == {"note": ["a" * 200 + "…", "b" * 200]}
    assert changed(longer) == {"note": ["b" * 200, "c" * 200 + "…"]}


@pytest.mark.parametrize("count", [12345, 7])
def test_a_field_that_can_be_set_and_not_read_is_named_without_values(client, thing, count):
    answer = update(client, thing, count=count, title="new")

    assert changed(answer) == {"title": ["T", "new"], "count": None}
    assert "12345" not in answer.text


@pytest.mark.thorough
@pytest.mark.exposure(Thing={"filter_fields": ["count"]})
def test_a_field_that_can_be_filtered_by_and_not_read_has_no_values(client, thing):
    assert changed(update(client, thing, count=12345)) == {}
    assert changed(update(client, thing, count=7)) == {"count": None}


def test_rows_of_the_form_are_named_without_values(client, thing):
    assert changed(update(client, thing, {"parts": [{"name": "new"}]})) == {"parts": None}


@pytest.mark.thorough
def test_a_new_record_had_no_values_before(client):
    answer = client.call_tool(
        "create_record", model="workshop.thing", values={"title": "T", "count": 3}
    )

    assert changed(answer) == {"title": [None, "T"], "slug": None, "count": None}


def test_a_record_that_the_caller_does_not_see_any_more_shows_no_values(client):
    job = Job.objects.create(tenant="b", name="mine")

    answer = client.call_tool(
        "update_record", model="workshop.job", pk=job.pk, values={"tenant": "c"}
    )

    assert answer.data["record"] is None
    assert changed(answer) == {"tenant": None}


# Sets


@pytest.mark.exposure(Thing={"filter_fields": ["tags"]})
def test_a_set_shows_who_came_and_who_left(client, thing, tags):
    red, blue, _ = tags
    green = Tag.objects.create(name="green")

    answer = update(client, thing, tags={"add": [green.pk], "remove": [red.pk]})

    assert changed(answer) == {"tags": {"added": [member(green)], "removed": [member(red)]}}
    assert blue in thing.tags.all()


@pytest.mark.exposure(Tag={"label_fields": []}, Thing={"filter_fields": ["tags"]})
def test_members_without_a_label_are_keys(client, thing, tags):
    answer = update(client, thing, tags={"remove": [tags[0].pk]})

    assert changed(answer) == {"tags": {"added": [], "removed": [{"pk": tags[0].pk}]}}


@pytest.mark.exposure(Thing={"filter_fields": ["tags"]})
def test_a_new_record_shows_its_members(client, tags):
    answer = client.call_tool(
        "create_record",
        model="workshop.thing",
        values={"title": "T", "tags": [tags[0].pk]},
    )

    assert changed(answer)["tags"] == {"added": [member(tags[0])], "removed": []}


@pytest.mark.exposure(Thing={"filter_fields": ["tags"]})
def test_members_that_the_caller_does_not_see_are_not_shown(client, thing, tags, monkeypatch):
    red, *_ = tags
    monkeypatch.setattr(
        TagAdmin, "get_queryset", lambda self, request: Tag.objects.exclude(name="blue")
    )

    answer = update(client, thing, tags={"set": []})

    assert changed(answer) == {"tags": {"added": [], "removed": [member(red)]}}
    assert "blue" not in answer.text


def test_a_set_that_the_caller_does_not_read_is_named_without_members(client, thing, tags):
    answer = update(client, thing, tags={"remove": [tags[0].pk]})

    assert changed(answer) == {"tags": None}


@pytest.mark.exposure(
    Tag=None, Thing={"fields": ["id", "title", "modified_at"], "filter_fields": ["title"]}
)
def test_members_of_a_model_that_is_not_shown_are_not_shown(client, thing):
    green = Tag.objects.create(name="green")

    answer = update(client, thing, tags={"add": [green.pk]})

    assert changed(answer) == {"tags": None}
    assert "green" not in answer.text


# Dry runs, and answers that are given again


@pytest.mark.exposure(Thing={"filter_fields": ["tags"]})
def test_a_dry_run_shows_the_same(client, thing, tags):
    call = {
        "model": "workshop.thing",
        "pk": thing.pk,
        "values": {"title": "new", "count": 1, "tags": {"remove": [tags[0].pk]}},
    }

    tried = client.call_tool("update_record", **call, dry_run=True)
    done = client.call_tool("update_record", **call)

    assert changed(tried) == changed(done)
    assert changed(done) == {
        "title": ["T", "new"],
        "count": None,
        "tags": {"added": [], "removed": [member(tags[0])]},
    }


def narrow(model, **options):
    """Expose a model anew, with other options."""
    registry.unregister(model)
    options = {**EXPOSED[model], "level": Level.WRITE, **options}
    registry.register(model, type("Narrow", (ModelExposure,), options))


@pytest.fixture
def promised(client, tags):
    """A call that was answered once, with a tag that the record got."""
    call = {
        "model": "workshop.thing",
        "values": {"title": "T", "tags": [tags[0].pk]},
        "idempotency_key": "k1",
    }
    return call, client.call_tool("create_record", **call)


@pytest.mark.exposure(Thing={"filter_fields": ["tags"]})
def test_the_same_answer_is_given_again(client, promised):
    call, first = promised

    assert client.call_tool("create_record", **call).data == first.data
    assert Thing.objects.count() == 1


@pytest.mark.exposure(Thing={"filter_fields": ["tags"]})
def test_an_answer_is_not_given_again_when_a_member_is_hidden_by_then(client, tags, monkeypatch):
    hidden = []
    monkeypatch.setattr(
        TagAdmin, "get_queryset", lambda self, request: Tag.objects.exclude(name__in=hidden)
    )
    values = {"title": "T", "tags": [tags[0].pk]}
    call = {"model": "workshop.thing", "values": values, "idempotency_key": "k1"}
    first = client.call_tool("create_record", **call)
    hidden.append("red")

    again = client.call_tool("create_record", **call)

    assert changed(first)["tags"]["added"] == [member(tags[0])]
    assert again.is_error
    assert "red" not in again.text
    assert Thing.objects.count() == 1


@pytest.mark.exposure(Thing={"filter_fields": ["tags"]})
def test_an_answer_is_not_given_again_when_a_value_is_hidden_by_then(client, promised):
    call, _ = promised
    narrow(Thing, fields=["id", "note"])

    again = client.call_tool("create_record", **call)

    assert again.is_error
    assert "was done before" in again.text


def test_what_the_site_makes_of_a_value_is_what_is_shown(client, thing, monkeypatch):
    def save_model(self, request, obj, form, change):
        obj.title = obj.title.upper()
        obj.save()

    monkeypatch.setattr(ThingAdmin, "save_model", save_model)

    assert changed(update(client, thing, title="new")) == {"title": ["T", "NEW"]}
