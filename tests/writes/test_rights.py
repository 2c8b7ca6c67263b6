"""Who may not write finds no way to: not listed, not called, not hinted at."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission

from mcp_django.conf import get_config
from mcp_django.exposure.primitives import WRITES
from mcp_django.levels import Level
from mcp_django.models import ExposedModel, ServerSettings, UserRestriction
from mcp_django.principal import READ, WRITE
from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient
from tests.workshop.admin import JobAdmin, TagAdmin, ThingAdmin, site
from tests.workshop.models import Job, Tag, Team, Thing

pytestmark = pytest.mark.django_db

CALLS = {
    "create_record": {"model": "workshop.tag", "values": {"name": "new"}},
    "update_record": {"model": "workshop.tag", "pk": 1, "values": {"name": "new"}},
    "update_records": {"model": "workshop.tag", "pks": [1], "values": {"name": "new"}},
    "delete_record": {"model": "workshop.tag", "pk": 1},
}
UPDATES = {"update_record", "update_records"}


def listed(client):
    return {one["name"] for one in client.list_tools()} & WRITES


def refused_as_unknown(client, *names):
    for name in names or WRITES:
        with pytest.raises(ProtocolFailure, match="Unknown tool"):
            client.call_tool(name, **CALLS[name])
    return True


def names():
    return sorted(Tag.objects.values_list("name", flat=True))


def test_who_may_everything_has_all_four(client, db):
    assert listed(client) == WRITES


@pytest.mark.parametrize(
    ("codename", "tools"),
    [("add_tag", {"create_record"}), ("change_tag", UPDATES), ("delete_tag", {"delete_record"})],
)
def test_each_right_of_the_admin_brings_its_tools(codename, tools, make_user, tags):
    client = CheckedClient(user=make_user("clerk", "view_tag", codename, is_staff=True))

    assert listed(client) == tools
    assert refused_as_unknown(client, *(WRITES - tools))
    assert names() == ["blue", "old", "red"]


def test_who_may_only_view_has_none(make_user, tags):
    client = CheckedClient(user=make_user("clerk", "view_tag", "view_thing", is_staff=True))

    assert listed(client) == set()
    assert refused_as_unknown(client)


def test_model_permissions_without_the_admin_site_are_worth_nothing(make_user, tags):
    client = CheckedClient(
        user=make_user("clerk", "view_tag", "add_tag", "change_tag", "delete_tag")
    )

    assert listed(client) == set()
    assert refused_as_unknown(client)


@pytest.mark.parametrize(
    ("scopes", "tools"),
    [((READ,), set()), ((WRITE,), {"create_record", *UPDATES}),
     (("mcp:delete",), {"delete_record"}), (("mcp:read", "mcp:action"), set())],
)  # fmt: skip
def test_a_credential_needs_the_scope(scopes, tools, boss, tags):
    client = CheckedClient(user=boss, scopes=scopes)

    assert listed(client) == tools
    assert refused_as_unknown(client, *(WRITES - tools))


def test_read_only_takes_them_away_at_every_level(boss, settings, tags):
    assert listed(CheckedClient(user=boss)) == WRITES

    token = CheckedClient(user=boss, read_only=True)
    assert (listed(token), refused_as_unknown(token)) == (set(), True)

    restriction = UserRestriction.objects.create(user=boss)
    client = CheckedClient(user=boss)
    assert (listed(client), refused_as_unknown(client)) == (set(), True)
    restriction.delete()

    row = ServerSettings.objects.create(read_only=True)
    client = CheckedClient(user=boss)
    assert (listed(client), refused_as_unknown(client)) == (set(), True)
    row.delete()

    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "READ_ONLY": True}
    assert get_config().read_only
    client = CheckedClient(user=boss)
    assert (listed(client), refused_as_unknown(client)) == (set(), True)
    assert names() == ["blue", "old", "red"]


@pytest.mark.exposure(**{
    name: {"level": Level.ACT} for name in ("Tag", "Thing", "Part", "Keeper", "Job", "Team")
})  # fmt: skip
def test_without_a_model_of_level_write_there_are_none(client, tags):
    assert listed(client) == set()
    assert refused_as_unknown(client)


@pytest.mark.exposure(Tag={"level": None})
def test_a_model_is_not_written_before_staff_open_it(client, tags):
    answer = client.call_tool("create_record", **CALLS["create_record"])

    assert answer.text.startswith("You cannot add records of workshop.tag. You can add those of:")
    ExposedModel.objects.create(label="workshop.tag", level=Level.WRITE)
    assert not client.call_tool("create_record", **CALLS["create_record"]).is_error


def test_a_model_that_staff_closed_is_unknown(client, tags):
    row = ExposedModel.objects.create(label="workshop.tag", level=Level.READ)

    answer = client.call_tool("create_record", **CALLS["create_record"])
    assert answer.text.startswith("You cannot add records of workshop.tag.")

    row.level = Level.HIDDEN
    row.save()
    answer = client.call_tool("create_record", **CALLS["create_record"])
    assert answer.text.startswith("There is no model 'workshop.tag'.")


def test_a_model_that_no_admin_has_is_not_written(client):
    ExposedModel.objects.create(label="shop.memo", level=Level.WRITE)

    answer = client.call_tool("create_record", model="shop.memo", values={"text": "x"})

    assert answer.text.startswith("You cannot add records of shop.memo.")


def test_who_may_write_nothing_of_that_kind_hears_of_no_other_model(make_user, tags):
    clerk = make_user("clerk", "view_tag", "view_job", "add_job", is_staff=True)
    client = CheckedClient(user=clerk)

    described = client.call_tool("describe_model", model="workshop.job").data
    answer = client.call_tool("create_record", **CALLS["create_record"])

    assert list(described["writing"]) == ["create_record"]
    assert answer.text.endswith("You can add those of: workshop.job.")


def test_a_hidden_and_a_missing_model_answer_in_the_same_words(client, tags):
    hidden = client.call_tool("create_record", model="workshop.scrap", values={})
    missing = client.call_tool("create_record", model="workshop.scarp", values={})

    assert hidden.text.replace("scrap", "scarp") == missing.text


def test_a_token_for_one_model_writes_no_other(boss, tags):
    client = CheckedClient(user=boss, models=["workshop.tag"])

    assert client.call_tool("create_record", model="workshop.job", values={"name": "x"}).is_error
    assert not client.call_tool("create_record", **CALLS["create_record"]).is_error


def test_a_right_lost_between_list_and_call_is_lost(make_user, tags):
    clerk = make_user("clerk", "view_tag", "change_tag", is_staff=True)
    client = CheckedClient(user=clerk)
    assert listed(client) == UPDATES

    clerk.user_permissions.set(Permission.objects.filter(codename="view_tag"))

    assert refused_as_unknown(client, *UPDATES)
    assert names() == ["blue", "old", "red"]


def test_rows_that_one_may_not_see_cannot_be_changed(client):
    job = Job.objects.create(tenant="x", name="theirs")

    hidden = client.call_tool("update_record", model="workshop.job", pk=job.pk, values={})
    missing = client.call_tool("update_record", model="workshop.job", pk=999, values={})

    assert hidden.text.replace(str(job.pk), "999") == missing.text
    assert hidden.text.startswith("There is no workshop.job with the key")


def test_the_rows_of_an_exposure_hold_for_writes_too(client, tags):
    """The admin shows them all; what assistants see is less."""
    red, _, old = tags

    from mcp_django.exposure.registry import registry

    registry._classes[Tag].get_queryset = lambda self, request: Tag.objects.filter(is_active=True)
    registry._classes[Tag].has_view_permission = lambda self, request, obj=None: True
    registry.forget_resolved()

    refused = client.call_tool("update_record", model="workshop.tag", pk=old.pk, values={})
    relation = client.call_tool("create_record", model="workshop.job",
                                values={"name": "x", "tag": old.pk})  # fmt: skip

    assert refused.text.startswith(f"There is no workshop.tag with the key {old.pk}.")
    assert f"tag: No tag matches {old.pk}." in relation.text
    assert not client.call_tool(
        "update_record", model="workshop.tag", pk=red.pk, values={"name": "r"}
    ).is_error


@pytest.mark.parametrize("pk", ["x", None, [], [1, 2], {}, True, 10**40, "1/../2", "", 1.5])
def test_what_is_no_key_is_no_record(pk, client, tags):
    before = names()
    call = {"model": "workshop.tag", "values": {"name": "new"}}

    answer = client.call_tool("update_record", **call, **({} if pk is None else {"pk": pk}))

    assert answer.is_error
    assert names() == before


@pytest.mark.thorough
def test_an_object_that_the_site_protects_is_read_only(client, monkeypatch):
    monkeypatch.setattr(
        JobAdmin,
        "has_change_permission",
        lambda self, request, obj=None: obj is None or obj.name != "kept",
    )
    kept = Job.objects.create(tenant="b", name="kept")

    answer = client.call_tool(
        "update_record", model="workshop.job", pk=kept.pk, values={"name": "x"}
    )

    assert answer.text == f"The record with the key {kept.pk} is read-only for you."
    kept.refresh_from_db()
    assert kept.name == "kept"


def test_a_site_that_cannot_tell_has_not_said_yes(client, tags, monkeypatch, caplog):
    def fail(*args):
        raise RuntimeError

    for model_admin in (TagAdmin, ThingAdmin, JobAdmin):
        monkeypatch.setattr(model_admin, "has_add_permission", fail)

    answer = client.call_tool("create_record", **CALLS["create_record"])

    assert answer.is_error
    assert "Whether workshop.Tag may be changed is unknown." in caplog.text
    assert "workshop.part" in answer.text  # whose admin is Django's own


def test_readonly_fields_of_the_site_are_not_set(client, tags, monkeypatch):
    monkeypatch.setattr(TagAdmin, "readonly_fields", ["name"])

    answer = client.call_tool(
        "update_record", model="workshop.tag", pk=tags[0].pk, values={"name": "x"}
    )

    assert "'name' is not a field that you can set. You can set: is_active." in answer.text


@pytest.mark.exposure(Tag={"write_fields": ["name", "nonsense"]})
def test_write_fields_are_all_that_can_be_set(client, tags):
    call = {"model": "workshop.tag", "pk": tags[0].pk}

    refused = client.call_tool("update_record", **call, values={"is_active": False})

    assert "You can set: name." in refused.text
    assert not client.call_tool("update_record", **call, values={"name": "x"}).is_error


@pytest.mark.thorough
@pytest.mark.exposure(
    Thing={
        "fields": ["id", "title", "secret_code"],
        "exclude": ["note", "tag__name"],
        "modified_field": "",
    }
)
def test_secrets_are_set_where_code_names_them_and_excluded_fields_are_not(client, thing):
    def update(**values):
        return client.call_tool(
            "update_record", model="workshop.thing", pk=thing.pk, values=values
        )

    assert not update(secret_code="x").is_error
    assert "'note' is not a field" in update(note="x").text
    assert "'tag' is not a field" in update(tag=None).text


@pytest.mark.thorough
def test_fields_that_staff_took_away_are_not_set(client, thing):
    ExposedModel.objects.create(label="workshop.thing", fields=["id", "title"], level=Level.WRITE)

    answer = client.call_tool(
        "update_record", model="workshop.thing", pk=thing.pk, values={"price": 1}
    )

    assert "'price' is not a field that you can set." in answer.text
    assert " price," not in answer.text


def test_fields_that_the_exposure_hides_from_a_caller_are_not_set(client, thing):
    from mcp_django.exposure.registry import registry

    registry._classes[Thing].get_fields = lambda self, request: ["id", "title"]
    registry.forget_resolved()

    answer = client.call_tool(
        "update_record", model="workshop.thing", pk=thing.pk, values={"price": 1}
    )

    assert "'price' is not a field that you can set." in answer.text


def test_a_fault_of_a_field_that_cannot_be_set_is_told_without_its_name(
    client, thing, monkeypatch
):
    from django.core.exceptions import ValidationError

    def clean(self):
        raise ValidationError({"secret_code": "A secret rule."})

    monkeypatch.setattr(Thing, "clean", clean)

    answer = client.call_tool(
        "update_record", model="workshop.thing", pk=thing.pk, values={"title": "x"}
    )

    assert answer.text == (
        "Nothing was saved.\nThe form of the admin refuses this for a field that you cannot set."
    )


def test_the_list_is_not_kept_where_the_site_decides_who_may_write(client, db, monkeypatch):
    assert listed(client) == WRITES
    answers = iter([False, False, False, False, True])
    for model in (Tag, Thing, Job, Team):
        kind = type(site._registry[model])
        monkeypatch.setattr(kind, "has_add_permission", lambda *args: next(answers, False))
    for label in ("part", "keeper"):
        ExposedModel.objects.create(label=f"workshop.{label}", level=Level.READ)
    first = listed(client)
    second = listed(client)

    assert first == WRITES - {"create_record"}
    assert second == WRITES


# What is told about writing


def test_a_model_is_described_with_what_can_be_set(client, thing):
    writing = client.call_tool("describe_model", model="workshop.thing").data["writing"]

    values = writing["create_record"]["values"]
    assert values["required"] == ["title"]
    assert values["properties"]["rank"]["default"] == "1"
    assert "secret_code" not in values["properties"]
    assert "locked" not in values["properties"]
    rows = writing["create_record"]["inlines"]
    assert list(rows) == ["parts"]
    assert sorted(rows["parts"]["items"]["properties"]) == [
        "at",
        "delete",
        "name",
        "pk",
        "quantity",
    ]
    assert writing["update_record"]["values"].startswith("The fields of create_record")
    assert writing["delete_record"] is True


def test_a_form_that_differs_is_described_by_itself(client, tags, monkeypatch):
    monkeypatch.setattr(
        TagAdmin,
        "get_fields",
        lambda self, request, obj=None: ["name", "is_active"][: 1 + bool(obj)],
    )

    writing = client.call_tool("describe_model", model="workshop.tag").data["writing"]

    assert list(writing["create_record"]["values"]["properties"]) == ["name"]
    changed = writing["update_record"]["values"]
    assert list(changed["properties"]) == ["name", "is_active"]
    assert "required" not in changed


def test_who_may_change_only_is_told_of_that(make_user, tags):
    client = CheckedClient(user=make_user("clerk", "view_tag", "change_tag", is_staff=True))

    writing = client.call_tool("describe_model", model="workshop.tag").data["writing"]

    assert list(writing) == ["update_record"]
    assert list(writing["update_record"]["values"]["properties"]) == ["name", "is_active"]


def test_who_may_only_read_is_told_nothing_of_writing(make_user, thing):
    client = CheckedClient(user=make_user("clerk", "view_thing", is_staff=True))

    described = client.call_tool("describe_model", model="workshop.thing").data
    record = client.call_tool("get_record", model="workshop.thing", pk=thing.pk).data

    assert "writing" not in described
    assert "_version" not in record


def test_a_form_that_cannot_be_made_leaves_the_description(client, tags, monkeypatch, caplog):
    def fail(self, *args, **kwargs):
        raise RuntimeError

    monkeypatch.setattr(TagAdmin, "get_form", fail)

    described = client.call_tool("describe_model", model="workshop.tag").data

    failed = "It cannot be described: the form of the admin failed."
    assert described["writing"] == {
        "create_record": {"unavailable": failed},
        "update_record": {"unavailable": failed},
        "delete_record": True,
    }
    assert "What can be set of workshop.tag cannot be described." in caplog.text


def test_a_view_without_a_form_is_described_as_such(client, tags, monkeypatch):
    from django.http import HttpResponse

    monkeypatch.setattr(TagAdmin, "add_view", lambda *args, **kwargs: HttpResponse())

    described = client.call_tool("describe_model", model="workshop.tag").data
    answer = client.call_tool("create_record", **CALLS["create_record"])

    assert described["writing"]["create_record"] == {"unavailable": answer.text}
    assert answer.text == "The admin shows no form for this."


@pytest.mark.parametrize("hidden_on", ["the page", "the page after one question"])
def test_a_record_that_only_the_pages_of_the_admin_hide_is_not_changed(
    client, monkeypatch, hidden_on
):
    job, asked = Job.objects.create(tenant="b", name="old"), []

    def get_queryset(self, request):
        is_page = hasattr(request, "mcp")
        asked.append(is_page)
        is_hidden = is_page and (hidden_on == "the page" or asked.count(True) > 1)
        return Job.objects.exclude(name="old") if is_hidden else Job.objects.all()

    monkeypatch.setattr(JobAdmin, "get_queryset", get_queryset)

    answer = client.call_tool(
        "update_record", model="workshop.job", pk=job.pk, values={"name": "new"}
    )

    assert answer.is_error
    assert Job.objects.get().name == "old"


def test_the_version_of_a_record_is_that_of_the_write(client, thing):
    record = client.call_tool("get_record", model="workshop.thing", pk=thing.pk).data

    done = client.call_tool(
        "update_record", model="workshop.thing", pk=thing.pk, values={"title": "x"},
        version=record["_version"],
    )  # fmt: skip
    again = client.call_tool(
        "get_record", model="workshop.thing", pk=thing.pk, fields=["title"]
    ).data

    assert not done.is_error
    assert again.pop("admin_url").endswith(f"/workshop/thing/{thing.pk}/change/")
    assert again == {"title": "x", "_version": done.data["version"]}


def test_the_tools_cost_the_same_however_many_models_there_are(client, db):
    import msgspec

    definitions = [one for one in client.list_tools() if one["name"] in WRITES]

    assert len(msgspec.json.encode(definitions)) < 5000
