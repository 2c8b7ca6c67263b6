"""A record is created as the add form would, with its defaults, its rules and its log."""

from __future__ import annotations

import base64

import pytest
from django.contrib import messages
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.core.files.storage import FileSystemStorage

from mcp_django.exposure.generation import generations
from mcp_django.levels import Level
from mcp_django.models import ExposedModel, ExposedPrompt
from tests.clients import CheckedClient
from tests.workshop.admin import TagAdmin, ThingAdmin, site
from tests.workshop.models import Job, Tag, Thing

pytestmark = pytest.mark.django_db


def create(client, inlines=None, **values):
    given = {} if inlines is None else {"inlines": inlines}
    return client.call_tool("create_record", model="workshop.thing", values=values, **given)


def content_of(file):
    with file.open() as opened:
        return opened.read()


def encoded(content):
    return base64.b64encode(content).decode()


def test_what_is_not_sent_is_what_the_add_form_shows(client):
    answer = create(client, title="Ünïcode Title", day="2026-01-01")

    assert not answer.is_error, answer.text
    made = Thing.objects.get()
    assert answer.data["pk"] == made.pk
    assert answer.data["record"]["title"] == "Ünïcode Title"
    assert made.slug == "unicode-title"
    assert (made.state, made.high, made.rank, made.data) == ("new", 9, 1, {})
    assert made.made_at is not None
    assert "through an assistant: mcp_django.testing" in LogEntry.objects.get().change_message


def test_a_slug_that_is_sent_is_not_made_of_the_title(client):
    create(client, title="A title", slug="other")

    assert Thing.objects.get().slug == "other"


def test_every_fault_is_told_and_nothing_is_created(client, thing):
    answer = create(client, day="x", group="g", number=1)

    assert answer.is_error
    assert "day: 'x' is not a day such as 2026-01-31." in answer.text
    assert Thing.objects.count() == 1

    answer = create(client, group="g", number=1)

    assert "title: This field is required. (You did not send this field.)" in answer.text
    assert "already exists" in answer.text


def test_initial_values_of_the_site_hold(client, monkeypatch):
    monkeypatch.setattr(
        ThingAdmin, "get_changeform_initial_data", lambda self, request: {"note": "from the site"}
    )

    create(client, title="T")

    assert Thing.objects.get().note == "from the site"


@pytest.mark.exposure(Thing={"exclude": ["note"]})
def test_an_initial_value_of_an_excluded_field_is_saved_and_not_named(client, monkeypatch):
    monkeypatch.setattr(
        ThingAdmin, "get_changeform_initial_data", lambda self, request: {"note": "from the site"}
    )

    answer = create(client, title="T")

    assert Thing.objects.get().note == "from the site"
    assert list(answer.data["changed"]) == ["title", "slug"]
    assert "note" not in answer.text


def test_rows_are_created_along(client):
    answer = create(client, title="T", inlines={"parts": [{"name": "p"}, {"name": "q"}]})

    assert not answer.is_error, answer.text
    assert sorted(Thing.objects.get().parts.values_list("name", "quantity")) == [
        ("p", 1),
        ("q", 1),
    ]
    assert list(answer.data["changed"]) == ["title", "slug", "parts"]


def test_what_the_site_says_comes_with_the_answer_and_not_the_admins_own_report(
    client, monkeypatch
):
    def save_model(self, request, obj, form, change):
        messages.warning(request, "It is the last one.")
        messages.success(request, "A mail was sent.")
        super(ThingAdmin, self).save_model(request, obj, form, change)

    monkeypatch.setattr(ThingAdmin, "save_model", save_model)

    answer = create(client, title="T")

    assert answer.data["messages"] == [
        {"level": "warning", "text": "It is the last one."},
        {"level": "success", "text": "A mail was sent."},
    ]
    assert "str of" not in answer.text


def test_an_answer_is_not_given_again_to_whom_a_right_was_taken(make_user):
    clerk = make_user("clerk", "view_tag", "add_tag", "add_job", "view_job", is_staff=True)
    call = {"model": "workshop.tag", "values": {"name": "x"}, "idempotency_key": "k1"}
    assert not CheckedClient(user=clerk).call_tool("create_record", **call).is_error
    clerk.user_permissions.remove(*Permission.objects.filter(codename="add_tag"))

    answer = CheckedClient(user=clerk).call_tool("create_record", **call)

    assert answer.text.startswith("You cannot add records of workshop.tag.")


def test_a_key_makes_two_calls_one(client):
    call = {"model": "workshop.tag", "values": {"name": "x"}, "idempotency_key": "k1"}

    first = client.call_tool("create_record", **call)
    second = client.call_tool("create_record", **call)
    other = client.call_tool("create_record", **{**call, "values": {"name": "y"}})

    assert first.data == second.data
    assert other.is_error
    assert Tag.objects.count() == 1


def withdraw_field(clerk):
    ExposedModel.objects.create(label="workshop.tag", level=Level.WRITE, fields=["id"])


def give_permission(clerk):
    clerk.user_permissions.add(*Permission.objects.filter(codename="view_thing"))


def switch_prompt_off(clerk):
    ExposedPrompt.objects.create(name="shop_greeting", enabled=False)


def narrow_token(clerk):
    clerk.mcp_personal_tokens.update(models=["workshop.tag"])
    generations.forget()


def delete_record(clerk):
    Tag.objects.all().delete()


@pytest.mark.parametrize(
    "change", [withdraw_field, give_permission, switch_prompt_off, narrow_token, delete_record]
)
def test_an_answer_under_other_rights_is_not_given_again_and_nothing_is_done_twice(
    make_user, change
):
    clerk = make_user("clerk", "view_tag", "add_tag", is_staff=True)
    client = CheckedClient(user=clerk, scopes=["mcp:read", "mcp:write"])
    call = {"model": "workshop.tag", "values": {"name": "secret"}, "idempotency_key": "k1"}
    assert not client.call_tool("create_record", **call).is_error
    before = Tag.objects.count()
    change(clerk)
    left = Tag.objects.count()

    answer = client.call_tool("create_record", **call)

    assert before == 1
    assert answer.is_error
    assert answer.text.startswith("This call was done before, and was not done again.")
    assert "secret" not in answer.text
    assert Tag.objects.count() == left


def test_an_answer_about_a_record_that_left_the_rows_of_the_caller_is_not_given_again(make_user):
    nora = CheckedClient(user=make_user("nora", is_staff=True, is_superuser=True))
    values = {"name": "secret", "tenant": "n"}
    call = {"model": "workshop.job", "values": values, "idempotency_key": "k1"}
    assert nora.call_tool("create_record", **call).data["record"]["name"] == "secret"
    Job.objects.update(tenant="z")

    answer = nora.call_tool("create_record", **call)

    assert answer.is_error
    assert answer.text.startswith("This call was done before, and was not done again.")
    assert Job.objects.count() == 1


def test_an_answer_with_a_field_that_code_of_the_site_hides_now_is_not_given_again(
    client, monkeypatch
):
    fields = ["name"]
    monkeypatch.setattr(TagAdmin, "get_fields", lambda *asked: fields, raising=False)
    call = {"model": "workshop.tag", "values": {"name": "secret"}, "idempotency_key": "k1"}
    assert client.call_tool("create_record", **call).data["record"]["name"] == "secret"
    fields[:] = ["is_active"]

    answer = client.call_tool("create_record", **call)

    assert answer.is_error
    assert answer.text.startswith("This call was done before, and was not done again.")
    assert Tag.objects.count() == 1


def test_an_answer_without_a_record_is_given_again_as_it_was(make_user):
    nora = CheckedClient(user=make_user("nora", is_staff=True, is_superuser=True))
    values = {"name": "elsewhere", "tenant": "z"}
    call = {"model": "workshop.job", "values": values, "idempotency_key": "k1"}

    first, second = (nora.call_tool("create_record", **call) for _ in range(2))

    assert not first.is_error
    assert first.data["record"] is None
    assert second.data == first.data
    assert Job.objects.count() == 1


def test_a_call_that_failed_can_be_sent_again_with_its_key(client):
    call = {"model": "workshop.tag", "idempotency_key": "k1"}

    assert client.call_tool("create_record", **call, values={"name": ""}).is_error
    assert not client.call_tool("create_record", **call, values={"name": "x"}).is_error


# Files


def test_files_come_as_base64_and_are_named_by_the_last_part(client):
    paper = {"filename": "..\\..\\a/../new.txt", "data": encoded(b"new")}

    answer = create(client, title="T", paper=paper)

    assert not answer.is_error, answer.text
    made = Thing.objects.get()
    assert content_of(made.paper) == b"new"
    assert made.paper.name == "papers/new.txt"


@pytest.mark.thorough
def test_a_file_is_replaced_and_taken_away(client, thing):
    def update(**values):
        return client.call_tool(
            "update_record", model="workshop.thing", pk=thing.pk, values=values
        )

    assert not update(paper={"filename": "b.txt", "data": encoded(b"b")}).is_error
    thing.refresh_from_db()
    assert content_of(thing.paper) == b"b"
    assert not update(paper=None, picture=None).is_error
    thing.refresh_from_db()
    assert (thing.paper.name, thing.picture.name) == ("", "")


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ({"filename": "a", "data": "not base64!"}, "not base64"),
        ({"filename": "a", "data": "YQ"}, "not base64"),
        ({"filename": "a", "data": "ü" * 4}, "not base64"),
        ({"filename": "a", "data": 5}, "A file is"),
        ({"filename": "a"}, "A file is"),
        ({"filename": "a", "data": "", "more": 1}, "A file is"),
        ({"filename": "..", "data": "YQ=="}, "not a name"),
        ({"filename": "", "data": "YQ=="}, "not a name"),
        ({"filename": "a/", "data": "YQ=="}, "not a name"),
        ({"filename": "a\nb", "data": "YQ=="}, "not a name"),
        ({"filename": "a", "data": ""}, "empty"),
        ([], "A file is"),
        ("YQ==", "A file is"),
    ],
)
def test_what_is_no_file_is_refused(file, words, client):
    answer = create(client, title="T", paper=file)

    assert answer.is_error
    assert f"paper: {''}" in answer.text
    assert words in answer.text
    assert not Thing.objects.exists()


@pytest.mark.thorough
def test_a_file_beyond_the_cap_is_refused(client, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "MAX_FILE": 10}

    for size in (11, 12, 100):
        answer = create(client, title="T", paper={"filename": "a", "data": encoded(b"x" * size)})
        assert "paper: The file is larger than 10 bytes." in answer.text
    answer = create(client, title="T", paper={"filename": "a", "data": encoded(b"x" * 10)})
    assert not answer.is_error


def test_stored_files_are_never_opened(client, thing, monkeypatch):
    opened = []
    monkeypatch.setattr(FileSystemStorage, "size", lambda *args: opened.append(args))
    monkeypatch.setattr(FileSystemStorage, "_open", lambda *args: opened.append(args))

    answer = client.call_tool(
        "update_record", model="workshop.thing", pk=thing.pk, values={"title": "new"}
    )

    assert not answer.is_error
    assert opened == []


def test_the_registered_admin_is_never_touched(client, thing):
    registered = site._registry[Thing]
    before = dict(vars(registered))

    create(client, title="T", number=5)

    assert dict(vars(registered)) == before
