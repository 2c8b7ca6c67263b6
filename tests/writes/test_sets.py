"""Sets of related records: an update says what it adds and removes, or names the whole set."""

from __future__ import annotations

import pytest
from django import forms

from tests.clients import CheckedClient
from tests.exposure.races import together
from tests.workshop.admin import PartInline, TagAdmin, ThingAdmin, ThingForm
from tests.workshop.models import Tag, Team, Thing

pytestmark = pytest.mark.django_db

#: With the widgets of the admin: a list, keys as text, a search, two lists, boxes.
WIDGETS = ("tags", "tags_raw", "tags_searched", "tags_aside", "tags_boxes")
FORMS = '{"add": [...]}, {"remove": [...]} or {"set": [...]}'


def update(client, record, *, dry_run=False, **values):
    return client.call_tool(
        "update_record", model=record._meta.label_lower, pk=record.pk, values=values,
        dry_run=dry_run,
    )  # fmt: skip


def names(record, field="tags"):
    return sorted(getattr(record, field).values_list("name", flat=True))


@pytest.mark.thorough
@pytest.mark.parametrize("field", WIDGETS)
def test_each_widget_takes_all_three_forms(field, client, thing, tags):
    red, blue, old = tags
    found = []

    for change in (
        {"add": [old.pk]},
        {"remove": [red.pk]},
        {"add": ["red"], "remove": ["blue", str(old.pk)]},
        {"set": [blue.pk, "old"]},
        {"set": []},
    ):
        answer = update(client, thing, **{field: change})
        assert not answer.is_error, answer.text
        found.append(names(thing, field))

    assert found == [["blue", "old", "red"], ["blue", "old"], ["red"], ["blue", "old"], []]


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_bare_list_is_refused_with_the_three_forms(dry_run, client, thing, tags):
    few = update(client, thing, tags=[tags[2].pk], dry_run=dry_run)
    none = update(client, thing, tags=[], dry_run=dry_run)

    for answer in (few, none):
        assert answer.is_error
        assert answer.text.splitlines()[:2] == [
            "Nothing was saved.",
            f"tags: This field takes {FORMS}: a bare list would drop what is not in it.",
        ]
    assert names(thing) == ["blue", "red"]


@pytest.mark.parametrize(
    "value",
    [
        {}, None, 5, "red", {"append": [1]}, {"set": [], "add": []}, {"set": [], "remove": []},
        {"add": [], "remove": [], "set": []}, {"add": [], "pk": 1},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_none_of_the_forms_is_refused_with_all_of_them(value, client, thing):
    answer = update(client, thing, tags=value)

    assert answer.is_error
    assert f"\ntags: This field takes {FORMS}. add and remove may be combined." in answer.text
    assert names(thing) == ["blue", "red"]


@pytest.mark.thorough
@pytest.mark.parametrize("verb", ["add", "remove", "set"])
@pytest.mark.parametrize(
    ("members", "words"),
    [
        (5, "5 is not a list of keys."),
        (None, "null is not a list of keys."),
        (["nobody"], "No tag matches 'nobody'."),
        ([999], "No tag matches 999."),
        (list(range(101)), "At most 100 can be named at once."),
    ],
    ids=["number", "null", "text", "key", "many"],
)
def test_each_form_takes_a_list_of_records_that_are_there(verb, members, words, client, thing):
    answer = update(client, thing, tags={verb: members})

    assert answer.is_error
    assert f"\ntags: {words}" in answer.text
    assert names(thing) == ["blue", "red"]


def test_a_record_that_is_added_and_removed_at_once_is_refused(client, thing, tags):
    answer = update(client, thing, tags={"add": ["old", "red"], "remove": [tags[0].pk]})

    assert answer.is_error
    assert f"\ntags: The same record is in add and in remove: {tags[0].pk}." in answer.text
    assert names(thing) == ["blue", "red"]


@pytest.mark.exposure(Thing={"filter_fields": ["tags"]})
@pytest.mark.parametrize(
    "change", [{"add": ["red"]}, {"remove": ["old"]}, {"add": [], "remove": []}], ids=str
)
def test_adding_a_member_and_removing_another_record_change_nothing(change, client, thing):
    answer = update(client, thing, tags=change)

    assert not answer.is_error, answer.text
    assert list(answer.data["changed"]) == []
    assert names(thing) == ["blue", "red"]


@pytest.mark.exposure(Thing={"filter_fields": ["tags"]})
def test_a_dry_run_shows_what_is_added_and_removed(client, thing):
    answer = update(client, thing, tags={"add": ["old"], "remove": ["red"]}, dry_run=True)

    change = answer.data["changed"]["tags"]
    assert [one["label"] for one in change["added"]] == ["old"]
    assert [one["label"] for one in change["removed"]] == ["red"]
    assert names(thing) == ["blue", "red"]


@pytest.mark.thorough
def test_a_member_that_is_no_choice_any_more_stays_until_it_is_removed(client, thing, tags):
    red, blue, _ = tags

    added = update(client, thing, tags_active={"add": [blue.pk]})
    after_add = names(thing, "tags_active")
    removed = update(client, thing, tags_active={"remove": [red.pk]})
    after_remove = names(thing, "tags_active")
    last = update(client, thing, tags_active={"remove": ["old", blue.pk]})

    assert [one.is_error for one in (added, removed, last)] == [False] * 3
    assert after_add == ["blue", "old", "red"]
    assert after_remove == ["blue", "old"]
    assert names(thing, "tags_active") == []


@pytest.mark.thorough
def test_what_is_no_choice_can_be_removed_in_vain_and_not_be_added(client, thing, tags):
    """Whether it is removed or was never there must not be told by an error."""
    thing.tags_active.set([tags[0]])

    removed = update(client, thing, tags_active={"remove": [tags[2].pk]})
    added = update(client, thing, tags_active={"add": [tags[2].pk]})

    assert not removed.is_error, removed.text
    assert f"\ntags_active: No tag matches {tags[2].pk}." in added.text
    assert names(thing, "tags_active") == ["red"]


def test_members_in_an_order_keep_it_and_new_ones_come_last(client, thing, tags, monkeypatch):
    cleaned = []

    class InOrder(forms.ModelMultipleChoiceField):
        def clean(self, value):
            found = {str(one.pk): one for one in super().clean(value)}
            return [found[str(key)] for key in value]

    class Form(ThingForm):
        tags = InOrder(Tag.objects.all(), required=False)

        def clean_tags(self):
            cleaned.append([one.name for one in self.cleaned_data["tags"]])
            return self.cleaned_data["tags"]

    monkeypatch.setattr(ThingAdmin, "form", Form)
    green = Tag.objects.create(name="green")
    thing.tags.set([tags[2], green])

    answer = update(client, thing, tags={"add": [tags[0].pk], "remove": [green.pk]})

    assert not answer.is_error, answer.text
    assert cleaned == [["old", "red"]]


@pytest.mark.thorough
def test_the_last_member_of_a_set_that_needs_one_is_not_removed(client, thing, monkeypatch):
    class Form(ThingForm):
        tags = forms.ModelMultipleChoiceField(Tag.objects.all())

    monkeypatch.setattr(ThingAdmin, "form", Form)

    one = update(client, thing, tags={"remove": ["red"]})
    last = update(client, thing, tags={"remove": ["blue"]})

    assert not one.is_error, one.text
    assert "\ntags: This field is required." in last.text
    assert names(thing) == ["blue"]


# What the caller does not see


def hide_blue(monkeypatch):
    monkeypatch.setattr(
        TagAdmin, "get_queryset", lambda self, request: Tag.objects.exclude(name="blue")
    )


@pytest.mark.thorough
@pytest.mark.parametrize("field", WIDGETS)
@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({"add": ["old"]}, ["blue", "old", "red"]),
        ({"remove": ["red"]}, ["blue"]),
        ({"add": ["old"], "remove": ["red"]}, ["blue", "old"]),
        ({"set": []}, ["blue"]),
    ],
    ids=str,
)
def test_hidden_members_stay_with_each_form(field, change, left, client, thing, monkeypatch):
    hide_blue(monkeypatch)

    answer = update(client, thing, **{field: change})

    assert not answer.is_error, answer.text
    assert names(thing, field) == left


@pytest.mark.parametrize("verb", ["add", "remove", "set"])
def test_a_hidden_member_is_named_in_vain_like_one_that_is_missing(
    verb, client, thing, tags, monkeypatch
):
    hide_blue(monkeypatch)
    blue = tags[1]

    hidden = update(client, thing, tags={verb: [blue.pk]})
    missing = update(client, thing, tags={verb: [999]})

    assert hidden.is_error
    assert hidden.text.replace(str(blue.pk), "999") == missing.text
    assert names(thing) == ["blue", "red"]


@pytest.mark.thorough
@pytest.mark.exposure(Tag=None)
@pytest.mark.parametrize("verb", ["add", "remove", "set"])
def test_of_a_hidden_model_members_can_be_added_and_none_removed(verb, client, thing, tags):
    member = update(client, thing, tags={verb: [tags[0].pk]})
    other = update(client, thing, tags={verb: [tags[2].pk]})

    assert [one.is_error for one in (member, other)] == [False] * 2
    assert names(thing) == (["blue", "red"] if verb == "remove" else ["blue", "old", "red"])


@pytest.mark.thorough
@pytest.mark.parametrize("change", [{"add": ["old"]}, {"remove": ["red"]}], ids=str)
def test_forms_of_another_admin_add_and_remove_too(change, client, thing, monkeypatch):
    """As with packages that hand over to the ModelAdmin of a child."""
    hide_blue(monkeypatch)
    Tag.objects.update(is_active=True)
    Other = type("Other", (ThingAdmin,), {"change_view": ThingAdmin.change_view})
    monkeypatch.setattr(
        ThingAdmin,
        "change_view",
        lambda self, request, *args, **kwargs: Other(Thing, self.admin_site).change_view(
            request, *args, **kwargs
        ),
    )

    answer = update(client, thing, tags=change)

    assert not answer.is_error, answer.text
    assert names(thing) == (["blue", "old", "red"] if "add" in change else ["blue"])


# New records


@pytest.mark.parametrize(
    "form", [lambda keys: keys, lambda keys: {"set": keys}], ids=["list", "set"]
)
def test_a_new_record_takes_a_bare_list_and_a_whole_set(form, client, tags):
    for keys in ([tags[0].pk, "old"], []):
        answer = client.call_tool(
            "create_record", model="workshop.team", values={"name": "A", "tags": form(keys)}
        )
        assert not answer.is_error, answer.text


@pytest.mark.parametrize("value", [["red"], {"set": ["red"]}, {"add": ["red"]}], ids=str)
def test_a_new_record_has_the_members_that_were_sent(value, client, tags):
    values = {"title": "T", "tags": value, "tags_raw": value}

    answer = client.call_tool("create_record", model="workshop.thing", values=values)

    assert not answer.is_error, answer.text
    thing = Thing.objects.get()
    assert (names(thing), names(thing, "tags_raw")) == (["red"], ["red"])


@pytest.mark.thorough
def test_what_a_new_record_begins_with_is_added_to_and_a_list_is_all(client, tags, monkeypatch):
    red, blue, _ = tags
    monkeypatch.setattr(
        ThingAdmin, "get_changeform_initial_data", lambda self, request: {"tags": [red.pk]}
    )
    found = []

    changes = [{"add": [blue.pk]}, {"add": [blue.pk], "remove": ["red"]}, [blue.pk]]
    for number, value in enumerate(changes):
        values = {"title": "T", "tags": value, "number": number}
        answer = client.call_tool("create_record", model="workshop.thing", values=values)
        assert not answer.is_error, answer.text
        found.append(names(Thing.objects.get(pk=answer.data["pk"])))

    assert found == [["blue", "red"], ["blue"], ["blue"]]


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
            cleaned.append(sorted(one.name for one in self.cleaned_data["labels"]))
            return self.cleaned_data["labels"]

    monkeypatch.setattr(PartInline, "form", PartForm)
    part = thing.parts.order_by("pk")[0]
    thing.parts.exclude(pk=part.pk).delete()

    def save(*rows):
        return client.call_tool(
            "update_record", model="workshop.thing", pk=thing.pk, inlines={"parts": [*rows]}
        )

    refused = save({"pk": part.pk, "labels": ["old"]})
    done = save({"pk": part.pk, "labels": {"add": ["old"]}}, {"name": "n", "labels": ["blue"]})

    assert f"\nparts-0.labels: This field takes {FORMS}: a bare list would drop" in refused.text
    assert not done.is_error, done.text
    assert cleaned == [["old", "red"], ["blue"]]
    rows = writing_of(client, "workshop.thing")["create_record"]["inlines"]["parts"]
    assert rows["items"]["properties"]["labels"]["type"] == ["array", "object"]


# What is told of it


def writing_of(client, model):
    return client.call_tool("describe_model", model=model).data["writing"]


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


def test_a_set_that_can_only_be_changed_is_described_with_the_forms(make_user, tags):
    client = CheckedClient(
        user=make_user("clerk", "view_team", "change_team", "view_tag", is_staff=True)
    )
    Team.objects.create()

    values = writing_of(client, "workshop.team")["update_record"]["values"]

    described = values["properties"]["tags"]
    assert described["type"] == "object"
    assert described["propertyNames"] == {"enum": ["add", "remove", "set"]}
    assert described["additionalProperties"]["items"]["anyOf"] == [
        {"const": str(one.pk), "title": one.name} for one in tags
    ]
    assert f"{FORMS}. add and remove may be combined." in described["description"]


# Two callers at once


@pytest.mark.database
@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
def test_callers_who_add_and_remove_at_once_all_win(boss, thing, tags):
    token = CheckedClient(user=boss).token
    clients = [CheckedClient(token=token, inline=False) for _ in range(4)]
    green = Tag.objects.create(name="green")
    changes = [
        {"add": [green.pk]},
        {"add": [tags[2].pk]},
        {"remove": [tags[0].pk]},
        {"remove": [tags[1].pk]},
    ]

    answers = together(
        lambda number: update(clients[number], thing, tags=changes[number]), count=4
    )

    assert [answer.is_error for answer in answers] == [False] * 4
    assert names(thing) == ["green", "old"]
