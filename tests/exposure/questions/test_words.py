"""People are asked in words and labels, and no value can pass for another line of the question."""

from __future__ import annotations

import pytest
from django import forms

from mcp_django.exposure.admin_bridge.deletes import deletion_words
from mcp_django.exposure.admin_bridge.relations import related_words
from mcp_django.exposure.questions.words import (
    choice_words,
    counted_names,
    field_line,
    question,
    said,
    value_lines,
)
from mcp_django.models import ExposedTool
from tests.depot.models import Parcel
from tests.exposure.test_permissions import rights_of
from tests.workshop.exposed import exposed
from tests.workshop.models import Tag, Thing
from tests.writes.calls import asked

pytestmark = pytest.mark.filterwarnings("ignore:Overriding get_action")


@pytest.mark.parametrize(
    ("title", "labels", "count", "asked"),
    [
        ("Cancel selected orders…", ["A-1"], 1, "Cancel selected orders? 1 record: A-1."),
        ("Delete?", ["a", "b"], 2, "Delete? 2 records: a, b."),
        ("Ship...", list("abcde"), 14, "Ship? 14 records: a, b, c, d, e and 9 more."),
        ("Hire", [], 0, "Hire?"),
        ("Two\nlines:", [], 3, "Two lines? 3 records."),
        # Nothing turns the rest of the line round, and letters that are joined stay so.
        ("Ship", ["ok\u202e ?x\u2066\u200b"], 1, "Ship? 1 record: ok ?x."),
        ("Ship", ["x\u200cy\u200d"], 1, "Ship? 1 record: x\u200cy\u200d."),
    ],
)
def test_a_question_names_the_title_and_the_records(title, labels, count, asked):
    assert question(title, labels=labels, count=count) == asked
    # Parts that are empty leave no gap.
    assert question("Ship", parts=["", "Reason: x", ""]) == "Ship?\n\nReason: x"


@pytest.mark.parametrize(
    ("value", "line"),
    [
        *((value, f"A name: {value}") for value in ("x", 5, None)),
        *((True, "A name: Yes"), ("", "A name: None"), ({}, "A name:\n    None")),
        (["a", 1], "A name: a, 1"),
        ({"b": {"c": 1}}, "A name:\n    B:\n        C: 1"),
        ([{"b": 1}, {"b": 2}], "A name:\n    1:\n        B: 1\n    2:\n        B: 2"),
        ("x\n\nRefund: No", "A name:\n    x\n    \n    Refund: No"),
        *((f"x{end}Refund: No", "A name:\n    x\n    Refund: No") for end in ("\r\n", "\u2028")),
        ("x" * 600, f"A name: {'x' * 500}… (cut here)"),
    ],
    ids=repr,
)
def test_a_value_is_said_without_json(value, line):
    assert value_lines({"a_name": value}) == line
    # A name is no line of its own, and very many lines are cut.
    assert value_lines({"a\nRefund: No\nb": 1}) == "A refund: no b: 1"
    assert len(value_lines({str(at): "x" * 400 for at in range(1000)})) < 3100


class OrderForm(forms.Form):
    reason = forms.CharField(label="Reason:")
    refund = forms.BooleanField(required=False)
    carrier = forms.ChoiceField(choices=[("ups", "UPS"), ("Others", [("dhl", "DHL")])])
    sizes = forms.MultipleChoiceField(choices=[("s", "Small"), ("l", "Large")])
    paper = forms.FileField()


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("reason", "Weather", "Reason: Weather"),
        ("refund", True, "Refund: Yes"),
        ("carrier", "dhl", "Carrier: DHL"),
        ("carrier", "nobody", "Carrier: nobody"),
        ("sizes", ["s", "l"], "Sizes: Small, Large"),
        ("paper", {"filename": "a.txt", "data": "x" * 5000}, "Paper: a.txt"),
    ],
)
def test_a_value_of_a_form_is_said_by_its_labels(name, value, line):
    assert field_line(OrderForm()[name], value, related=None) == line


def test_a_choice_of_a_plain_page_is_said_by_its_title():
    options = [{"const": "1", "title": "One"}]

    assert choice_words({"oneOf": options}, "1") == "One"
    assert choice_words({"items": {"anyOf": options}}, ["1", "2"]) == "One, 2"
    assert choice_words({"items": {"anyOf": options}}, []) == "None"
    assert choice_words({"type": "string"}, "free") == "free"


@pytest.mark.django_db
def test_numbers_of_records_and_what_may_not_be_deleted_are_said_by_the_names_of_models():
    numbers = counted_names({"workshop.part": 1, "workshop.tag": 2, "workshop.job": 0})
    words = deletion_words({"permission_lacking_for": ["workshop.part"]}, Thing, 1)

    assert numbers == "1 part and 2 tags"
    assert words == "You may not delete records of workshop.part."


# In calls


@pytest.fixture
def _workshop(settings, tmp_path, request):
    settings.MEDIA_ROOT = tmp_path
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "ADMIN_SITES": ["workshop"]}
    marker = request.node.get_closest_marker("exposure")
    with exposed(**({} if marker is None else marker.kwargs)):
        yield


@pytest.mark.thorough
@pytest.mark.django_db
@pytest.mark.usefixtures("_workshop")
@pytest.mark.exposure(Tag={"label_fields": ["name"]})
def test_a_change_that_staff_want_confirmed_is_asked_by_labels(asker):
    ExposedTool.objects.create(name="update_record", needs_confirmation=True)
    red, blue = Tag.objects.create(name="red"), Tag.objects.create(name="blue")
    thing = Thing.objects.create(title="T", tag=blue)
    thing.tags.set([red])
    values = {"tag": red.pk, "state": "paid", "tags": {"add": [blue.pk], "remove": [red.pk]}}

    done = asker.call_tool("update_record", model="workshop.thing", pk=thing.pk, values=values)

    assert asked(asker) == (
        f"Change this thing? 1 record: {thing.pk}.\n\n"
        "Tag: red\nState: Paid\nTags: add blue; remove red"
    )
    assert not done.is_error, done.text


@pytest.mark.django_db
@pytest.mark.usefixtures("_workshop")
@pytest.mark.exposure(Tag={"label_fields": ["name"]})
def test_the_preview_of_a_deletion_has_the_words_of_the_question(asker, make_client):
    made = [Tag.objects.create(name=name) for name in ("red", "b\nRefund: No")]
    call = {"model": "workshop.tag", "pk": [one.pk for one in made]}

    shown = make_client(is_superuser=True).call_tool("delete_record", **call)
    asker.call_tool("delete_record", **call)

    assert shown.data["question"] == asked(asker)
    assert asked(asker).startswith("Delete tags? 2 records: red, b Refund: No.")


@pytest.mark.django_db
@pytest.mark.usefixtures("_workshop")
@pytest.mark.exposure(
    Tag={
        "label_fields": ["name"],
        "get_queryset": lambda self, request: Tag.objects.exclude(name="hidden"),
    }
)
def test_the_label_of_a_record_that_the_caller_does_not_see_is_in_no_question(asker):
    ExposedTool.objects.create(name="update_record", needs_confirmation=True)
    hidden = Tag.objects.create(name="hidden")
    thing = Thing.objects.create(title="T", tag=hidden)

    asker.call_tool(
        "update_record",
        model="workshop.thing",
        pk=thing.pk,
        values={"title": "U", "tags": {"remove": [hidden.pk]}},
    )

    assert "hidden" not in str(asker.questions)


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["ship_declared", "ship"])
def test_a_page_is_asked_about_with_its_own_words_and_the_labels_of_its_form(depot, boss, name):
    parcel = Parcel.objects.create(number="n0")

    shown = boss.call_tool(f"depot_parcel_{name}", pks=[parcel.pk], answer={"carrier": "ups"})

    assert shown.data["question"].endswith("1 parcels leave.\n\nCarrier: UPS")
    assert "{" not in shown.data["question"]


@pytest.mark.django_db
def test_a_value_that_finds_no_record_is_said_as_it_was_sent(boss):
    field = forms.ModelChoiceField(Tag.objects.all())

    assert related_words(rights_of(boss), field, "nothing") == said("nothing")
