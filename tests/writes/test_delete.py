"""Records are deleted as the admin would, after somebody was shown what goes along."""

from __future__ import annotations

import pytest
from django.contrib.admin.actions import delete_selected
from django.contrib.admin.models import LogEntry
from django.db.models import CASCADE, SET_NULL

from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from tests.clients import CheckedClient
from tests.workshop.admin import JobAdmin, PartAdmin, TagAdmin, ThingAdmin
from tests.workshop.models import Job, Keeper, Part, Scrap, Tag, Thing

pytestmark = pytest.mark.django_db


def delete(client, model="workshop.thing", **arguments):
    return client.call_tool("delete_record", model=model, **arguments)


def agree(client, preview, model="workshop.thing", **arguments):
    token = preview.data["confirmation"]
    return delete(client, model, confirmation=token, **arguments)


def test_the_first_call_shows_what_would_go_and_the_second_does_it(client, thing, boss):
    shown = delete(client, pk=thing.pk)

    assert shown.data["would_delete"]["workshop.part"] == 3
    assert shown.data["and_other_records"] is True  # scraps, and rows between
    assert "scrap" not in shown.text
    assert Thing.objects.exists()

    done = agree(client, shown, pk=thing.pk)

    assert not done.is_error, done.text
    assert done.data["deleted"]["workshop.thing"] == 1
    assert done.data["keys"] == [thing.pk]
    assert [model.objects.count() for model in (Thing, Part, Scrap)] == [0, 0, 0]
    entry = LogEntry.objects.get()
    assert (entry.user, entry.change_message) == (
        boss,
        "Through an assistant: mcp_django.testing",
    )


def test_several_records_go_together(client, tags):
    keys = [one.pk for one in tags]

    shown = delete(client, "workshop.tag", pk=[*keys, keys[0], str(keys[1])])
    done = agree(client, shown, "workshop.tag", pk=[*keys, keys[0], str(keys[1])])

    assert shown.data["records"] == 3
    assert done.data["deleted"] == {"workshop.tag": 3}
    assert not Tag.objects.exists()
    assert LogEntry.objects.exclude(change_message="").count() == 3


def test_filters_choose_what_is_deleted(client, tags):
    query = {"filters": {"name__in": ["red", "blue"]}, "exclude": {"name": "blue"}}

    shown = delete(client, "workshop.tag", **query)
    done = agree(client, shown, "workshop.tag", **query)

    assert shown.data["keys"] == [tags[0].pk]
    assert done.data["deleted"] == {"workshop.tag": 1}
    assert sorted(Tag.objects.values_list("name", flat=True)) == ["blue", "old"]


def test_what_is_protected_cannot_be_confirmed(client, thing):
    keeper = Keeper.objects.create(thing=thing)

    shown = delete(client, pk=thing.pk)

    assert shown.data["protected_by"] == {"workshop.keeper": 1}
    assert "confirmation" not in shown.data
    assert "cannot be deleted" in shown.data["next"]
    keeper.delete()
    good = delete(client, pk=thing.pk)
    Keeper.objects.create(thing=thing)
    refused = agree(client, good, pk=thing.pk)
    assert refused.data["protected_by"] == {"workshop.keeper": 1}
    assert refused.is_error
    assert Thing.objects.exists()


@pytest.mark.parametrize("change", [None, {"level": Level.DEFINITION}])
def test_what_protects_is_not_named_where_it_is_hidden(change, client, thing):
    registry.unregister(Keeper)
    if change is not None:
        registry.register(Keeper, type("K", (ModelExposure,), {"fields": ["id"], **change}))
    Keeper.objects.create(thing=thing)

    shown = delete(client, pk=thing.pk)

    if change is None:
        registry.register(Keeper, type("K", (ModelExposure,), {"fields": ["id"]}))
    assert shown.data["and_other_records"] is True
    assert "keeper" not in shown.text.lower()
    assert "confirmation" not in shown.data


def test_who_may_not_delete_what_goes_along_deletes_nothing(make_user, thing):
    clerk = make_user("clerk", "view_thing", "delete_thing", "view_part", is_staff=True)

    shown = delete(CheckedClient(user=clerk), pk=thing.pk)

    assert shown.data["permission_lacking_for"] == ["workshop.part"]
    assert "confirmation" not in shown.data


def test_an_unknown_argument_is_no_confirmation(client, thing):
    answer = delete(client, pk=thing.pk, confirm=True)

    assert answer.is_error
    assert Thing.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "Name the records"),
        ({"pk": 1, "filters": {"id": 1}}, "Name the records"),
        ({"filters": {}}, "Name the records"),
        ({"any_of": [{"id": 1}, {}]}, "Name the records"),
        ({"any_of": []}, "Name the records"),
        ({"pk": []}, "Name the records"),
        ({"filters": {"id": 0}}, "Nothing was done."),
        ({"pk": 10**9}, "There is no workshop.tag with the key 1000000000."),
        ({"pk": [1, 10**9, "x", 10**40]}, "There is no workshop.tag with these keys: "),
        ({"pk": list(range(10_000))}, "Name between 1 and 1000 records; these are 10000."),
        ({"filters": {"is_active": True}}, "cannot be used in filters"),
    ],
)
def test_what_names_no_records_deletes_none(arguments, words, client, tags):
    answer = delete(client, "workshop.tag", **arguments)

    assert answer.is_error
    assert words in answer.text
    assert Tag.objects.count() == 3


def test_a_key_names_a_record_whatever_else_is_empty(client, tags):
    empty = {"filters": {}, "exclude": {}, "any_of": []}
    shown = delete(client, "workshop.tag", pk=tags[0].pk, confirmation="", **empty)

    agreed = agree(client, shown, "workshop.tag", pk=tags[0].pk, **empty)

    assert not agreed.is_error, agreed.text
    assert Tag.objects.count() == 2


@pytest.mark.thorough
def test_filters_that_match_too_many_are_refused(client, db):
    Tag.objects.bulk_create(Tag(name=str(at)) for at in range(1001))

    answer = delete(client, "workshop.tag", filters={"id__gt": 0})

    assert "These filters find more than 1000 records" in answer.text


def test_records_that_one_may_not_see_are_missing(client, make_user):
    mine = Job.objects.create(tenant="b", name="mine")
    theirs = Job.objects.create(tenant="x", name="theirs")

    shown = delete(client, "workshop.job", pk=[mine.pk, theirs.pk])
    missing = delete(client, "workshop.job", pk=[mine.pk, 999])

    assert shown.text.replace(str(theirs.pk), "999") == missing.text
    one = delete(client, "workshop.job", pk=theirs.pk)
    assert one.text.startswith(f"There is no workshop.job with the key {theirs.pk}.")
    assert Job.objects.count() == 2


def test_objects_that_the_site_protects_one_by_one_stay(client, monkeypatch):
    monkeypatch.setattr(
        JobAdmin,
        "has_delete_permission",
        lambda self, request, obj=None: obj is None or obj.name != "kept",
    )
    kept = Job.objects.create(tenant="b", name="kept")
    other = Job.objects.create(tenant="b", name="other")

    assert "You may not do this." in delete(client, "workshop.job", pk=kept.pk).text
    several = delete(client, "workshop.job", pk=[kept.pk, other.pk])

    assert f"You may not delete the record with the key {kept.pk}." in several.text
    assert Job.objects.count() == 2


def test_filters_find_only_objects_that_the_site_shows_one_by_one(client, monkeypatch):
    monkeypatch.setattr(
        JobAdmin,
        "has_view_permission",
        lambda self, request, obj=None: obj is None or obj.name != "hidden",
    )
    for name in ("a", "hidden", "b"):
        Job.objects.create(tenant="b", name=name)

    done = agree(
        client,
        delete(client, "workshop.job", filters={"id__gt": 0}),
        "workshop.job",
        filters={"id__gt": 0},
    )

    assert done.data["deleted"] == {"workshop.job": 2}
    assert Job.objects.get().name == "hidden"


def test_where_the_site_has_no_action_for_several_each_goes_by_itself(client, tags, monkeypatch):
    seen = []
    monkeypatch.setattr(TagAdmin, "get_actions", lambda self, request, **more: {})
    monkeypatch.setattr(
        TagAdmin, "delete_model", lambda self, request, obj: (seen.append(obj), obj.delete())
    )
    keys = [one.pk for one in tags]

    done = agree(client, delete(client, "workshop.tag", pk=keys), "workshop.tag", pk=keys)

    assert not done.is_error, done.text
    assert len(seen) == 3
    assert "str of" not in done.text


def test_a_site_that_only_marks_records_as_deleted_is_believed(client, tags, monkeypatch):
    monkeypatch.setattr(
        TagAdmin,
        "delete_model",
        lambda self, request, obj: Tag.objects.filter(pk=obj.pk).update(is_active=False),
    )
    shown = delete(client, "workshop.tag", pk=tags[0].pk)

    done = agree(client, shown, "workshop.tag", pk=tags[0].pk)

    assert not done.is_error
    tags[0].refresh_from_db()
    assert tags[0].is_active is False


def test_a_view_that_does_not_delete_is_not_believed(client, tags, monkeypatch):
    from django.contrib import messages
    from django.http import HttpResponseRedirect

    original = TagAdmin.delete_view

    def delete_view(self, request, object_id, extra_context=None):
        if request.method == "GET":
            return original(self, request, object_id, extra_context)
        messages.error(request, "Not on Sundays.")
        return HttpResponseRedirect("/")

    monkeypatch.setattr(TagAdmin, "delete_view", delete_view)
    shown = delete(client, "workshop.tag", pk=tags[0].pk)

    refused = agree(client, shown, "workshop.tag", pk=tags[0].pk)

    assert refused.is_error
    assert refused.text == "Nothing was deleted. Not on Sundays."


def test_a_view_without_a_page_deletes_nothing(client, tags, monkeypatch):
    from django.http import HttpResponse

    monkeypatch.setattr(TagAdmin, "delete_view", lambda *args, **more: HttpResponse())

    assert "shows no page" in delete(client, "workshop.tag", pk=tags[0].pk).text


def test_records_that_the_admin_does_not_show_are_not_deleted_with_others(client, monkeypatch):
    jobs = [Job.objects.create(tenant="b", name=str(at)) for at in range(2)]
    calls = []

    def get_queryset(self, request):
        calls.append(request)
        rows = Job.objects.all()
        # Those of our own questions, not those of the pages.
        return rows if getattr(request, "mcp", None) is None else rows.exclude(pk=jobs[0].pk)

    monkeypatch.setattr(JobAdmin, "get_queryset", get_queryset)

    answer = delete(client, "workshop.job", pk=[one.pk for one in jobs])

    assert "does not show all of these records" in answer.text


@pytest.mark.exposure(Tag={"level": Level.ACT})
def test_below_the_level_write_nothing_is_deleted(client, tags):
    answer = delete(client, "workshop.tag", pk=tags[0].pk)

    assert answer.is_error
    assert answer.text.startswith("You cannot delete records of workshop.tag. You can delete")


# Rows that the rules of their model hide


def hide(monkeypatch, model, **conditions):
    monkeypatch.setattr(
        registry._classes[model],
        "get_queryset",
        lambda self, request: model.objects.exclude(**conditions),
    )
    registry.forget_resolved()


@pytest.mark.parametrize("dry_run", [False, True])
def test_hidden_rows_that_would_go_along_are_not_counted(dry_run, client, thing, monkeypatch):
    hide(monkeypatch, Part, name=" p1")
    thing.scraps.all().delete()
    for field in Thing._meta.many_to_many:
        getattr(thing, field.name).clear()

    shown = delete(client, pk=thing.pk)
    if dry_run:
        done = delete(client, pk=thing.pk, dry_run=True)
    else:
        done = agree(client, shown, pk=thing.pk)

    assert shown.data["would_delete"] == {"workshop.part": 2, "workshop.thing": 1}
    assert shown.data["and_other_records"] is True
    assert done.data["deleted"] == {"workshop.part": 2, "workshop.thing": 1}
    assert Part.objects.exists() is dry_run


def test_rows_that_are_judged_one_by_one_are_counted_as_they_are_seen(client, thing, monkeypatch):
    monkeypatch.setattr(
        PartAdmin,
        "has_view_permission",
        lambda self, request, obj=None: obj is None or obj.name == " p1",
    )

    shown = delete(client, pk=thing.pk)

    assert shown.data["would_delete"] == {"workshop.part": 1, "workshop.thing": 1}


def test_several_records_do_not_count_hidden_rows_either(client, thing, monkeypatch):
    other = Thing.objects.create(title="other", number=5)
    Part.objects.create(thing=other, name="p1")
    hide(monkeypatch, Part, name__endswith="p1")

    shown = delete(client, pk=[thing.pk, other.pk])

    assert shown.data["would_delete"] == {"workshop.part": 2, "workshop.thing": 2}


def test_hidden_rows_that_protect_are_neither_named_nor_counted(client, thing, monkeypatch):
    kept = Keeper.objects.create(thing=thing)
    hidden = [Keeper.objects.create(thing=thing) for _ in range(2)]
    hide(monkeypatch, Keeper, pk__in=[one.pk for one in hidden])

    some = delete(client, pk=thing.pk)
    kept.delete()
    none = delete(client, pk=thing.pk)
    tried = delete(client, pk=thing.pk, dry_run=True)

    assert some.data["protected_by"] == {"workshop.keeper": 1}
    assert "protected_by" not in none.data
    assert "protected_by" not in tried.data
    assert none.data["and_other_records"] is True
    assert "keeper" not in none.text
    assert "cannot be deleted" in none.data["next"]


NUMBERS = {"level": Level.AGGREGATES, "aggregates_only": True}


@pytest.mark.exposure(Part=NUMBERS, Keeper=NUMBERS)
def test_records_that_are_never_shown_are_counted_only_where_they_are_many(client, thing):
    few = delete(client, pk=thing.pk)
    Part.objects.bulk_create(Part(thing=thing, name="p") for _ in range(2))
    many = delete(client, pk=thing.pk)
    Keeper.objects.create(thing=thing)
    protected = delete(client, pk=thing.pk)

    assert few.data["would_delete"] == {"workshop.thing": 1}
    assert few.data["and_other_records"] is True
    assert many.data["would_delete"] == {"workshop.thing": 1, "workshop.part": 5}
    assert "protected_by" not in protected.data
    assert "cannot be deleted" in protected.data["next"]


def test_a_right_that_is_lacking_for_hidden_rows_only_is_not_named(make_user, thing, monkeypatch):
    clerk = make_user("clerk", "view_thing", "delete_thing", "view_part", is_staff=True)
    hide(monkeypatch, Part, name__contains="p")

    shown = delete(CheckedClient(user=clerk), pk=thing.pk)

    assert "permission_lacking_for" not in shown.data
    assert shown.data["and_other_records"] is True
    assert "confirmation" not in shown.data
    assert "part" not in shown.text


def test_what_a_site_says_would_go_is_the_most_that_is_counted(client, thing, monkeypatch):
    """As with records that are only marked, and take nothing along."""
    monkeypatch.setattr(
        ThingAdmin,
        "get_deleted_objects",
        lambda self, objs, request: (["T"], {"things": 1}, set(), []),
    )

    shown = delete(client, pk=thing.pk)

    assert shown.data["would_delete"] == {"workshop.thing": 1}
    assert "and_other_records" not in shown.data


def test_a_site_that_does_not_count_is_not_counted_for(client, thing, monkeypatch):
    """As with tables where that would take too long."""
    monkeypatch.setattr(
        ThingAdmin, "get_deleted_objects", lambda self, objs, request: ([], {}, set(), [])
    )

    shown = delete(client, pk=thing.pk)
    done = agree(client, shown, pk=thing.pk)

    assert "would_delete" not in shown.data
    assert "and_other_records" not in shown.data
    assert done.data["deleted"] == {}
    assert not Thing.objects.exists()


@pytest.mark.thorough
@pytest.mark.exposure(Thing={"actions": ["remove"]})
def test_the_page_of_an_action_that_deletes_counts_visible_rows_only(client, thing, monkeypatch):
    def remove(modeladmin, request, queryset):
        return delete_selected(modeladmin, request, queryset)

    monkeypatch.setattr(ThingAdmin, "actions", [remove])
    hide(monkeypatch, Part, name=" p1")

    shown = client.call_tool("workshop_thing_remove", pks=[thing.pk])
    Keeper.objects.create(thing=thing)
    protected = client.call_tool("workshop_thing_remove", pks=[thing.pk])

    assert shown.data["page"]["text"] == (
        "1 record to be deleted. Deleted along with it: 2 parts. "
        "Other records that are not named here are affected as well."
    )
    assert "p1" not in shown.text
    assert "This is not possible because of 1 keeper." in protected.data["page"]["text"]


# Tokens that are held to some models


@pytest.fixture
def held(boss):
    """Good for tags alone, of somebody who may do everything."""
    return CheckedClient(user=boss, models=["workshop.tag"])


@pytest.mark.parametrize("on_delete", [CASCADE, SET_NULL])
def test_a_token_that_is_held_to_some_models_touches_no_records_of_others(
    held, tags, monkeypatch, on_delete
):
    monkeypatch.setattr(Job._meta.get_field("tag").remote_field, "on_delete", on_delete)
    red, blue, _ = tags
    Job.objects.create(tag=red, name="j")

    refused = delete(held, "workshop.tag", pk=red.pk)
    both = delete(held, "workshop.tag", pk=[red.pk, blue.pk])
    free = delete(held, "workshop.tag", pk=blue.pk)

    assert refused.is_error
    assert refused.text == both.text
    assert refused.text.startswith("Nothing was deleted: records of other models would go along")
    assert "job" not in refused.text
    assert not agree(held, free, "workshop.tag", pk=blue.pk).is_error
    assert Tag.objects.filter(pk=red.pk).exists()
    assert not Tag.objects.filter(pk=blue.pk).exists()
    assert Job.objects.get().tag == red


def test_rows_between_two_models_belong_to_the_record_that_has_the_relation(boss, tags):
    thing = Thing.objects.create(title="T")
    thing.tags.set(tags)
    of_things = CheckedClient(user=boss, models=["workshop.thing"])
    of_tags = CheckedClient(user=boss, models=["workshop.tag"])

    refused = delete(of_tags, "workshop.tag", pk=tags[0].pk)
    done = agree(of_things, delete(of_things, pk=thing.pk), pk=thing.pk)

    assert refused.is_error
    assert not done.is_error, done.text
    assert not Thing.objects.exists()


def test_a_token_that_is_held_to_some_models_takes_records_of_these_along(boss, tags):
    held = CheckedClient(user=boss, models=["workshop.tag", "workshop.job"])
    Job.objects.create(tag=tags[0], name="j")

    done = agree(held, delete(held, "workshop.tag", pk=tags[0].pk), "workshop.tag", pk=tags[0].pk)

    assert not done.is_error, done.text
    assert not Job.objects.exists()
