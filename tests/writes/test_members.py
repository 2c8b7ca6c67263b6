"""Sets of related records: those whom the caller cannot see stay in them."""

from __future__ import annotations

import pytest
from django import forms
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.admin import GenericTabularInline
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from tests.workshop.admin import PartAdmin, PartInline, TagAdmin, TeamForm, ThingAdmin, ThingForm
from tests.workshop.models import Membership, Part, Remark, Tag, Team, Thing

pytestmark = pytest.mark.django_db

#: With the widgets of the admin: a list, keys as text, a search, two lists, boxes.
WIDGETS = ("tags", "tags_raw", "tags_searched", "tags_aside", "tags_boxes")


def update(client, record, *, dry_run=False, **values):
    return client.call_tool(
        "update_record", model=record._meta.label_lower, pk=record.pk, values=values,
        dry_run=dry_run,
    )  # fmt: skip


def names(record, field="tags"):
    return sorted(getattr(record, field).values_list("name", flat=True))


def hide_by_admin(monkeypatch):
    monkeypatch.setattr(
        TagAdmin, "get_queryset", lambda self, request: Tag.objects.exclude(name="blue")
    )


def hide_by_exposure(monkeypatch):
    monkeypatch.setattr(
        registry._classes[Tag],
        "get_queryset",
        lambda self, request: Tag.objects.exclude(name="blue"),
    )
    registry.forget_resolved()


def hide_by_object(monkeypatch):
    monkeypatch.setattr(
        TagAdmin,
        "has_view_permission",
        lambda self, request, obj=None: obj is None or obj.name != "blue",
    )


@pytest.fixture(params=[hide_by_admin, hide_by_exposure, hide_by_object])
def blue(request, monkeypatch, tags):
    """A tag that the rules for tags hide from everybody."""
    request.param(monkeypatch)
    return tags[1]


@pytest.mark.thorough
@pytest.mark.parametrize("field", WIDGETS)
def test_members_that_are_hidden_stay_when_others_are_set(field, client, thing, tags, blue):
    old = tags[2]

    other = update(client, thing, **{field: {"set": [old.pk]}})
    after_other = names(thing, field)
    nobody = update(client, thing, **{field: {"set": []}})

    assert not other.is_error, other.text
    assert list(other.data["changed"]) == [field]
    assert after_other == ["blue", "old"]
    assert not nobody.is_error, nobody.text
    assert names(thing, field) == ["blue"]


@pytest.mark.exposure(Thing={"filter_fields": ["tags"]})
@pytest.mark.parametrize("blue", [hide_by_admin, hide_by_exposure], indirect=True)
def test_the_same_visible_members_are_no_change(client, thing, tags, blue):
    answer = update(client, thing, tags={"set": [tags[0].pk]})

    assert not answer.is_error, answer.text
    assert list(answer.data["changed"]) == []
    assert names(thing) == ["blue", "red"]
    assert LogEntry.objects.get().get_change_message() == (
        "Added note “through an assistant: mcp_django.testing”."
    )


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_hidden_member_is_named_in_vain_like_one_that_is_missing(
    dry_run, client, thing, tags, blue
):
    hidden = update(client, thing, tags={"set": [blue.pk]}, dry_run=dry_run)
    missing = update(client, thing, tags={"set": [999]}, dry_run=dry_run)

    assert hidden.is_error
    assert hidden.text.replace(str(blue.pk), "999") == missing.text
    assert names(thing) == ["blue", "red"]


def test_a_hidden_member_that_is_no_choice_any_more_stays_too(client, thing, tags, blue):
    thing.tags_active.set(tags)
    Tag.objects.filter(pk=blue.pk).update(is_active=False)

    answer = update(client, thing, tags_active={"set": [tags[0].pk]})

    # What can be seen, and is no choice any more, can be taken away.
    assert not answer.is_error, answer.text
    assert names(thing, "tags_active") == ["blue", "red"]


@pytest.mark.exposure(Tag=None)
def test_all_members_of_a_hidden_model_stay(client, thing, tags):
    answer = update(client, thing, tags={"set": [tags[2].pk]})

    assert not answer.is_error, answer.text
    assert names(thing) == ["blue", "old", "red"]


def test_rows_between_keep_what_else_they_hold(client, tags, blue):
    team = Team.objects.create(name="A")
    kept = Membership.objects.create(team=team, tag=blue, role="chief")
    Membership.objects.create(team=team, tag=tags[0])

    answer = update(client, team, tags={"set": [tags[2].pk]})

    assert not answer.is_error, answer.text
    assert names(team) == ["blue", "old"]
    kept.refresh_from_db()
    assert kept.role == "chief"


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

    answer = update(client, team, labels={"set": [tags[2].pk]})

    assert not answer.is_error, answer.text
    assert names(team) == ["blue", "old"]


def test_a_field_that_gives_a_list_in_an_order_keeps_it(client, thing, tags, blue, monkeypatch):
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

    answer = update(client, thing, tags={"set": [tags[2].pk, tags[0].pk]})

    assert not answer.is_error, answer.text
    assert cleaned == [["old", "red", "blue"]]


def test_forms_of_another_admin_keep_hidden_members_too(client, thing, tags, blue, monkeypatch):
    """As with packages that hand over to the ModelAdmin of a child."""
    Tag.objects.update(is_active=True)

    class Other(ThingAdmin):
        pass

    change_view = ThingAdmin.change_view
    monkeypatch.setattr(Other, "change_view", change_view, raising=False)
    monkeypatch.setattr(
        ThingAdmin,
        "change_view",
        lambda self, request, *args, **kwargs: Other(Thing, self.admin_site).change_view(
            request, *args, **kwargs
        ),
    )

    answer = update(client, thing, tags={"set": [tags[2].pk]})

    assert not answer.is_error, answer.text
    assert names(thing) == ["blue", "old"]
    assert PartInline in Other.inlines


def test_a_new_record_has_the_members_that_were_sent(client, tags, blue):
    answer = client.call_tool(
        "create_record", model="workshop.team", values={"name": "A", "tags": [tags[0].pk]}
    )

    assert not answer.is_error, answer.text
    assert names(Team.objects.get()) == ["red"]


# Versions and differences


def read(client, record):
    answer = client.call_tool("get_record", model=record._meta.label_lower, pk=record.pk)
    return answer.data["_version"]


def change_with(client, record, version):
    return client.call_tool(
        "update_record", model="workshop.thing", pk=record.pk, values={"title": "mine"},
        version=version,
    )  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize(
    "change",
    [
        lambda thing, tags: thing.tags.add(tags[2]),
        lambda thing, tags: thing.tags_boxes.remove(tags[0]),
        lambda thing, tags: thing.tags.set([tags[0], tags[2]]),
        lambda thing, tags: thing.parts.update(quantity=9),
        lambda thing, tags: thing.parts.create(name="new"),
        lambda thing, tags: thing.parts.first().delete(),
    ],
    ids=["added", "removed", "replaced", "row changed", "row added", "row deleted"],
)
def test_a_change_of_members_or_rows_is_another_version(change, client, thing, tags):
    version = read(client, thing)
    change(thing, tags)

    refused = change_with(client, thing, version)
    now = read(client, thing)
    done = change_with(client, thing, now)

    assert "This record was changed after you read it." in refused.text
    assert f"its version is now {now}." in refused.text
    assert not done.is_error, done.text
    assert read(client, thing) == done.data["version"]


@pytest.mark.exposure(Tag=None)
def test_members_of_a_hidden_model_count_for_the_version(client, thing, tags):
    version = read(client, thing)
    thing.tags.add(tags[2])

    assert change_with(client, thing, version).is_error


def test_a_created_record_has_the_version_that_reading_gives(client, tags):
    made = client.call_tool(
        "create_record",
        model="workshop.thing",
        values={"title": "T", "tags": [tags[0].pk]},
        inlines={"parts": [{"name": "p"}]},
    ).data

    assert made["version"] == read(client, Thing.objects.get())


def test_hidden_rows_do_not_count_for_the_version(client, thing, monkeypatch):
    monkeypatch.setattr(
        PartAdmin, "get_queryset", lambda self, request: Part.objects.exclude(name="hidden")
    )
    version = read(client, thing)
    thing.parts.create(name="hidden")
    thing.scraps.create(text="of a hidden model")

    assert read(client, thing) == version


def test_generic_rows_count_for_the_version(client, thing, monkeypatch):
    class RemarkInline(GenericTabularInline):
        model = Remark

    monkeypatch.setattr(ThingAdmin, "inlines", [RemarkInline])
    options = {"fields": ["id", "text"], "level": Level.WRITE}
    registry.register(Remark, type("RemarkExposure", (ModelExposure,), options))
    try:
        before = read(client, thing)
        Remark.objects.create(target=Tag.objects.first(), text="elsewhere")
        same = read(client, thing)
        Remark.objects.create(target=thing, text="here")
        after = read(client, thing)
    finally:
        registry.unregister(Remark)

    assert before == same != after


def test_inlines_that_cannot_be_told_leave_the_record(client, thing, monkeypatch, caplog):
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
            client.call_tool("get_record", model="workshop.thing", pk=thing.pk)
        return [one["sql"] for one in captured]

    queries()
    few = queries()
    thing.tags.set(Tag.objects.bulk_create(Tag(name=str(at)) for at in range(50)))
    Part.objects.bulk_create(Part(thing=thing, name=str(at)) for at in range(50))
    many = queries()

    assert len(few) == len(many)
    between = [sql for sql in many if "workshop_thing_tags" in sql]
    assert len(between) == len(Thing._meta.many_to_many) == 6
    assert len([sql for sql in many if "workshop_part" in sql]) == 1


@pytest.mark.exposure(Thing={"filter_fields": ["tags"]})
def test_a_dry_run_names_who_comes_and_who_goes(client, thing, tags):
    answer = update(client, thing, tags={"set": [tags[2].pk]}, dry_run=True)

    change = answer.data["changed"]["tags"]
    assert [one["label"] for one in change["added"]] == ["old"]
    assert sorted(one["label"] for one in change["removed"]) == ["blue", "red"]


@pytest.mark.thorough
@pytest.mark.parametrize("keys", [[0], [0, 1], [2], []])
@pytest.mark.exposure(Tag=None)
def test_a_dry_run_tells_nothing_of_a_hidden_relation(keys, client, thing, tags):
    answer = update(client, thing, tags={"set": [tags[at].pk for at in keys]}, dry_run=True)

    assert answer.data == {"dry_run": True, "changed": {"tags": None}}
