"""Prompts as somebody else would get them, and what that must not become."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.http import HttpRequest, HttpResponse

import mcp_django as mcp
from mcp_django.exposure.registry import registry
from mcp_django.models import PromptTemplate, PromptVersion
from tests.admin.looking import page_of
from tests.clients import browser_of
from tests.exposure.stored import ORDER, TONE, make_prompt
from tests.shop.admin import OrderAdmin
from tests.shop.models import Order

pytestmark = pytest.mark.django_db

#: Sites with users of their own run these, too.
VIEW_USER = f"view_{get_user_model()._meta.model_name}"
RIGHTS = ("view_prompttemplate", "preview_as_user", VIEW_USER, "view_order", "view_customer")


@pytest.fixture
def looker(make_user):
    return make_user("looker", *RIGHTS, is_staff=True)


@pytest.fixture
def bob(make_user):
    return make_user("bob", "view_order", is_staff=True)


@pytest.fixture
def about():
    return make_prompt(
        "about",
        "About {{ order.number }} {{ order.margin }}{% if tone %}, {{ tone }}{% endif %}.",
        {"role": "assistant", "resource": "django://objects/shop.order/{order}"},
        arguments=[ORDER, TONE],
    )


def look(user, template, person=None, **arguments):
    sent = {f"argument_{name}": value for name, value in arguments.items()}
    if person is not None:
        sent["username"] = person
    return browser_of(user).post(page_of(template, "preview"), sent)


def texts(response):
    return [content.text for _, content in response.context.get("blocks") or ()]


def log():
    return [one.get_change_message() for one in LogEntry.objects.all()]


# As oneself


def test_the_page_asks_for_what_a_client_would_ask_for(looker, about):
    order = Order.objects.create(number="A1")
    day = {"name": "day", "type": "date", "title": "Day", "description": "Which."}
    template = make_prompt(
        "typed", "x", arguments=[ORDER, TONE, {**day, "required": True}, {"name": "many"}]
    )

    page = browser_of(looker).get(page_of(template, "preview")).content.decode()

    assert f'<option value="{order.pk}">A1</option>' in page
    assert '<option value="firm">firm</option>' in page
    assert 'type="date"' in page
    assert "Day *" in page
    assert "Which." in page
    assert 'name="argument_many"' in page
    assert log() == []


def test_a_prompt_is_shown_as_it_would_arrive(looker, about):
    order = Order.objects.create(number="A<b>1", margin=7)

    response = look(looker, about, order=str(order.pk), tone="warm")

    (_, said), (role, resource) = response.context["blocks"]
    assert "A<b>1" in said.text
    assert said.text.endswith(" , warm.")
    assert "7" not in said.text.replace(said.text.partition("data-")[2][:8], "")
    assert (role, resource.mime_type) == ("assistant", "application/json")
    assert resource.uri == f"django://objects/shop.order/{order.pk}"
    page = response.content.decode()
    assert "A&lt;b&gt;1" in page
    assert "What looker gets" in page
    assert log() == []  # nobody else was looked at


@pytest.mark.parametrize(
    ("person", "arguments", "sentence"),
    [
        # What a client would be told
        (None, {}, "Missing argument: order."),
        (None, {"order": "99"}, "Argument order: there is no shop.order &#x27;99&#x27;."),
        (None, {"order": "1", "tone": "loud"}, "Select a valid choice. loud is not one of"),
        # Who is visible: tests/admin/test_inspect.py.
        ("nobody", {"order": "A1"}, "There is no such user whom you may see."),
        ("gone", {"order": "A1"}, "This user may not act"),
    ],
)
def test_what_cannot_be_shown_says_why(looker, make_user, about, person, arguments, sentence):
    make_user("gone", is_active=False)

    response = look(looker, about, person, **arguments)

    assert sentence in response.content.decode()
    assert texts(response) == []
    assert log() == []


def test_what_says_nothing_or_is_broken_or_off_says_so(looker):
    empty = PromptTemplate.objects.create(name="empty", enabled=False)
    broken = PromptTemplate.objects.create(name="broken")
    PromptVersion.objects.create(template=broken, number=1, messages=[])

    assert (
        "This prompt says nothing yet."
        in browser_of(looker).get(page_of(empty, "preview")).content.decode()
    )
    page = look(looker, empty).content.decode()
    assert "The prompt is off: nobody gets it yet." in page
    assert "With these arguments the prompt says nothing." in page
    assert "messages: write at least one" in look(looker, broken).content.decode()


# As somebody else


def test_looking_as_somebody_else_shows_what_they_get_and_is_in_the_log(looker, bob, about):
    order = Order.objects.create(number="A1")
    group = Group.objects.create(name="Support")
    about.groups.add(group)

    response = look(looker, about, "bob", order=str(order.pk))

    page = response.content.decode()
    assert "A1" in texts(response)[0]
    assert "What bob gets" in page
    assert "bob would not get this prompt: it is for other groups." in page
    assert log() == ["Previewed as bob. Nothing was changed."]
    assert LogEntry.objects.get().user == looker
    bob.groups.add(group)
    assert "would not get" not in look(looker, about, "bob", order="A1").content.decode()


def test_nobody_looks_as_somebody_with_more_permissions(looker, make_user, about):
    Order.objects.create(number="A1")
    make_user("root", is_staff=True, is_superuser=True)
    make_user("memos", "view_order", "view_memo", is_staff=True)
    root = make_user("boss", is_staff=True, is_superuser=True)

    for name in ("root", "memos"):
        response = look(looker, about, name, order="A1")
        page = response.content.decode()
        assert "This user has permissions that you do not have." in page
        assert texts(response) == []
    assert log() == []
    assert texts(look(root, about, "memos", order="A1"))
    assert texts(look(root, about, "root", order="A1"))


def test_a_right_that_was_lost_counts_at_once(looker, bob, about):
    Order.objects.create(number="A1")
    assert texts(look(looker, about, "bob", order="A1"))

    bob.user_permissions.clear()

    assert texts(look(looker, about, "bob", order="A1")) == []
    looker.user_permissions.remove(Permission.objects.get(codename="preview_as_user"))
    page = look(looker, about, "bob", order="A1").content.decode()
    assert "What looker gets" in page
    assert "username" not in page.partition('class="mcp-page"')[2]


def test_a_file_is_told_by_its_size_and_a_bug_of_the_site_as_one(looker, monkeypatch):
    monkeypatch.setattr(registry, "resources", {})

    @mcp.resource("shop://picture")
    def picture() -> bytes:
        """Some bytes."""
        return b"12345"

    @mcp.resource("shop://broken")
    def broken() -> str:
        """Broken."""
        raise RuntimeError("of the site")

    template = make_prompt("broken", {"resource": "shop://broken"})
    file = make_prompt("file", {"resource": "shop://picture"})

    assert "5 bytes" in look(looker, file).content.decode()
    with pytest.raises(RuntimeError, match="of the site"):
        look(looker, template)


# What both may see


@pytest.fixture
def narrowed(monkeypatch):
    """The rows of orders by the name of the user; others see all."""
    rows = {}

    def get_queryset(self, request):
        found = super(OrderAdmin, self).get_queryset(request)
        narrow = rows.get(request.user.get_username())
        return found if narrow is None else narrow(found)

    monkeypatch.setattr(OrderAdmin, "get_queryset", get_queryset, raising=False)
    return rows


SOME = [
    lambda rows: rows.filter(number__startswith="L"),
    lambda rows: rows.filter(number__startswith="L").order_by("pk")[:10],
    lambda rows: rows.filter(number__startswith="L").distinct(),
]


@pytest.mark.parametrize("narrow", ["looker", "bob"])
@pytest.mark.parametrize("some", SOME, ids=["filter", "slice", "distinct"])
def test_a_row_that_one_of_both_may_not_see_is_in_no_part_of_a_preview(
    looker, bob, about, narrowed, some, narrow
):
    shared, hidden = Order.objects.create(number="L1"), Order.objects.create(number="HIDDEN-1")
    narrowed[narrow] = some
    listed = make_prompt("listed", {"resource": "django://objects/shop.order"})

    refused = look(looker, about, "bob", order=str(hidden.pk))
    by_name = look(looker, about, "bob", order="HIDDEN-1")
    seen = look(looker, about, "bob", order=str(shared.pk))
    (collection,) = texts(look(looker, listed, "bob"))

    assert refused.context["error"] == f"Argument order: there is no shop.order '{hidden.pk}'."
    assert by_name.context["error"] == "Argument order: there is no shop.order 'HIDDEN-1'."
    assert len(texts(seen)) == 2
    assert "L1" in collection
    assert "HIDDEN-1" not in "".join(page.content.decode() for page in (refused, seen))
    assert "HIDDEN-1" not in collection


@pytest.mark.parametrize("narrow", ["looker", "bob"])
def test_a_row_or_a_field_that_is_judged_for_each_is_shown_if_both_may_see_it(
    looker, bob, about, monkeypatch, narrow
):
    def is_narrow(request):
        return request.user.get_username() == narrow

    def has_view_permission(self, request, obj=None):
        return obj is None or not is_narrow(request) or obj.number == "shown"

    def get_fields(self, request, obj=None):
        return ["status"] if is_narrow(request) else ["status", "number"]

    monkeypatch.setattr(OrderAdmin, "has_view_permission", has_view_permission, raising=False)
    shown, hidden = (Order.objects.create(number=number) for number in ("shown", "hidden"))
    refused, seen = (look(looker, about, "bob", order=str(one.pk)) for one in (hidden, shown))
    monkeypatch.setattr(OrderAdmin, "get_fields", get_fields, raising=False)
    monkeypatch.setattr(OrderAdmin, "list_display", ["status"])

    said, resource = texts(look(looker, about, "bob", order=str(shown.pk)))

    assert "there is no" in refused.context["error"]
    assert "shown" in texts(seen)[0]
    assert "shown" not in said
    assert "shown" not in resource
    assert "status" in resource


def test_what_code_says_to_somebody_else_is_shown_if_the_looker_gets_the_same(
    looker, bob, monkeypatch
):
    monkeypatch.setattr(registry, "resources", {})

    @mcp.resource("shop://opening-hours")
    def hours() -> str:
        """When the shop is open."""
        return "From eight to six."

    @mcp.resource("shop://mine")
    def mine(request: HttpRequest) -> str:
        """Whose orders."""
        return f"Orders of {request.user.get_username()}."

    @mcp.resource("shop://bobs", permission=lambda request: request.user.pk == bob.pk)
    def bobs() -> str:
        """Only for bob."""
        return "For bob."

    uris = ("shop://opening-hours", "shop://mine", "shop://bobs")
    template = make_prompt("days", *({"resource": uri} for uri in uris))
    own = make_prompt("own", *({"resource": uri} for uri in uris[:2]))

    as_bob, as_looker = look(looker, template, "bob"), look(looker, own)

    assert texts(as_bob) == ["From eight to six.", None, None]
    assert "Orders of bob." not in as_bob.content.decode()
    assert "You would get something else" in as_bob.content.decode()
    assert texts(as_looker) == ["From eight to six.", "Orders of looker."]


# The site's middleware


class Tenants:
    """Says on the request whose rows there are, as tenant middleware does."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        request.tenant = request.user.get_username()
        return self.get_response(request)


class Closed:
    """Lets nobody through but to the admin's own pages."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        return self.get_response(request) if "sessionid" in request.COOKIES else HttpResponse()


def test_middleware_of_the_site_runs_for_the_person_and_not_for_the_looker(
    make_user, looker, bob, about, settings, monkeypatch
):
    root = make_user("root", is_staff=True, is_superuser=True)
    Order.objects.create(number="bob")
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{__name__}.Tenants"]

    def get_queryset(self, request):
        found = super(OrderAdmin, self).get_queryset(request)
        return found if request.user.is_superuser else found.filter(number=request.tenant)

    monkeypatch.setattr(OrderAdmin, "get_queryset", get_queryset, raising=False)

    assert texts(look(root, about, "bob", order="bob"))
    assert "there is no" in look(looker, about, order="bob").context["error"]
    assert "there is no" in look(looker, about, "bob", order="bob").context["error"]
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{__name__}.Closed"]
    answered = look(root, about, "bob", order="bob").context["error"]
    assert "Middleware of this site answers" in answered
