"""Records are deleted as the admin would, after somebody was shown what goes along."""

from __future__ import annotations

import pytest
from django.contrib import messages
from django.contrib.admin.actions import delete_selected
from django.contrib.admin.models import LogEntry
from django.db.models import CASCADE, SET_NULL
from django.http import HttpResponse, HttpResponseRedirect

from mcp_django.levels import Level
from mcp_django.testing import Client, ProtocolFailure
from tests.asking import TALKATIVE, Talk
from tests.clients import CheckedClient, call_with_token
from tests.workshop.admin import JobAdmin, TagAdmin, ThingAdmin
from tests.workshop.models import Job, Keeper, Part, Scrap, Tag, Thing
from tests.writes.calls import asked, hide_by_admin, hide_by_exposure, hide_by_object, tag_names

pytestmark = pytest.mark.django_db


def delete(client, model="workshop.thing", **arguments):
    return client.call_tool("delete_record", model=model, **arguments)


def agreed(client, model="workshop.thing", **arguments):
    return call_with_token(client, "delete_record", model=model, **arguments)


def test_the_first_call_shows_what_would_go_and_the_second_does_it(client, thing, superuser):
    preview = delete(client, pk=thing.pk)
    still_there = Thing.objects.exists()
    done = delete(client, pk=thing.pk, confirmation=preview.data["confirmation"])

    assert still_there
    assert preview.data["would_delete"]["workshop.part"] == 3
    assert preview.data["and_other_records"] is True  # scraps, and rows between
    assert "scrap" not in preview.text
    assert not done.is_error, done.text
    assert done.data["deleted"] == {"workshop.thing": 1, "workshop.part": 3}
    assert done.data["keys"] == [thing.pk]
    assert [model.objects.count() for model in (Thing, Part, Scrap)] == [0, 0, 0]
    entry = LogEntry.objects.get()
    assert (entry.user, entry.change_message) == (
        superuser,
        "Through an assistant: mcp_django.testing",
    )


@pytest.mark.parametrize(
    ("name_them", "left"),
    [
        (lambda red, blue, old: {"pk": [red, blue, old, red, str(blue)]}, []),
        (
            lambda *keys: {
                "filters": {"name__in": ["red", "blue"]},
                "exclude": {"name": "blue"},
            },
            ["blue", "old"],
        ),
        (
            lambda red, *others: {"pk": red, "filters": {}, "exclude": {}, "any_of": []},
            ["blue", "old"],
        ),
    ],
    ids=["keys", "filters", "a key, whatever else is empty"],
)
def test_records_are_named_by_keys_or_filters(name_them, left, client, tags):
    done = agreed(client, "workshop.tag", **name_them(*(tag.pk for tag in tags)))

    assert not done.is_error, done.text
    assert done.data["deleted"] == {"workshop.tag": 3 - len(left)}
    assert tag_names() == left
    assert LogEntry.objects.exclude(change_message="").count() == 3 - len(left)


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
        ({"pk": 1, "confirm": True}, "confirm"),
    ],
)
def test_a_call_that_names_no_records_deletes_none(arguments, words, client, tags):
    answer = delete(client, "workshop.tag", **arguments)

    assert answer.is_error
    assert words in answer.text
    assert Tag.objects.count() == 3


@pytest.mark.thorough
def test_filters_that_match_too_many_are_refused(client, db):
    Tag.objects.bulk_create(Tag(name=str(at)) for at in range(1001))

    answer = delete(client, "workshop.tag", filters={"id__gt": 0})

    assert "These filters find more than 1000 records" in answer.text


def test_a_dry_run_needs_no_confirmation(client, thing, tags):
    # The order of the database may depend on what the caller does not see.
    keys = [tag.pk for tag in reversed(tags)]

    of_thing = client.data("delete_record", model="workshop.thing", pk=thing.pk, dry_run=True)
    of_tags = client.data("delete_record", model="workshop.tag", pk=keys, dry_run=True)

    assert of_thing["deleted"] == {"workshop.thing": 1, "workshop.part": 3}
    assert "scrap" not in str(of_thing)
    assert (of_tags["deleted"]["workshop.tag"], of_tags["keys"]) == (3, keys)
    assert (Part.objects.count(), Tag.objects.count()) == (3, 3)


# A person who can be asked is asked, and no token spares that

YES = {"confirm": True}


def test_the_person_is_told_what_goes_and_what_goes_along(asker, thing):
    done = delete(asker, pk=thing.pk)

    assert asked(asker) == (
        f"Delete this thing? 1 record: {thing.pk}.\n\n"
        "Deleted along with it: 3 parts. "
        "Other records that are not named here are affected as well."
    )
    assert done.data["deleted"] == {"workshop.thing": 1, "workshop.part": 3}
    assert not Thing.objects.exists()


def test_many_records_are_named_by_the_first_five_and_the_number_of_the_rest(asker):
    made = [Tag.objects.create(name=f"t{at}") for at in range(7)]

    delete(asker, "workshop.tag", pk=[tag.pk for tag in made])

    assert asked(asker).startswith("Delete tags? 7 records: ")
    assert " and 2 more." in asked(asker)
    assert not Tag.objects.exists()


def test_nobody_is_asked_about_what_cannot_be_deleted_or_is_not_there(asker, thing):
    Keeper.objects.create(thing=thing)
    theirs = Job.objects.create(tenant="x", name="theirs")

    preview = delete(asker, pk=thing.pk)
    missing = delete(asker, "workshop.job", pk=theirs.pk)

    assert asker.questions == {}
    assert preview.data["protected_by"] == {"workshop.keeper": 1}
    assert missing.text.startswith("There is no workshop.job with the key")
    assert Thing.objects.exists()


@pytest.fixture
def talk(superuser, tags):
    """A person was asked about all tags that begin with b."""
    client = Client(user=superuser, capabilities=TALKATIVE)
    return Talk.call(
        client, "delete_record", model="workshop.tag", filters={"name__startswith": "b"}
    )


def test_one_agreement_deletes_once_and_only_what_was_asked_about(talk, tags):
    other = {"name": "delete_record", "arguments": {"model": "workshop.tag", "pk": tags[0].pk}}

    with pytest.raises(ProtocolFailure):
        talk.answer({"confirmation": {"action": "accept", "content": YES}}, **other)
    first = talk.accept("confirmation", **YES)
    Tag.objects.create(pk=tags[1].pk, name="blue")
    second = talk.accept("confirmation", **YES)

    assert not first.result["isError"]
    assert second.result["isError"]
    assert tag_names() == ["blue", "old", "red"]


def test_the_person_is_asked_again_when_something_else_would_go(talk):
    Tag.objects.create(name="black")

    again = talk.accept("confirmation", **YES)

    assert "1 record:" in talk.messages["confirmation"]
    assert "2 records:" in again.messages["confirmation"]
    assert Tag.objects.count() == 4


# What the site refuses


def test_protected_records_cannot_be_confirmed(client, thing):
    token = delete(client, pk=thing.pk).data["confirmation"]
    Keeper.objects.create(thing=thing)

    preview = delete(client, pk=thing.pk)
    tried = delete(client, pk=thing.pk, dry_run=True)
    refused = delete(client, pk=thing.pk, confirmation=token)

    assert "confirmation" not in preview.data
    assert "cannot be deleted" in preview.data["next"]
    for answer in (preview, tried, refused):
        assert answer.data["protected_by"] == {"workshop.keeper": 1}
    assert tried.is_error is refused.is_error is True
    assert Thing.objects.exists()


@pytest.mark.parametrize(
    "exposure",
    [
        pytest.param(None, marks=pytest.mark.exposure(Keeper=None)),
        pytest.param(None, marks=pytest.mark.exposure(Keeper={"level": Level.DEFINITION})),
    ],
    ids=["hidden", "definition"],
)
def test_the_model_that_protects_is_not_named_where_it_is_hidden(exposure, client, thing):
    Keeper.objects.create(thing=thing)

    preview = delete(client, pk=thing.pk)

    assert preview.data["and_other_records"] is True
    assert "keeper" not in preview.text.lower()
    assert "confirmation" not in preview.data


def test_who_may_not_delete_what_goes_along_deletes_nothing(make_client, thing):
    preview = delete(make_client("view_thing", "delete_thing", "view_part"), pk=thing.pk)

    assert preview.data["permission_lacking_for"] == ["workshop.part"]
    assert "confirmation" not in preview.data


def test_objects_that_the_site_protects_one_by_one_stay(client, monkeypatch):
    monkeypatch.setattr(
        JobAdmin,
        "has_delete_permission",
        lambda self, request, obj=None: obj is None or obj.name != "kept",
    )
    jobs = [Job.objects.create(tenant="b", name=name) for name in ("kept", "other")]

    alone = delete(client, "workshop.job", pk=jobs[0].pk)
    several = delete(client, "workshop.job", pk=[job.pk for job in jobs])

    for refused in (alone, several):
        assert f"You may not delete the record with the key {jobs[0].pk}." in refused.text
    assert Job.objects.count() == 2


def test_filters_find_only_objects_that_the_site_shows_one_by_one(client, monkeypatch):
    hide_by_object(monkeypatch, Job, name="hidden")
    for name in ("a", "hidden", "b"):
        Job.objects.create(tenant="b", name=name)

    done = agreed(client, "workshop.job", filters={"id__gt": 0})

    assert done.data["deleted"] == {"workshop.job": 2}
    assert Job.objects.get().name == "hidden"


def test_records_that_the_admin_does_not_show_are_not_deleted_with_others(client, monkeypatch):
    jobs = [Job.objects.create(tenant="b", name=str(at)) for at in range(2)]

    def get_queryset(self, request):
        rows = Job.objects.all()
        # Those of our own questions, not those of the pages.
        return rows if getattr(request, "mcp", None) is None else rows.exclude(pk=jobs[0].pk)

    monkeypatch.setattr(JobAdmin, "get_queryset", get_queryset)

    answer = delete(client, "workshop.job", pk=[job.pk for job in jobs])

    assert "does not show all of these records" in answer.text
    assert Job.objects.count() == 2


# How the site deletes


def test_where_the_site_has_no_action_for_several_each_goes_by_itself(client, tags, monkeypatch):
    seen = []
    monkeypatch.setattr(TagAdmin, "get_actions", lambda self, request, **more: {})
    monkeypatch.setattr(
        TagAdmin, "delete_model", lambda self, request, obj: (seen.append(obj), obj.delete())
    )

    done = agreed(client, "workshop.tag", pk=[tag.pk for tag in tags])

    assert not done.is_error, done.text
    assert len(seen) == 3
    assert "str of" not in done.text


def test_a_site_that_only_marks_records_as_deleted_is_believed(client, tags, monkeypatch):
    monkeypatch.setattr(
        TagAdmin,
        "delete_model",
        lambda self, request, obj: Tag.objects.filter(pk=obj.pk).update(is_active=False),
    )

    done = agreed(client, "workshop.tag", pk=tags[0].pk)

    assert not done.is_error
    tags[0].refresh_from_db()
    assert tags[0].is_active is False


def test_a_view_that_does_not_delete_is_not_believed(client, tags, monkeypatch):
    original = TagAdmin.delete_view

    def delete_view(self, request, object_id, extra_context=None):
        if request.method == "GET":
            return original(self, request, object_id, extra_context)
        messages.error(request, "Not on Sundays.")
        return HttpResponseRedirect("/")

    monkeypatch.setattr(TagAdmin, "delete_view", delete_view)

    refused = agreed(client, "workshop.tag", pk=tags[0].pk)

    assert refused.is_error
    assert refused.text == "Nothing was deleted. Not on Sundays."


def test_a_view_without_a_page_deletes_nothing(client, tags, monkeypatch):
    monkeypatch.setattr(TagAdmin, "delete_view", lambda *args, **more: HttpResponse())

    assert agreed(client, "workshop.tag", pk=tags[0].pk).text == "Nothing was deleted."


@pytest.mark.parametrize(
    ("listed", "would_delete", "deleted"),
    [
        # As with records that are only marked, and take nothing along.
        ((["T"], {"things": 1}, set(), []), {"workshop.thing": 1}, {"workshop.thing": 1}),
        # As with tables where counting would take too long.
        (([], {}, set(), []), None, {}),
    ],
    ids=["marked", "uncounted"],
)
def test_what_a_site_says_would_go_is_the_most_that_is_counted(
    listed, would_delete, deleted, client, thing, monkeypatch
):
    monkeypatch.setattr(ThingAdmin, "get_deleted_objects", lambda self, objs, request: listed)

    preview = delete(client, pk=thing.pk)
    done = agreed(client, pk=thing.pk)

    assert preview.data.get("would_delete") == would_delete
    assert "and_other_records" not in preview.data
    assert done.data["deleted"] == deleted
    assert not Thing.objects.exists()


# Rows that the rules of their model hide


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    ("hide", "hidden", "count"),
    [
        (hide_by_exposure, [" p1"], 2),
        (hide_by_admin, [" p1"], 2),
        (hide_by_object, [" p0", " p2"], 1),
    ],
)
def test_hidden_rows_that_would_go_along_are_not_counted(
    hide, hidden, count, dry_run, client, thing, monkeypatch
):
    hide(monkeypatch, Part, name__in=hidden)
    thing.scraps.all().delete()
    for field in Thing._meta.many_to_many:
        getattr(thing, field.name).clear()

    preview = delete(client, pk=thing.pk)
    done = delete(client, pk=thing.pk, dry_run=True) if dry_run else agreed(client, pk=thing.pk)

    counts = {"workshop.part": count, "workshop.thing": 1}
    assert preview.data["would_delete"] == done.data["deleted"] == counts
    assert preview.data["and_other_records"] is True
    assert Part.objects.exists() is dry_run


def test_several_records_do_not_count_hidden_rows_either(client, thing, monkeypatch):
    other = Thing.objects.create(title="other", number=5)
    Part.objects.create(thing=other, name="p1")
    hide_by_exposure(monkeypatch, Part, name__endswith="p1")

    preview = delete(client, pk=[thing.pk, other.pk])

    assert preview.data["would_delete"] == {"workshop.part": 2, "workshop.thing": 2}


def test_hidden_rows_that_protect_are_neither_named_nor_counted(client, thing, monkeypatch):
    visible, *hidden = [Keeper.objects.create(thing=thing) for _ in range(3)]
    hide_by_exposure(monkeypatch, Keeper, pk__in=[keeper.pk for keeper in hidden])

    some = delete(client, pk=thing.pk)
    visible.delete()
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


def test_a_right_that_is_lacking_for_hidden_rows_only_is_not_named(
    make_client, thing, monkeypatch
):
    hide_by_exposure(monkeypatch, Part, name__contains="p")

    preview = delete(make_client("view_thing", "delete_thing", "view_part"), pk=thing.pk)

    assert "permission_lacking_for" not in preview.data
    assert preview.data["and_other_records"] is True
    assert "confirmation" not in preview.data
    assert "part" not in preview.text


@pytest.mark.thorough
@pytest.mark.exposure(Thing={"actions": ["remove"]})
def test_the_page_of_an_action_that_deletes_counts_visible_rows_only(client, thing, monkeypatch):
    def remove(modeladmin, request, queryset):
        return delete_selected(modeladmin, request, queryset)

    monkeypatch.setattr(ThingAdmin, "actions", [remove])
    hide_by_exposure(monkeypatch, Part, name=" p1")

    preview = client.call_tool("workshop_thing_remove", pks=[thing.pk])
    Keeper.objects.create(thing=thing)
    protected = client.call_tool("workshop_thing_remove", pks=[thing.pk])

    assert preview.data["page"]["text"] == (
        "1 record to be deleted. Deleted along with it: 2 parts. "
        "Other records that are not named here are affected as well."
    )
    assert "p1" not in preview.text
    assert "This is not possible because of 1 keeper." in protected.data["page"]["text"]


# Tokens that are held to some models


@pytest.mark.parametrize("on_delete", [CASCADE, SET_NULL])
def test_a_token_that_is_held_to_some_models_touches_no_records_of_others(
    superuser, tags, monkeypatch, on_delete
):
    monkeypatch.setattr(Job._meta.get_field("tag").remote_field, "on_delete", on_delete)
    held = CheckedClient(user=superuser, models=["workshop.tag"])
    red, blue, _ = tags
    Job.objects.create(tag=red, name="j")

    refused = delete(held, "workshop.tag", pk=red.pk)
    both = delete(held, "workshop.tag", pk=[red.pk, blue.pk])
    free = agreed(held, "workshop.tag", pk=blue.pk)

    assert refused.is_error
    assert refused.text == both.text
    assert refused.text.startswith("Nothing was deleted: records of other models would go along")
    assert "job" not in refused.text
    assert not free.is_error, free.text
    assert tag_names() == ["old", "red"]
    assert Job.objects.get().tag == red


def test_rows_between_two_models_belong_to_the_record_that_has_the_relation(superuser, tags):
    thing = Thing.objects.create(title="T")
    thing.tags.set(tags)
    of_things = CheckedClient(user=superuser, models=["workshop.thing"])
    of_tags = CheckedClient(user=superuser, models=["workshop.tag"])

    refused = delete(of_tags, "workshop.tag", pk=tags[0].pk)
    done = agreed(of_things, pk=thing.pk)

    assert refused.is_error
    assert not done.is_error, done.text
    assert not Thing.objects.exists()


def test_a_token_that_is_held_to_some_models_takes_records_of_these_along(superuser, tags):
    held = CheckedClient(user=superuser, models=["workshop.tag", "workshop.job"])
    Job.objects.create(tag=tags[0], name="j")

    done = agreed(held, "workshop.tag", pk=tags[0].pk)

    assert not done.is_error, done.text
    assert not Job.objects.exists()
