"""What is kept of a list is told to nobody else, and not for longer than it is true."""

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
from mcp_django.protocol.revisions import Revision
from mcp_django.testing import Client
from mcp_django.transports.http import streamable_http
from tests.clients import CheckedClient
from tests.shop.models import Order

pytestmark = pytest.mark.django_db

#: Where a gate of the site's own decides about an action of the shop, it is asked for every list.
where_lists_are_kept = pytest.mark.skipif(
    "ADMIN_SITES" in settings.MCP_DJANGO, reason="the office has a gate of its own"
)


def names(client):
    return [tool["name"] for tool in client.list_tools()]


@pytest.fixture
def at_once(monkeypatch):
    """Which lists needed no thread: what the endpoint found to be kept, in order."""
    found = []

    def watched(principal, params):
        result = kept_list(principal, params)
        found.append(result is not None)
        return result

    kept_list = streamable_http.kept_list
    monkeypatch.setattr(streamable_http, "kept_list", watched)
    return found


@where_lists_are_kept
def test_the_second_list_of_a_known_caller_is_the_first_one(client, at_once):
    first, second = names(client), names(client)

    assert first == second
    assert at_once == [True]


@where_lists_are_kept
def test_a_kept_list_is_told_to_no_other_user(make_user, at_once):
    mighty = Client(user=make_user("ada", "change_order", "view_order", is_staff=True))
    other = Client(user=make_user("bob", is_staff=True))

    seen = [(names(mighty), names(other)) for _ in range(3)]

    assert all("pay" in of_mighty and "pay" not in of_other for of_mighty, of_other in seen)
    assert True in at_once


def test_two_credentials_of_one_user_share_no_list(make_user):
    user = make_user("ada", "change_order", "view_order", is_staff=True)
    clients = {
        "all": Client(user=user),
        "scopes": Client(user=user, scopes=["mcp:read"]),
        "read_only": Client(user=user, read_only=True),
        "models": Client(user=user, models=["shop.customer"]),
    }

    seen = {name: [] for name in clients}
    for _ in range(3):
        for name, client in clients.items():
            seen[name].append("pay" in names(client))

    assert seen == {name: [name == "all"] * 3 for name in clients}


@where_lists_are_kept
def test_a_right_that_is_lost_is_lost_to_the_list_at_once(make_user, at_once):
    user = make_user("ada", "change_order", "view_order", is_staff=True)
    client = Client(user=user)
    before = [names(client), names(client)]

    user.user_permissions.clear()

    assert all("pay" in found for found in before)
    assert "pay" not in names(client)
    assert at_once == [True]


def test_a_user_who_is_made_inactive_gets_no_kept_list(staff, client):
    names(client)
    names(client)

    staff.is_active = False
    staff.save()

    assert client.post(client.message("tools/list")).status == 401


def test_a_revoked_token_gets_no_kept_list(client, staff):
    names(client)
    names(client)

    PersonalToken.objects.get(user=staff).delete()

    assert client.post(client.message("tools/list")).status == 401


def test_each_revision_has_its_own_words_in_any_order(client):
    clients = [CheckedClient(token=client.token, revision=one) for one in Revision]

    first = [one.request("tools/list") for one in clients]
    again = [one.request("tools/list") for one in reversed(clients)]

    assert first == again[::-1]
    assert "annotations" not in first[0]["tools"][0]
    assert "annotations" in first[-1]["tools"][0]


def test_each_language_has_its_own_list(client, add_tool):
    def greet() -> str:
        """Greet."""
        return "hello"

    add_tool(greet, title=gettext_lazy("Yes"))

    def title():
        return next(one["title"] for one in client.list_tools() if one["name"] == "greet")

    found = []
    for language in ("en", "de", "en", "de"):
        with translation.override(language):
            found.append(title())

    assert found == ["Yes", "Ja", "Yes", "Ja"]


def test_a_tool_that_comes_or_goes_while_the_site_runs_is_seen_at_once(client, add_tool):
    def late() -> str:
        """Come late."""
        return "late"

    before = [names(client), names(client)]
    add_tool(late)
    during = names(client)
    removed = registry.tools["late"]
    registry.remove_tool("late")
    after = names(client)
    registry.add_tool(removed)

    assert all("late" not in found for found in [*before, after])
    assert "late" in during


def test_a_tool_that_takes_the_name_of_another_is_described_in_its_own_words(client):
    def told(text):
        def same() -> str:
            return text

        same.__doc__ = text
        mcp.tool(read_only=True)(same)
        try:
            found = [client.list_tools() for _ in range(2)]
        finally:
            registry.remove_tool("same")
        return [one["description"] for tools in found for one in tools if one["name"] == "same"]

    assert told("First.") == ["First.", "First."]
    assert told("Second.") == ["Second.", "Second."]


def test_a_switch_of_the_site_counts_at_once(make_user, settings):
    client = Client(user=make_user("ada", "change_order", is_staff=True))
    before = [names(client), names(client)]

    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "READ_ONLY": True}

    assert all("pay" in found for found in before)
    assert "pay" not in names(client)


def test_a_permission_of_the_site_is_asked_for_every_list(client, add_tool, at_once):
    asked = []

    def odd() -> str:
        """Odd."""
        return "odd"

    def on_odd_calls(request):
        asked.append(request.user.pk)
        return len(asked) % 2

    add_tool(odd, permission=on_odd_calls)

    found = ["odd" in names(client) for _ in range(4)]

    assert found == [True, False, True, False]
    assert True not in at_once


class ClosedAfterHours(ModelBackend):
    """A backend of the site, with an idea of its own."""

    is_open = True

    def has_perm(self, user_obj, perm, obj=None):
        return self.is_open and super().has_perm(user_obj, perm, obj)


def test_a_backend_of_the_site_is_asked_for_every_list_and_every_model(
    make_user, settings, monkeypatch
):
    settings.AUTHENTICATION_BACKENDS = [f"{__name__}.ClosedAfterHours"]
    client = Client(user=make_user("ada", "change_order", "view_order", is_staff=True))
    before = [("pay" in names(client), models(client)) for _ in range(2)]

    monkeypatch.setattr(ClosedAfterHours, "is_open", False)

    assert before == [(True, ["shop.order"])] * 2
    assert ("pay" in names(client), models(client)) == (False, [])


def models(client):
    return [one["model"] for one in client.call_tool("list_models").data["models"]]


class OnlyAuthenticates:
    """A backend without any say in permissions."""


class Moody(PermissionsMixin):
    """A user whose class decides."""

    is_staff = property(lambda self: False)

    class Meta:
        abstract = True


@pytest.mark.parametrize(
    ("user", "backend", "expected"),
    [
        (User(), "django.contrib.auth.backends.ModelBackend", True),
        (User(), "django.contrib.auth.backends.RemoteUserBackend", True),
        (User(), f"{__name__}.OnlyAuthenticates", True),
        (User(), f"{__name__}.ClosedAfterHours", False),
        (AnonymousUser(), "django.contrib.auth.backends.ModelBackend", True),
        (object.__new__(Moody), "django.contrib.auth.backends.ModelBackend", False),
        (object(), "django.contrib.auth.backends.ModelBackend", False),
    ],
)
def test_who_is_judged_by_django_alone(settings, user, backend, expected):
    settings.AUTHENTICATION_BACKENDS = [backend]

    assert is_plain(user) is expected


def test_a_page_after_the_first_is_never_taken_for_the_first(client, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "LIST_PAGE_SIZE": 2}
    first = client.request("tools/list")
    second = client.request("tools/list", {"cursor": first["nextCursor"]})

    again = client.request("tools/list")

    assert [one["name"] for one in again["tools"]] == [one["name"] for one in first["tools"]]
    assert not {one["name"] for one in second["tools"]} & {one["name"] for one in again["tools"]}


def test_kept_lists_are_counted_and_throttled_as_all_calls(client, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "CALLS_PER_MINUTE": 3}

    statuses = [client.post_request("tools/list").status for _ in range(5)]

    assert statuses == [200, 200, 200, 429, 429]


@where_lists_are_kept
@pytest.mark.parametrize("method", ["tools/list", "server/discover"])
def test_a_list_takes_no_query_for_a_known_caller(client, method, django_assert_num_queries):
    client.request(method)

    with django_assert_num_queries(0):
        client.request(method)


@where_lists_are_kept
def test_fifty_tools_take_no_query_for_a_known_caller(client, add_tool, django_assert_num_queries):
    for number in range(50):
        add_tool(numbered(number), permission="shop.view_order")
    client.request("tools/list")

    with django_assert_num_queries(0):
        found = client.request("tools/list")

    assert len(found["tools"]) > 50


def numbered(number):
    def function() -> str:
        """Do something."""
        return ""

    function.__name__ = f"numbered_{number}"
    return function


def test_what_a_resource_says_takes_no_query_but_its_own(client, django_assert_num_queries):
    order = Order.objects.create(number="A1")
    definition, record = "django://models/shop.order", f"django://objects/shop.order/{order.pk}"
    for uri in (definition, record):
        client.read_resource(uri)

    with django_assert_num_queries(0):
        client.read_resource(definition)
    with django_assert_num_queries(1):
        client.read_resource(record)


@pytest.mark.parametrize("method", ["resources/list", "resources/templates/list"])
def test_lists_of_resources_take_no_query_for_a_known_caller(
    client, method, django_assert_num_queries
):
    client.request(method)

    with django_assert_num_queries(0):
        client.request(method)


# What is answered without a thread, for a caller known a moment ago


def instructions(client):
    return client.discover().get("instructions")


@pytest.mark.parametrize("request_id", [7, -(2**63), 0, "", "seven", 'a"b\\c', "\N{SNOWMAN}"])
def test_a_discovery_of_a_known_caller_has_the_id_of_its_own_request(client, request_id):
    before = client.discover()
    message = {**client.message("server/discover"), "id": request_id}

    answer = client.post(message, headers=client.routing_headers(message)).messages[0]

    assert answer["id"] == request_id
    assert answer["result"] == before


def test_what_staff_write_is_discovered_at_once(client):
    before = [instructions(client) for _ in range(2)]

    ServerSettings.objects.update_or_create(defaults={"instructions": "Ask the office."})

    assert "Ask the office." not in before
    assert [instructions(client) for _ in range(2)] == ["Ask the office."] * 2


def test_a_server_that_staff_close_discovers_nothing(client):
    for _ in range(3):
        client.discover()

    ServerSettings.objects.update_or_create(defaults={"closed": True})

    assert client.post_request("server/discover").status == 503


def test_a_blocked_user_and_a_revoked_token_discover_nothing(make_user):
    users = [make_user(name, is_staff=True) for name in ("ada", "ben", "eve")]
    clients = [Client(user=user) for user in users]
    for client in clients * 3:
        client.discover()

    UserRestriction.objects.create(user=users[0], blocked=True)
    PersonalToken.objects.filter(user=users[1]).delete()

    assert [one.post_request("server/discover").status for one in clients] == [401, 401, 200]


def test_a_discovery_is_counted_and_throttled_as_all_calls(client, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "CALLS_PER_MINUTE": 4}

    statuses = [client.post_request("server/discover").status for _ in range(6)]

    assert statuses == [200, 200, 200, 200, 429, 429]


def test_what_else_stands_in_a_discovery_is_looked_at(client):
    client.discover()

    answer = client.post_request("server/discover", {"inputResponses": 5}).messages[0]

    assert answer["error"]["code"] == -32602
    assert "supportedVersions" in client.discover()


def test_a_batch_of_pings_is_answered_whole(client):
    old = CheckedClient(token=client.token, revision=Revision("2025-03-26"))
    pings = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in (1, 2)]

    for _ in range(3):
        answer = old.post(pings).messages

    assert [one["id"] for one in answer] == [1, 2]


# Permissions of functions


def refusal(client):
    return client.post_request("tools/call", {"name": "secret"}).messages[0]["error"]["code"]


def test_a_permission_that_is_lost_is_lost_to_the_next_call(make_user, add_tool):
    user = make_user("ada", "change_order", is_staff=True)

    def secret() -> str:
        """Tell it."""
        return "told"

    add_tool(secret, permission="shop.change_order")
    client, other = Client(user=user), Client(user=make_user("ben", is_staff=True))
    before = [client.call_tool("secret").text for _ in range(3)]
    refused = refusal(other)

    user.user_permissions.clear()
    after = refusal(client)

    assert before == ["told"] * 3
    assert [refused, after] == [-32602] * 2


def test_a_tool_that_staff_take_away_is_gone_for_the_next_call(make_user, add_tool):
    def secret() -> str:
        """Tell it."""
        return "told"

    add_tool(secret, permission="shop.change_order")
    client = Client(user=make_user("ada", "change_order", is_staff=True))
    before = [client.call_tool("secret").text for _ in range(3)]

    ExposedTool.objects.create(name="secret", enabled=False)
    after = refusal(client)

    assert before == ["told"] * 3
    assert after == -32602
