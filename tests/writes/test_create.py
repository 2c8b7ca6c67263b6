"""A record is created as the add form would, with its defaults, its rules and its log."""

from __future__ import annotations

import base64

import pytest
from django.contrib import messages
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.core.files.storage import FileSystemStorage
from django.utils.html import format_html

from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from mcp_django.models import ExposedModel, ExposedPrompt
from mcp_django.stores.cache_version import generations
from tests.clients import CheckedClient
from tests.workshop.admin import TagAdmin, ThingAdmin, site
from tests.workshop.exposed import EXPOSED
from tests.workshop.models import Job, Tag, Thing
from tests.writes.calls import changed, create, refusal, update

pytestmark = pytest.mark.django_db


def content_of(file):
    with file.open() as opened:
        return opened.read()


def encoded(content):
    return base64.b64encode(content).decode()


def test_what_is_not_sent_is_as_the_add_form_shows_it(client):
    answer = create(client, title="Ünïcode Title", day="2026-01-01")

    assert not answer.is_error, answer.text
    made = Thing.objects.get()
    assert answer.data["pk"] == made.pk
    assert answer.data["record"]["title"] == "Ünïcode Title"
    assert made.slug == "unicode-title"
    assert (made.state, made.high, made.rank, made.data) == ("new", 9, 1, {})
    assert made.made_at is not None
    assert "through an assistant: mcp_django.testing" in LogEntry.objects.get().change_message


def test_a_slug_is_made_of_the_title_where_none_is_sent(client, monkeypatch):
    monkeypatch.setattr(Thing._meta.get_field("slug"), "blank", False)

    described = client.data("describe_model", model="workshop.thing")["writing"]["create_record"]

    assert described["values"]["required"] == ["title"]
    assert not create(client, title="A title").is_error
    assert not create(client, title="A title", slug="other", number=2).is_error
    assert sorted(Thing.objects.values_list("slug", flat=True)) == ["a-title", "other"]


def test_every_fault_is_told_and_nothing_is_created(client, thing):
    first = refusal(create(client, day="x", group="g", number=1))
    second = create(client, group="g", number=1)

    assert "day: 'x' is not a day such as 2026-01-31." in first
    assert "title: This field is required. (You did not send this field.)" in second.text
    assert "already exists" in second.text
    assert Thing.objects.count() == 1


@pytest.mark.exposure(Thing={"exclude": ["note"]})
def test_an_initial_value_of_an_excluded_field_is_saved_and_not_named(client, monkeypatch):
    monkeypatch.setattr(
        ThingAdmin, "get_changeform_initial_data", lambda self, request: {"note": "from the site"}
    )

    answer = create(client, title="T")

    assert Thing.objects.get().note == "from the site"
    assert list(answer.data["changed"]) == ["title", "slug"]
    assert "note" not in answer.text


def test_messages_of_the_site_come_with_the_answer_and_not_the_admins_own_report(
    client, monkeypatch
):
    def save_model(self, request, obj, form, change):
        messages.warning(request, "2 < 3, and it is the last one.")
        messages.success(request, format_html('<a href="/x">{}</a> done', "A & B"))
        messages.debug(request, "Not shown in the admin either.")
        messages.info(request, "")
        super(ThingAdmin, self).save_model(request, obj, form, change)

    monkeypatch.setattr(ThingAdmin, "save_model", save_model)

    answer = create(client, title="T")

    assert answer.data["messages"] == [
        {"level": "warning", "text": "2 < 3, and it is the last one."},
        {"level": "success", "text": "A & B done"},
    ]
    assert "str of" not in answer.text


def test_the_registered_admin_is_never_touched(client, thing):
    registered = site._registry[Thing]
    before = dict(vars(registered))

    create(client, title="T", number=5)

    assert dict(vars(registered)) == before


# The key of a call that may be sent again

CALL = {"model": "workshop.tag", "values": {"name": "x"}, "idempotency_key": "k1"}
DONE_BEFORE = "This call was done before, and was not done again."


def test_a_call_that_failed_can_be_sent_again_with_its_key(client):
    client.refusal("create_record", **{**CALL, "values": {"name": ""}})

    client.data("create_record", **CALL)

    assert Tag.objects.count() == 1


def test_an_answer_is_not_given_again_to_whom_a_right_was_taken(make_user):
    clerk = make_user("clerk", "view_tag", "add_tag", "add_job", "view_job", is_staff=True)
    CheckedClient(user=clerk).data("create_record", **CALL)
    clerk.user_permissions.remove(*Permission.objects.filter(codename="add_tag"))

    refusal = CheckedClient(user=clerk).refusal("create_record", **CALL)

    assert refusal.startswith("You cannot add records of workshop.tag.")


#: A call whose answer has a field, a related record and a record to lose.
SECRETS = {
    "model": "workshop.thing",
    "values": {"title": "secret", "tags": ["red"]},
    "idempotency_key": "k1",
}


@pytest.fixture
def clerk(make_user, tags):
    return make_user("clerk", "view_thing", "add_thing", "view_tag", is_staff=True)


def call_again(client, change):
    """The refusal of the second call, after something changed that the first answer hangs on."""
    first = client.data("create_record", **SECRETS)
    assert "secret" in str(first)
    assert "red" in str(first)
    change()
    left = Thing.objects.count()

    refusal = client.refusal("create_record", **SECRETS)

    assert Thing.objects.count() == left
    assert "secret" not in refusal
    assert "red" not in refusal
    return refusal


def narrow_in_code(clerk):
    registry.unregister(Thing)
    options = {**EXPOSED[Thing], "level": Level.WRITE, "fields": ["id", "note"]}
    registry.register(Thing, type("Narrow", (ModelExposure,), options))


def narrow_token(clerk):
    clerk.mcp_personal_tokens.update(models=["workshop.thing", "workshop.tag"])
    generations.forget()


#: What the first answer hangs on, and how it changes.
CHANGES = {
    "a field": lambda clerk: ExposedModel.objects.create(
        label="workshop.thing", level=Level.WRITE, fields=["id"]
    ),
    "code": narrow_in_code,
    "a permission": lambda clerk: clerk.user_permissions.add(
        *Permission.objects.filter(codename="view_team")
    ),
    "a prompt": lambda clerk: ExposedPrompt.objects.create(name="shop_greeting", enabled=False),
    "the token": narrow_token,
    "the record": lambda clerk: Thing.objects.all().delete(),
}


@pytest.mark.exposure(Thing={"filter_fields": ["tags"]})
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_answer_under_other_rights_is_not_given_again_and_nothing_is_done_twice(clerk, change):
    client = CheckedClient(user=clerk, scopes=["mcp:read", "mcp:write"])

    assert call_again(client, lambda: change(clerk)).startswith(DONE_BEFORE)


@pytest.mark.exposure(Thing={"filter_fields": ["tags"]})
@pytest.mark.parametrize("name", ["secret", "red", "title"], ids=["record", "member", "field"])
def test_an_answer_with_something_that_code_of_the_site_hides_now_is_not_given_again(
    clerk, monkeypatch, name
):
    hidden = []
    fields = ThingAdmin.get_fields
    monkeypatch.setattr(
        ThingAdmin,
        "get_queryset",
        lambda self, request: Thing.objects.exclude(title__in=hidden),
    )
    monkeypatch.setattr(
        TagAdmin, "get_queryset", lambda self, request: Tag.objects.exclude(name__in=hidden)
    )
    monkeypatch.setattr(
        ThingAdmin,
        "get_fields",
        lambda *asked: [field for field in fields(*asked) if field not in hidden],
    )

    refusal = call_again(CheckedClient(user=clerk), lambda: hidden.append(name))

    assert refusal.startswith(DONE_BEFORE)


def test_a_key_makes_two_calls_one_and_an_answer_without_a_record_comes_again(make_client):
    nora = make_client(name="nora", is_superuser=True)
    values = {"name": "elsewhere", "tenant": "z"}
    call = {"model": "workshop.job", "values": values, "idempotency_key": "k1"}

    first, second = (nora.data("create_record", **call) for _ in range(2))
    nora.refusal("create_record", **{**call, "values": {"name": "other"}})

    assert first["record"] is None
    assert second == first
    assert Job.objects.count() == 1


# Files


@pytest.mark.thorough
def test_a_file_is_replaced_and_taken_away(client, thing):
    replaced = update(client, thing, paper={"filename": "b.txt", "data": encoded(b"b")})
    thing.refresh_from_db()
    content = content_of(thing.paper)
    taken = update(client, thing, paper=None, picture=None)
    thing.refresh_from_db()

    assert replaced.is_error is taken.is_error is False
    assert content == b"b"
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
        ({"filename": "a\nb", "data": "YQ=="}, "not a name"),
        ({"filename": "a", "data": ""}, "empty"),
        ([], "A file is"),
        ("YQ==", "A file is"),
    ],
)
def test_what_is_no_file_is_refused(file, words, client):
    answer = refusal(create(client, title="T", paper=file))

    assert "paper: " in answer
    assert words in answer
    assert not Thing.objects.exists()


@pytest.mark.thorough
@pytest.mark.parametrize(("size", "fits"), [(10, True), (11, False), (12, False), (100, False)])
def test_a_file_beyond_the_cap_is_refused_with_the_way_that_is_left(client, settings, size, fits):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "MAX_FILE": 10}

    answer = create(client, title="T", paper={"filename": "a", "data": encoded(b"x" * size)})

    assert answer.is_error is not fits
    if not fits:
        words = 'paper: The file is larger than 10 bytes. Take "upload://..." of a file'
        assert words in answer.text
        assert "under Files for assistants." in answer.text


def test_stored_files_are_never_opened(client, thing, monkeypatch):
    opened = []
    monkeypatch.setattr(FileSystemStorage, "size", lambda *args: opened.append(args))
    monkeypatch.setattr(FileSystemStorage, "_open", lambda *args: opened.append(args))

    changed(update(client, thing, title="new"))

    assert opened == []
