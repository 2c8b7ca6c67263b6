"""A list that is kept is told to nobody else, and not for longer than it is true."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser, PermissionsMixin, User
from django.utils import translation
from django.utils.translation import gettext_lazy

import mcp_django as mcp
from mcp_django.exposure.permissions import is_plain
from mcp_django.exposure.registry import registry
from mcp_django.models import ExposedTool, PersonalToken, ServerSettings, UserRestriction
from mcp_django.transports import streamable_http
from tests.clients import CheckedClient
from tests.shop.models import Order

pytestmark = pytest.mark.django_db

#: Where a gate of the site's own decides about an action of the shop, it is asked for every list.
where_lists_are_kept = pytest.mark.skipif(
    "ADMIN_SITES" in settings.MCP_DJANGO, reason="the office has a gate of its own"
)
LISTS = ["tools/list", "server/discover"]


@pytest.fixture
def ada(make_user):
    """May call "pay"."""
    return make_user("ada", "change_order", "view_order", is_staff=True)


@pytest.fixture
def at_once(monkeypatch):
    """Which lists needed no thread because the endpoint had kept them, in order."""
    kept = []

    def watched(principal, params):
        result = kept_list(principal, params)
        kept.append(result is not None)
        return result

    kept_list = streamable_http.kept_list
    monkeypatch.setattr(streamable_http, "kept_list", watched)
    return kept


@where_lists_are_kept
def test_a_kept_list_is_told_to_no_other_user(ada, make_client, at_once):
    mighty, other = CheckedClient(user=ada), make_client()

    seen = [([*mighty.tools()], [*other.tools()]) for _ in range(3)]

    assert seen == [seen[0]] * 3
    assert ["pay" in of_user for of_user in seen[0]] == [True, False]
    assert True in at_once


def test_two_credentials_of_one_user_share_no_list(ada):
    clients = {
        "all": CheckedClient(user=ada),
        "scopes": CheckedClient(user=ada, scopes=["mcp:read"]),
        "read_only": CheckedClient(user=ada, read_only=True),
        "models": CheckedClient(user=ada, models=["shop.customer"]),
    }

    for _ in range(3):
        assert {name: "pay" in client.tools() for name, client in clients.items()} == {
            name: name == "all" for name in clients
        }


@pytest.mark.parametrize(
    "lose",
    [
        lambda user, configure: user.user_permissions.clear(),
        lambda user, configure: configure(READ_ONLY=True),
        lambda user, configure: ExposedTool.objects.create(name="pay", enabled=False),
    ],
    ids=["rights", "a site that writes", "the tool"],
)
def test_a_tool_that_is_lost_is_lost_to_the_list_and_the_next_call_at_once(ada, configure, lose):
    client = CheckedClient(user=ada)
    before = [[*client.tools()], [*client.tools()]]
    unknown_order = {"name": "pay", "arguments": {"number": "none"}}
    answered = client.post_request("tools/call", unknown_order).messages[0]

    lose(ada, configure)

    assert all("pay" in tools for tools in before)
    assert "result" in answered
    assert "pay" not in client.tools()
    refused = client.post_request("tools/call", unknown_order).messages[0]
    assert refused["error"]["code"] == -32602


def make_inactive(user):
    user.is_active = False
    user.save()


@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize(
    ("lose", "status"),
    [
        (make_inactive, 401),
        (lambda user: PersonalToken.objects.get(user=user).delete(), 401),
        (lambda user: UserRestriction.objects.create(user=user, blocked=True), 401),
        (lambda user: ServerSettings.objects.update_or_create(defaults={"closed": True}), 503),
    ],
    ids=["inactive", "no token", "blocked", "closed"],
)
def test_who_may_not_come_in_any_more_gets_nothing_that_is_kept(ada, method, lose, status):
    client = CheckedClient(user=ada)
    before = [client.post_request(method).status for _ in range(3)]

    lose(ada)

    assert before == [200] * 3
    assert client.post_request(method).status == status


@pytest.mark.parametrize("method", LISTS)
def test_kept_lists_are_counted_and_throttled_as_all_calls(client, settings, method):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "CALLS_PER_MINUTE": 3}

    statuses = [client.post_request(method).status for _ in range(5)]

    assert statuses == [200, 200, 200, 429, 429]


def test_each_language_has_its_own_list(client, add_tool):
    def greet() -> str:
        """Greet."""
        return "hello"

    add_tool(greet, title=gettext_lazy("Yes"))
    titles = []

    for language in ("en", "de", "en", "de"):
        with translation.override(language):
            titles += [tool["title"] for tool in client.list_tools() if tool["name"] == "greet"]

    assert titles == ["Yes", "Ja", "Yes", "Ja"]


def test_a_tool_that_takes_the_name_of_another_is_described_in_its_own_words(client):
    def descriptions(text):
        def same() -> str:
            return text

        same.__doc__ = text
        mcp.tool(read_only=True)(same)
        try:
            lists = [client.list_tools() for _ in range(2)]
        finally:
            registry.remove("tool", "same")
        return [tool["description"] for tools in lists for tool in tools if tool["name"] == "same"]

    assert descriptions("First.") == ["First.", "First."]
    assert descriptions("Second.") == ["Second.", "Second."]


def test_a_permission_of_the_site_is_asked_for_every_list(client, add_tool, at_once):
    asked = []

    def odd() -> str:
        """Odd."""
        return "odd"

    def on_odd_calls(request):
        asked.append(request.user.pk)
        return len(asked) % 2

    add_tool(odd, permission=on_odd_calls)

    assert ["odd" in client.tools() for _ in range(4)] == [True, False, True, False]
    assert True not in at_once


class ClosedAfterHours(ModelBackend):
    """A backend of the site, with an idea of its own."""

    is_open = True

    def has_perm(self, user_obj, perm, obj=None):
        return self.is_open and super().has_perm(user_obj, perm, obj)


def test_a_backend_of_the_site_is_asked_for_every_list_and_every_model(ada, settings, monkeypatch):
    settings.AUTHENTICATION_BACKENDS = [f"{__name__}.ClosedAfterHours"]
    client = CheckedClient(user=ada)

    def seen():
        models = client.call_tool("list_models").data["models"]
        return "pay" in client.tools(), [one["model"] for one in models]

    before = [seen(), seen()]
    monkeypatch.setattr(ClosedAfterHours, "is_open", False)

    assert before == [(True, ["shop.order"])] * 2
    assert seen() == (False, [])


class Moody(PermissionsMixin):
    """A user whose class decides."""

    is_staff = property(lambda self: False)

    class Meta:
        abstract = True


def test_users_whose_class_may_decide_are_not_judged_by_django_alone():
    assert is_plain(User())
    assert is_plain(AnonymousUser())
    assert not is_plain(object.__new__(Moody))
    assert not is_plain(object())


# How many queries they take


@pytest.mark.parametrize(
    "method",
    [
        *(pytest.param(method, marks=where_lists_are_kept) for method in LISTS),
        "resources/list",
        "resources/templates/list",
    ],
)
def test_a_list_takes_no_query_for_a_known_caller(
    client, add_tool, method, django_assert_num_queries
):
    for number in range(50):

        def function() -> str:
            """Do something."""
            return ""

        function.__name__ = f"numbered_{number}"
        add_tool(function, permission="shop.view_order")
    client.request(method)

    with django_assert_num_queries(0):
        client.request(method)


def test_a_resource_takes_no_query_but_its_own(client, django_assert_num_queries):
    order = Order.objects.create(number="A1")
    definition, record = "django://models/shop.order", f"django://objects/shop.order/{order.pk}"
    for uri in (definition, record):
        client.read_resource(uri)

    with django_assert_num_queries(0):
        client.read_resource(definition)
    with django_assert_num_queries(1):
        client.read_resource(record)


# Answers without a thread, for a caller known a moment ago


@pytest.mark.parametrize("request_id", [7, -(2**63), 0, "", "seven", 'a"b\\c', "\N{SNOWMAN}"])
def test_a_discovery_of_a_known_caller_has_the_id_of_its_own_request(client, request_id):
    before = client.discover()
    message = {**client.message("server/discover"), "id": request_id}

    answer = client.post(message, headers=client.routing_headers(message)).messages[0]

    assert answer["id"] == request_id
    assert answer["result"] == before


def test_other_members_of_a_discovery_are_looked_at(client):
    client.discover()

    answer = client.post_request("server/discover", {"inputResponses": 5}).messages[0]

    assert answer["error"]["code"] == -32602
    assert "supportedVersions" in client.discover()
