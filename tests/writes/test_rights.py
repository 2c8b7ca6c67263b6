"""Who may not write finds no way to: not listed, not called, not hinted at."""

from __future__ import annotations

import jsonschema_rs
import pytest
from django.core.exceptions import ValidationError
from django.http import HttpResponse

from mcp_django.exposure.primitives import WRITES
from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from mcp_django.models import ExposedModel, ServerSettings, UserRestriction
from mcp_django.principal import READ, WRITE
from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient
from tests.workshop.admin import JobAdmin, TagAdmin, ThingAdmin, site
from tests.workshop.models import Job, Tag, Team, Thing
from tests.writes.calls import changed, hide_by_exposure, refusal, tag_names, update

pytestmark = pytest.mark.django_db

CALLS = {
    "create_record": {"model": "workshop.tag", "values": {"name": "new"}},
    "update_record": {"model": "workshop.tag", "pk": 1, "values": {"name": "new"}},
    "update_records": {"model": "workshop.tag", "pks": [1], "values": {"name": "new"}},
    "undo_change": {"model": "workshop.tag", "pk": 1, "change": 1},
    "delete_record": {"model": "workshop.tag", "pk": 1},
}
UPDATES = {"update_record", "update_records", "undo_change"}
EVERY = ["add_tag", "change_tag", "delete_tag"]


def listed(client):
    return client.tools().keys() & WRITES


def assert_offered(client, tools):
    """These are listed, and the others are unknown."""
    assert listed(client) == tools
    for name in WRITES - tools:
        with pytest.raises(ProtocolFailure, match="Unknown tool"):
            client.call_tool(name, **CALLS[name])


def create(client, **changes):
    return client.call_tool("create_record", **{**CALLS["create_record"], **changes})


@pytest.mark.parametrize(
    ("rights", "options", "tools"),
    [
        (["add_tag"], {}, {"create_record"}),
        (["change_tag"], {}, UPDATES),
        (["delete_tag"], {}, {"delete_record"}),
        (["view_thing"], {}, set()),
        # Permissions without the admin site are worth nothing.
        (EVERY, {"is_staff": False}, set()),
        ([], {"is_superuser": True}, WRITES),
        ([], {"is_superuser": True, "scopes": (READ,)}, set()),
        ([], {"is_superuser": True, "scopes": (WRITE,)}, {"create_record", *UPDATES}),
        ([], {"is_superuser": True, "scopes": ("mcp:delete",)}, {"delete_record"}),
        ([], {"is_superuser": True, "scopes": ("mcp:read", "mcp:action")}, set()),
        ([], {"is_superuser": True, "read_only": True}, set()),
    ],
)
def test_rights_of_the_admin_and_scopes_of_the_credential_bring_the_tools(
    rights, options, tools, make_client, tags
):
    client = make_client("view_tag", *rights, **options)

    assert_offered(client, tools)
    assert tag_names() == ["blue", "old", "red"]


@pytest.mark.parametrize(
    "act",
    [
        lambda superuser, configure: UserRestriction.objects.create(user=superuser),
        lambda superuser, configure: ServerSettings.objects.create(read_only=True),
        lambda superuser, configure: configure(READ_ONLY=True),
    ],
    ids=["user", "server", "site"],
)
def test_read_only_takes_them_away_at_every_level(act, client, superuser, configure, tags):
    before = listed(client)

    act(superuser, configure)

    assert before == WRITES
    assert_offered(client, set())
    assert tag_names() == ["blue", "old", "red"]


NAMES = ("Tag", "Thing", "Part", "Keeper", "Job", "Team", "Rack")


@pytest.mark.exposure(**{name: {"level": Level.ACT} for name in NAMES})
def test_without_a_model_of_level_write_there_are_none(client, tags):
    assert_offered(client, set())


@pytest.mark.exposure(Tag={"level": None})
def test_a_model_is_not_written_before_staff_open_it(client, tags):
    before = create(client)
    ExposedModel.objects.create(label="workshop.tag", level=Level.WRITE)
    after = create(client)

    assert before.text.startswith("You cannot add records of workshop.tag. You can add those of:")
    assert not after.is_error


@pytest.mark.parametrize(
    ("label", "level", "words"),
    [
        ("workshop.tag", Level.READ, "You cannot add records of workshop.tag."),
        ("workshop.tag", Level.HIDDEN, "There is no model 'workshop.tag'."),
        # No admin has it.
        ("shop.memo", Level.WRITE, "You cannot add records of shop.memo."),
    ],
)
def test_a_model_that_staff_closed_is_not_written(label, level, words, client, tags):
    ExposedModel.objects.create(label=label, level=level)

    assert create(client, model=label).text.startswith(words)


def test_who_may_write_nothing_of_that_kind_hears_of_no_other_model(make_client, tags):
    client = make_client("view_tag", "view_job", "add_job")

    assert create(client).text.endswith("You can add those of: workshop.job.")


def test_a_hidden_and_a_missing_model_answer_in_the_same_words(client, tags):
    hidden = create(client, model="workshop.scrap")
    missing = create(client, model="workshop.scarp")

    assert hidden.text.replace("scrap", "scarp") == missing.text


def test_a_token_for_one_model_writes_no_other(superuser, tags):
    client = CheckedClient(user=superuser, models=["workshop.tag"])

    assert create(client, model="workshop.job").is_error
    assert not create(client).is_error


@pytest.mark.parametrize(
    ("tool", "name_them"),
    [
        ("update_record", lambda mine, pk: {"pk": pk}),
        ("update_records", lambda mine, pk: {"pks": [mine, pk]}),
        ("update_records", lambda mine, pk: {"filters": {"id": pk}}),
        ("delete_record", lambda mine, pk: {"pk": pk}),
        ("delete_record", lambda mine, pk: {"pk": [mine, pk]}),
        ("delete_record", lambda mine, pk: {"filters": {"id": pk}}),
    ],
    ids=range(6),
)
def test_rows_that_one_may_not_see_are_answered_as_missing_ones(client, tool, name_them):
    mine, theirs = (Job.objects.create(tenant=tenant, name="old").pk for tenant in "bx")
    values = {} if tool == "delete_record" else {"values": {"name": "new"}}

    hidden, missing = (
        client.refusal(tool, model="workshop.job", **name_them(mine, pk), **values)
        for pk in (theirs, 999)
    )

    assert hidden.replace(str(theirs), "999") == missing
    assert list(Job.objects.values_list("name", flat=True)) == ["old", "old"]


def test_the_rows_of_an_exposure_hold_for_writes_too(client, tags, monkeypatch):
    """The admin shows them all; what assistants see is less."""
    red, _, old = tags
    hide_by_exposure(monkeypatch, Tag, is_active=False)
    registry._classes[Tag].has_view_permission = lambda self, request, obj=None: True

    refused = update(client, old)
    relation = create(client, model="workshop.job", values={"name": "x", "tag": old.pk})
    changed(update(client, red, name="r"))

    assert refused.text.startswith(f"There is no workshop.tag with the key {old.pk}.")
    assert f"tag: No tag matches {old.pk}." in relation.text


@pytest.mark.parametrize("pk", ["x", None, [], [1, 2], {}, True, 10**40, "1/../2", "", 1.5])
def test_a_key_that_cannot_be_one_is_no_record(pk, client, tags):
    call = {"model": "workshop.tag", "values": {"name": "new"}}

    client.refusal("update_record", **call, **({} if pk is None else {"pk": pk}))

    assert tag_names() == ["blue", "old", "red"]


def test_a_site_that_cannot_tell_has_not_said_yes(client, tags, monkeypatch, caplog):
    def fail(*args):
        raise RuntimeError

    for model_admin in (TagAdmin, ThingAdmin, JobAdmin):
        monkeypatch.setattr(model_admin, "has_add_permission", fail)

    answer = refusal(create(client))

    assert "Whether workshop.Tag may be changed is unknown." in caplog.text
    assert "workshop.part" in answer  # whose admin is Django's own


@pytest.mark.exposure(Tag={"write_fields": ["name", "nonsense"]})
def test_write_fields_are_all_that_can_be_set(client, tags):
    refused = update(client, tags[0], is_active=False)
    changed(update(client, tags[0], name="x"))

    assert "You can set: name." in refused.text


@pytest.mark.thorough
@pytest.mark.exposure(
    Thing={
        "fields": ["id", "title", "secret_code"],
        "exclude": ["note", "tag__name"],
        "modified_field": "",
    }
)
def test_secrets_are_set_where_code_names_them_and_excluded_fields_are_not(client, thing):
    assert not update(client, thing, secret_code="x").is_error
    assert "'note' is not a field" in update(client, thing, note="x").text
    assert "'tag' is not a field" in update(client, thing, tag=None).text


def take_away(monkeypatch):
    ExposedModel.objects.create(label="workshop.thing", fields=["id", "title"], level=Level.WRITE)


def close_for_writing(monkeypatch):
    names = ["title", "nowhere"]
    ExposedModel.objects.create(label="workshop.thing", write_fields=names, level=Level.WRITE)


def hide_in_code(monkeypatch):
    monkeypatch.setattr(
        registry._classes[Thing], "get_fields", lambda self, request: ["id", "title"]
    )
    registry.forget_resolved()


@pytest.mark.parametrize("act", [take_away, close_for_writing, hide_in_code])
def test_fields_that_staff_or_code_hide_from_a_caller_are_not_set(act, client, thing, monkeypatch):
    act(monkeypatch)

    answer = update(client, thing, price=1)

    assert "'price' is not a field that you can set." in answer.text
    assert " price," not in answer.text
    assert not update(client, thing, title="new").is_error


def test_a_fault_of_a_field_that_cannot_be_set_is_told_without_its_name(
    client, thing, monkeypatch
):
    def clean(self):
        raise ValidationError({"secret_code": "A secret rule."})

    monkeypatch.setattr(Thing, "clean", clean)

    assert update(client, thing, title="x").text == (
        "Nothing was saved.\nThe form of the admin refuses this for a field that you cannot set."
    )


def test_the_list_is_not_kept_where_the_site_decides_who_may_write(client, db, monkeypatch):
    assert listed(client) == WRITES
    answers = iter([False, False, False, False, True])
    for model in (Tag, Thing, Job, Team):
        kind = type(site._registry[model])
        monkeypatch.setattr(kind, "has_add_permission", lambda *args: next(answers, False))
    for label in ("part", "keeper", "rack"):
        ExposedModel.objects.create(label=f"workshop.{label}", level=Level.READ)
    first = listed(client)
    second = listed(client)

    assert first == WRITES - {"create_record"}
    assert second == WRITES


# What is told about writing


def test_a_model_is_described_with_what_can_be_set(client, thing, monkeypatch):
    monkeypatch.setattr(Thing._meta.get_field("price"), "help_text", "As printed")
    writing = client.data("describe_model", model="workshop.thing")["writing"]

    values = writing["create_record"]["values"]
    jsonschema_rs.meta.validate(values)
    # Without what the fields of the description say.
    assert list(values) == ["properties", "required"]
    assert values["required"] == ["title"]
    assert values["properties"]["price"] == {"type": ["number", "string"], "default": 0}
    assert values["properties"]["state"] == {"default": "new"}
    assert values["properties"]["slug"]["title"] == "Slug"
    assert values["properties"]["rank"]["default"] == "1"
    assert "secret_code" not in values["properties"]
    assert "locked" not in values["properties"]
    rows = writing["create_record"]["inlines"]
    jsonschema_rs.meta.validate(rows["parts"])
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

    writing = client.data("describe_model", model="workshop.tag")["writing"]

    assert list(writing["create_record"]["values"]["properties"]) == ["name"]
    changed = writing["update_record"]["values"]
    assert list(changed["properties"]) == ["name", "is_active"]
    assert "required" not in changed
    assert "default" not in str(changed)


@pytest.mark.parametrize(
    ("right", "tools"),
    [
        ("view", []),
        ("add", ["create_record"]),
        ("change", ["update_record"]),
        ("delete", ["delete_record"]),
    ],
)
def test_everybody_is_told_of_what_they_may_do(make_client, tags, right, tools):
    client = make_client("view_tag", f"{right}_tag")

    described = client.data("describe_model", model="workshop.tag")
    record = client.data("get_record", model="workshop.tag", pk=tags[0].pk)

    writing = described.get("writing", {})
    assert list(writing) == tools
    assert ("_version" in record) is (right == "change")
    if right == "change":
        assert list(writing["update_record"]["values"]["properties"]) == ["name", "is_active"]


def test_a_form_that_cannot_be_made_leaves_the_description(client, tags, monkeypatch, caplog):
    def fail(self, *args, **kwargs):
        raise RuntimeError

    monkeypatch.setattr(TagAdmin, "formfield_for_dbfield", fail)

    writing = client.call_tool("describe_model", model="workshop.tag").data["writing"]

    assert writing["delete_record"] is True
    for tool in ("create_record", "update_record"):
        (sentence,) = writing[tool].values()
        assert sentence.startswith("The admin of workshop.tag failed (id ")
    assert "The admin of workshop.tag failed [" in caplog.text


def test_a_view_without_a_form_is_described_as_such(client, tags, monkeypatch):
    monkeypatch.setattr(TagAdmin, "add_view", lambda *args, **kwargs: HttpResponse())

    described = client.call_tool("describe_model", model="workshop.tag").data
    answer = create(client)

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

    answer = update(client, job, name="new")

    assert answer.is_error
    assert Job.objects.get().name == "old"
