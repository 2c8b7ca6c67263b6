"""What a write shows of texts that strangers wrote stands in the fences of its answer."""

from __future__ import annotations

import re

import pytest
from django.contrib import messages

from tests.workshop.admin import site
from tests.workshop.exposed import EXPOSED
from tests.workshop.models import Tag, Thing
from tests.writes.calls import changed, refusal, update

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.exposure(
        Thing={
            "fields": [*EXPOSED[Thing]["fields"], "mail"],
            "filter_fields": ["id", "title", "tags"],
            "untrusted_fields": ["title", "note"],
        },
        Tag={"untrusted_fields": ["name"]},
    ),
]

FENCE = re.compile(r"<data-([0-9a-f]{8})>(.*?)</data-\1>", re.DOTALL)


def texts(answer):
    return [text for _, text in FENCE.findall("".join(strings_in(answer)))]


def strings_in(value):
    if isinstance(value, str):
        yield value
    else:
        for one in value.values() if isinstance(value, dict) else value or ():
            yield from strings_in(one) if isinstance(one, str | list | dict) else ()


def test_texts_before_and_after_are_cut_inside_their_fences(client, thing):
    answer = update(client, thing, title="new", note="y" * 3000)

    change = changed(answer)
    assert texts(change["title"]) == ["T", "new"]
    assert texts(change["note"])[1] == "y" * 200 + "…"
    assert len({mark for mark, _ in FENCE.findall(answer.text)}) == 1


@pytest.mark.thorough
def test_texts_of_several_lines_are_shown_whole_or_cut(client, thing):
    short = changed(update(client, thing, note="a\nb"))
    long = changed(update(client, thing, note="a\n" + "b" * 300))

    assert texts(short["note"])[1] == texts(long["note"])[0] == "\na\nb\n"
    assert texts(long["note"])[1] == "\na\n" + "b" * 198 + "…\n"


def test_a_label_that_is_empty_has_no_fence(client, thing, tags):
    Tag.objects.filter(pk=tags[0].pk).update(name="")

    change = changed(update(client, thing, tags={"remove": [tags[0].pk]}))

    assert change["tags"]["removed"] == [{"pk": tags[0].pk}]


@pytest.mark.parametrize("dry_run", [False, True])
def test_texts_and_labels_of_members_have_one_kind_of_fence(client, thing, tags, dry_run):
    answer = update(client, thing, dry_run=dry_run, title="new", tags={"remove": [tags[0].pk]})

    change = changed(answer)
    # What did not change is not named for its fence.
    assert list(change) == ["title", "tags"]
    assert texts(change["title"]) == ["T", "new"]
    assert texts(change["tags"]) == ["red"]
    assert len({mark for mark, _ in FENCE.findall(answer.text)}) == 1


@pytest.mark.parametrize("values", [{"tag_searched": "e"}, {"tags": {"add": ["e"]}}], ids=repr)
def test_a_text_that_several_records_match_names_them_in_fences(client, thing, tags, values):
    refused = refusal(update(client, thing, **values))

    assert texts([refused]) == ["red", "blue"]
    assert "red" not in FENCE.sub("", refused)


def test_a_question_and_a_message_that_tell_of_texts_are_in_fences(client, tags, monkeypatch):
    def delete_queryset(self, request, queryset):
        messages.warning(request, f"Gone: {queryset.first().name}.")

    monkeypatch.setattr(type(site._registry[Tag]), "delete_queryset", delete_queryset)
    deletion = {"model": "workshop.tag", "pk": [one.pk for one in tags[:2]]}

    asks = client.data("delete_record", **deletion)
    done = client.data("delete_record", **deletion, confirmation=asks["confirmation"])

    assert texts(asks["question"]) == ["Delete tags? 2 records: red, blue."]
    assert [texts(one["text"]) for one in done["messages"]] == [["Gone: red."]]


def writing_of(client):
    return str(client.data("describe_model", model="workshop.thing")["writing"])


def test_a_description_of_a_form_lists_no_labels_that_strangers_wrote(client, thing, tags):
    writing = writing_of(client)

    assert "Key of a workshop.tag" in writing
    assert "red" not in re.findall(r"\w+", writing)


@pytest.mark.exposure(Tag={"untrusted_fields": []})
def test_a_description_of_a_form_lists_other_labels(client, thing, tags):
    assert "red" in re.findall(r"\w+", writing_of(client))
