from __future__ import annotations

import pytest

import mcp_django as mcp
from mcp_django.exposure.registry import registry
from mcp_django.handlers import lists
from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient
from tests.spec import requirement

pytestmark = pytest.mark.django_db


@pytest.fixture
def small_pages(settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "LIST_PAGE_SIZE": 2}


def pages(client, method, member):
    params, found = {}, []
    while True:
        page = client.request(method, params)
        found.append(page[member])
        if "nextCursor" not in page:
            return found
        params = {"cursor": page["nextCursor"]}


LISTS = [
    ("tools/list", "tools", "name"),
    ("resources/list", "resources", "uri"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate"),
    ("prompts/list", "prompts", "name"),
]


@requirement("tools:order", "resources:listed", "lists:pages")
@pytest.mark.parametrize(("method", "member", "key"), LISTS)
def test_pages_hold_everything_once_and_in_order(
    client, small_pages, settings, method, member, key
):
    found = pages(client, method, member)
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "LIST_PAGE_SIZE": 1000}

    keys = [one[key] for page in found for one in page]

    assert all(len(page) <= 2 for page in found)
    # By name, but for the tool to start with.
    assert keys == sorted(set(keys), key=lambda one: (one != "list_models", one))
    assert keys == [one[key] for one in client.request(method)[member]]


def test_a_list_that_fits_into_one_page_has_no_cursor(client):
    assert "nextCursor" not in client.request("tools/list")


def refusal(client, cursor, method="tools/list"):
    with pytest.raises(ProtocolFailure) as refused:
        client.request(method, {"cursor": cursor})
    assert refused.value.status == 200
    return refused.value.code, refused.value.message


@requirement("lists:cursors")
@pytest.mark.parametrize("cursor", ["", "nonsense", "1", "a:b:c", "\u0000", "x" * 10_000])
def test_a_cursor_that_nobody_made_is_refused(client, revision, cursor):
    client = CheckedClient(token=client.token, revision=revision)

    code, message = refusal(client, cursor)

    assert code == -32602
    assert "without a cursor" in message


@requirement("security:handles")
def test_a_cursor_of_another_user_is_refused(client, small_pages, make_user):
    cursor = client.request("tools/list")["nextCursor"]
    other = CheckedClient(user=make_user("eve", is_staff=True))

    assert refusal(other, cursor) == refusal(other, "nonsense")


def test_a_cursor_of_another_list_is_refused(client, small_pages):
    cursor = client.request("tools/list")["nextCursor"]

    assert refusal(client, cursor, "resources/list")[0] == -32602


def test_a_cursor_older_than_an_hour_is_refused(client, small_pages, monkeypatch):
    cursor = client.request("tools/list")["nextCursor"]
    monkeypatch.setattr(lists, "LIFETIME", -1)

    assert refusal(client, cursor)[0] == -32602


def test_a_list_that_shrinks_between_two_pages_ends_with_an_empty_one(client, settings):
    @mcp.tool(read_only=True)
    def zzz() -> str:
        """Stand at the end of the list."""
        return ""

    try:
        size = len(client.list_tools()) - 1
        settings.MCP_DJANGO = {**settings.MCP_DJANGO, "LIST_PAGE_SIZE": size}
        cursor = client.request("tools/list")["nextCursor"]
    finally:
        registry.remove_tool("zzz")

    page = client.request("tools/list", {"cursor": cursor})

    assert page["tools"] == []
    assert "nextCursor" not in page
