"""Sets of related records: an update says what it adds and removes, or names the whole set, and
members that the caller does not see stay in it.
"""

from __future__ import annotations

import pytest
from django import forms
from django.contrib.admin.models import LogEntry

from tests.workshop.admin import PartInline, TeamForm, ThingAdmin, ThingForm
from tests.workshop.models import Membership, Tag, Team, Thing
from tests.writes.calls import HIDINGS, changed, hide_by_admin, hide_by_exposure, names, update

pytestmark = pytest.mark.django_db

#: With the widgets of the admin: a list, keys as text, a search, two lists, boxes.
WIDGETS = ("tags", "tags_raw", "tags_searched", "tags_aside", "tags_boxes")
FORMS = '{"add": [...]}, {"remove": [...]} or {"set": [...]}'


@pytest.fixture(params=HIDINGS)
def blue(request, monkeypatch, tags):
    """A tag that the rules for tags hide from everybody."""
    request.param(monkeypatch, Tag, name="blue")
    return tags[1]


@pytest.mark.thorough
@pytest.mark.parametrize("field", WIDGETS)
@pytest.mark.parametrize("hide", [None, *HIDINGS])
def test_each_widget_takes_all_three_forms_and_keeps_hidden_members(
    hide, field, client, thing, tags, monkeypatch
):
    red, _, old = tags
    hidden = ["blue"] if hide else []
    if hide:
        hide(monkeypatch, Tag, name="blue")
    left = []

    for change in (
        {"add": [old.pk]},
        {"remove": [red.pk]},
        {"add": ["red"], "remove": [str(old.pk)]},
        {"set": ["old"]},
        {"set": []},
    ):
        answer = update(client, thing, **{field: change})
        assert list(changed(answer)) == [field]
        left.append(names(thing, field))

    assert left == [
        ["blue", "old", "red"],
        ["blue", "old"],
        ["blue", "red"],
        [*hidden, "old"],
        hidden,
    ]


BARE = f"This field takes {FORMS}: a bare list would drop what is not in it."
NO_FORM = f"This field takes {FORMS}. add and remove may be combined."


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    ("value", "words"),
    [
        (["red"], BARE),
        ([], BARE),
        ({}, NO_FORM),
        (None, NO_FORM),
        (5, NO_FORM),
        ("red", NO_FORM),
        ({"append": [1]}, NO_FORM),
        ({"set": [], "add": []}, NO_FORM),
        ({"set": [], "remove": []}, NO_FORM),
        ({"add": [], "pk": 1}, NO_FORM),
        ({"add": ["old", "red"], "remove": ["red"]}, "The same record is in add and in remove: "),
        *(
            ({verb: members}, words)
            for verb in ("add", "remove", "set")
            for members, words in [
                (5, "5 is not a list of keys."),
                (None, "null is not a list of keys."),
                (["nobody"], "No tag matches 'nobody'."),
                ([999], "No tag matches 999."),
                (list(range(101)), "At most 100 can be named at once."),
            ]
        ),
    ],
    ids=lambda one: str(one)[:30],
)
def test_what_is_no_change_of_a_set_is_refused(value, words, dry_run, client, thing):
    answer = update(client, thing, tags=value, dry_run=dry_run)

    assert answer.is_error
    assert answer.text.startswith(f"Nothing was saved.\ntags: {words}")
    assert names(thing) == ["blue", "red"]


@pytest.mark.exposure(Thing={"filter_fields": ["tags"]})
@pytest.mark.parametrize(
    ("hide", "change"),
    [
        (None, {"add": ["red"]}),
        (None, {"remove": ["old"]}),
        (None, {"add": [], "remove": []}),
        (hide_by_admin, {"set": ["red"]}),
        (hide_by_exposure, {"set": ["red"]}),
    ],
)
def test_members_that_come_again_and_strangers_that_leave_change_nothing(
    hide, change, client, thing, monkeypatch
):
    if hide:
        hide(monkeypatch, Tag, name="blue")

    answer = update(client, thing, tags=change)

    assert list(changed(answer)) == []
    assert names(thing) == ["blue", "red"]
    assert LogEntry.objects.get().get_change_message() == (
        "Added note “through an assistant: mcp_django.testing”."
    )


@pytest.mark.thorough
def test_a_member_that_is_no_choice_any_more_stays_until_it_is_removed(client, thing, tags):
    red, blue, _ = tags
    left = []

    for change in ({"add": [blue.pk]}, {"remove": [red.pk]}, {"remove": ["old", blue.pk]}):
        assert changed(update(client, thing, tags_active=change))
        left.append(names(thing, "tags_active"))

    assert left == [["blue", "old", "red"], ["blue", "old"], []]


@pytest.mark.thorough
def test_what_is_no_choice_can_be_removed_in_vain_and_not_be_added(client, thing, tags):
    """Whether it is removed or was never there must not be told by an error."""
    thing.tags_active.set([tags[0]])

    changed(update(client, thing, tags_active={"remove": [tags[2].pk]}))
    added = update(client, thing, tags_active={"add": [tags[2].pk]})

    assert f"\ntags_active: No tag matches {tags[2].pk}." in added.text
    assert names(thing, "tags_active") == ["red"]


def test_a_hidden_member_that_is_no_choice_any_more_stays_too(client, thing, tags, blue):
    thing.tags_active.set(tags)
    Tag.objects.filter(pk=blue.pk).update(is_active=False)

    changed(update(client, thing, tags_active={"set": [tags[0].pk]}))

    # What can be seen, and is no choice any more, can be taken away.
    assert names(thing, "tags_active") == ["blue", "red"]


@pytest.mark.parametrize(
    ("hide", "change", "order"),
    [
        (None, {"add": ["red"], "remove": ["blue"]}, ["old", "red"]),
        *((hide, {"set": ["old", "red"]}, ["old", "red", "blue"]) for hide in HIDINGS),
    ],
)
def test_members_in_an_order_keep_it_and_new_and_hidden_ones_come_last(
    hide, change, order, client, thing, tags, monkeypatch
):
    cleaned = []

    class InOrder(forms.ModelMultipleChoiceField):
        def clean(self, value):
            by_key = {str(tag.pk): tag for tag in super().clean(value)}
            return [by_key[str(key)] for key in value]

    class Form(ThingForm):
        tags = InOrder(Tag.objects.all(), required=False)

        def clean_tags(self):
            cleaned.append([tag.name for tag in self.cleaned_data["tags"]])
            return self.cleaned_data["tags"]

    monkeypatch.setattr(ThingAdmin, "form", Form)
    thing.tags.set([tags[2], tags[1]])
    if hide:
        hide(monkeypatch, Tag, name="blue")

    changed(update(client, thing, tags=change))

    assert cleaned == [order]


@pytest.mark.thorough
def test_the_last_member_of_a_set_that_needs_one_is_not_removed(client, thing, monkeypatch):
    class Form(ThingForm):
        tags = forms.ModelMultipleChoiceField(Tag.objects.all())

    monkeypatch.setattr(ThingAdmin, "form", Form)

    changed(update(client, thing, tags={"remove": ["red"]}))
    last = update(client, thing, tags={"remove": ["blue"]})

    assert "\ntags: This field is required." in last.text
    assert names(thing) == ["blue"]


# What the caller does not see


@pytest.mark.parametrize(
    ("verb", "dry_run"), [("add", False), ("remove", False), ("set", False), ("set", True)]
)
def test_a_hidden_member_is_named_in_vain_like_one_that_is_missing(
    verb, dry_run, client, thing, blue
):
    hidden = update(client, thing, tags={verb: [blue.pk]}, dry_run=dry_run)
    missing = update(client, thing, tags={verb: [999]}, dry_run=dry_run)

    assert hidden.is_error
    assert hidden.text.replace(str(blue.pk), "999") == missing.text
    assert names(thing) == ["blue", "red"]


@pytest.mark.exposure(Tag=None)
@pytest.mark.parametrize("verb", ["add", "remove", "set"])
def test_of_a_hidden_model_members_can_be_added_and_none_removed(verb, client, thing, tags):
    member = update(client, thing, tags={verb: [tags[0].pk]})
    other = update(client, thing, tags={verb: [tags[2].pk]})

    assert member.is_error is other.is_error is False
    assert names(thing) == (["blue", "red"] if verb == "remove" else ["blue", "old", "red"])


@pytest.mark.thorough
@pytest.mark.exposure(Tag=None)
@pytest.mark.parametrize("keys", [[0], [0, 1], [2], []])
def test_a_dry_run_tells_nothing_of_a_hidden_relation(keys, client, thing, tags):
    answer = update(client, thing, tags={"set": [tags[at].pk for at in keys]}, dry_run=True)

    assert answer.data == {"dry_run": True, "changed": {"tags": "Set. You cannot read it."}}


def test_rows_between_keep_what_else_they_hold(client, tags, blue):
    team = Team.objects.create(name="A")
    chief = Membership.objects.create(team=team, tag=blue, role="chief")
    Membership.objects.create(team=team, tag=tags[0])

    changed(update(client, team, tags={"set": [tags[2].pk]}))

    assert names(team) == ["blue", "old"]
    chief.refresh_from_db()
    assert chief.role == "chief"


def test_fields_that_only_the_form_has_keep_hidden_members_too(client, tags, blue, monkeypatch):
    """As sites have them for the other side of a relation."""

    class FieldOfTheForm(TeamForm):
        tags = None
        labels = forms.ModelMultipleChoiceField(Tag.objects.all(), required=False)

        def __init__(self, *args, **kwargs):
            forms.ModelForm.__init__(self, *args, **kwargs)
            self.fields["labels"].initial = self.instance.tags.all

        def _save_m2m(self):
            self.instance.tags.set(self.cleaned_data["labels"].order_by("pk"))

    monkeypatch.setattr("tests.workshop.admin.TeamAdmin.form", FieldOfTheForm)
    team = Team.objects.create(name="A")
    team.tags.set([blue, tags[0]])

    changed(update(client, team, labels={"set": [tags[2].pk]}))

    assert names(team) == ["blue", "old"]


# New records


@pytest.mark.parametrize("model", [Thing, Team])
@pytest.mark.parametrize(
    ("value", "members"),
    [
        (["red"], ["red"]),
        ({"set": ["red"]}, ["red"]),
        ({"add": ["red"]}, ["red"]),
        ([], []),
        ({"set": []}, []),
    ],
    ids=str,
)
def test_a_new_record_has_the_members_that_were_sent(model, value, members, client, tags):
    values = {"title" if model is Thing else "name": "T", "tags": value}

    client.data("create_record", model=model._meta.label_lower, values=values)

    assert names(model.objects.get()) == members


@pytest.mark.thorough
def test_what_a_new_record_begins_with_is_added_to_and_a_list_is_all(client, tags, monkeypatch):
    red, blue, _ = tags
    monkeypatch.setattr(
        ThingAdmin, "get_changeform_initial_data", lambda self, request: {"tags": [red.pk]}
    )
    members = []

    changes = [{"add": [blue.pk]}, {"add": [blue.pk], "remove": ["red"]}, [blue.pk]]
    for number, value in enumerate(changes):
        values = {"title": "T", "tags": value, "number": number}
        made = client.data("create_record", model="workshop.thing", values=values)
        members.append(names(Thing.objects.get(pk=made["pk"])))

    assert members == [["blue", "red"], ["blue"], ["blue"]]


@pytest.mark.thorough
def test_rows_in_the_form_have_sets_as_records_do(client, thing, tags, monkeypatch):
    cleaned = []

    class PartForm(forms.ModelForm):
        labels = forms.ModelMultipleChoiceField(Tag.objects.all(), required=False)

        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            if self.instance.pk:
                self.initial["labels"] = [tags[0].pk]

        def clean_labels(self):
            cleaned.append(sorted(tag.name for tag in self.cleaned_data["labels"]))
            return self.cleaned_data["labels"]

    monkeypatch.setattr(PartInline, "form", PartForm)
    part = thing.parts.order_by("pk")[0]
    thing.parts.exclude(pk=part.pk).delete()
    added = {"pk": part.pk, "labels": {"add": ["old"]}}

    refused = update(client, thing, inlines={"parts": [{"pk": part.pk, "labels": ["old"]}]})
    changed(update(client, thing, inlines={"parts": [added, {"name": "n", "labels": ["blue"]}]}))

    assert f"\nparts, your row 1 (key {part.pk}): labels: {BARE}" in refused.text
    assert cleaned == [["old", "red"], ["blue"]]
    rows = writing_of(client, "workshop.thing")["create_record"]["inlines"]["parts"]
    assert rows["items"]["properties"]["labels"]["type"] == "object"


# How it is described


def writing_of(client, model):
    return client.data("describe_model", model=model)["writing"]


def test_an_update_like_a_creation_is_described_with_the_forms_of_its_sets(client, thing):
    writing = writing_of(client, "workshop.thing")

    assert writing["create_record"]["values"]["properties"]["tags"]["type"] == "array"
    assert writing["update_record"]["values"] == (
        "The fields of create_record, each of them optional. In place of a list, tags, tags_raw, "
        "tags_searched, tags_aside, tags_boxes, tags_active take "
        f"{FORMS}. add and remove may be combined."
    )
    assert writing_of(client, "workshop.tag")["update_record"]["values"] == (
        "The fields of create_record, each of them optional."
    )


def test_a_set_that_can_only_be_changed_is_described_with_the_forms(make_client, tags):
    client = make_client("view_team", "change_team", "view_tag")
    Team.objects.create()

    values = writing_of(client, "workshop.team")["update_record"]["values"]

    described = values["properties"]["tags"]
    assert described["type"] == "object"
    assert described["propertyNames"] == {"enum": ["add", "remove", "set"]}
    assert described["additionalProperties"]["items"]["anyOf"] == [
        {"const": str(tag.pk), "title": tag.name} for tag in tags
    ]
    assert f"{FORMS}. add and remove may be combined." in described["description"]
