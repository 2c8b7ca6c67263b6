"""What a write shows of texts that strangers wrote stands in the fences of its answer."""

from __future__ import annotations

import re

import pytest

from tests.workshop.exposed import EXPOSED
from tests.workshop.models import Tag, Thing

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


def update(client, thing, *, dry_run=False, **values):
    answer = client.call_tool(
        "update_record", model="workshop.thing", pk=thing.pk, values=values, dry_run=dry_run
    )
    assert not answer.is_error, answer.text
    return answer


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

    changed = answer.data["changed"]
    assert texts(changed["title"]) == ["T", "new"]
    assert texts(changed["note"])[1] == "y" * 200 + "…"
    assert texts(answer.data["record"]["note"]) == ["y" * 2000]
    assert len({mark for mark, _ in FENCE.findall(answer.text)}) == 1


@pytest.mark.thorough
def test_texts_of_several_lines_are_shown_whole_or_cut(client, thing):
    short = update(client, thing, note="a\nb").data["changed"]
    long = update(client, thing, note="a\n" + "b" * 300).data["changed"]

    assert texts(short["note"])[1] == texts(long["note"])[0] == "\na\nb\n"
    assert texts(long["note"])[1] == "\na\n" + "b" * 198 + "…\n"


def test_members_have_labels_in_fences(client, thing, tags):
    changed = update(client, thing, tags={"remove": [tags[0].pk]}).data["changed"]

    assert texts(changed["tags"]["removed"]) == ["red"]


def test_a_label_that_is_empty_has_no_fence(client, thing, tags):
    Tag.objects.filter(pk=tags[0].pk).update(name="")

    changed = update(client, thing, tags={"remove": [tags[0].pk]}).data["changed"]

    assert changed["tags"]["removed"] == [{"pk": tags[0].pk}]


def test_a_dry_run_has_one_kind_of_fence(client, thing, tags):
    answer = update(client, thing, dry_run=True, title="new", tags={"remove": [tags[0].pk]})

    changed = answer.data["changed"]
    assert texts(changed["title"]) == ["T", "new"]
    assert texts(changed["tags"]) == ["red"]
    assert len({mark for mark, _ in FENCE.findall(answer.text)}) == 1


def test_what_did_not_change_is_not_named_for_its_fence(client, thing):
    changed = update(client, thing, dry_run=True, title="new").data["changed"]

    assert list(changed) == ["title"]


@pytest.mark.parametrize("values", [{"tag_searched": "e"}, {"tags": {"add": ["e"]}}], ids=repr)
def test_a_text_that_several_records_match_names_them_in_fences(client, thing, tags, values):
    refused = client.call_tool("update_record", model="workshop.thing", pk=thing.pk, values=values)

    assert refused.is_error
    assert texts([refused.text]) == ["red", "blue"]
    assert "red" not in FENCE.sub("", refused.text)


def test_a_description_of_a_form_lists_no_labels_that_strangers_wrote(client, thing, tags):
    writing = client.call_tool("describe_model", model="workshop.thing").data["writing"]

    assert "Key of a workshop.tag" in str(writing)
    assert "red" not in re.findall(r"\w+", str(writing))


@pytest.mark.exposure(Tag={"untrusted_fields": []})
def test_a_description_of_a_form_lists_other_labels(client, thing, tags):
    writing = client.call_tool("describe_model", model="workshop.thing").data["writing"]

    assert "red" in re.findall(r"\w+", str(writing))
