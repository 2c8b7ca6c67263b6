from __future__ import annotations

import time

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.handlers.lists import page_after
from tests.clients import CheckedClient
from tests.spec import requirement

pytestmark = pytest.mark.django_db


@pytest.fixture
def small_pages(configure):
    configure(LIST_PAGE_SIZE=2)


def pages(client, method):
    params, found = {}, []
    while True:
        found.append(client.request(method, params))
        if "nextCursor" not in found[-1]:
            return found
        params = {"cursor": found[-1]["nextCursor"]}


LISTS = [
    ("tools/list", "tools", "name"),
    ("resources/list", "resources", "uri"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate"),
    ("prompts/list", "prompts", "name"),
]


@requirement("tools:order", "resources:listed", "lists:pages", "caching:pages")
@pytest.mark.parametrize(("method", "member", "key"), LISTS)
def test_pages_hold_everything_once_and_in_order(
    client, small_pages, configure, method, member, key
):
    found = pages(client, method)
    configure(LIST_PAGE_SIZE=1000)
    whole = client.request(method)

    keys = [one[key] for page in found for one in page[member]]

    assert all(len(page[member]) <= 2 for page in found)
    assert {page["cacheScope"] for page in found} == {"private"}
    # By name, but for the tool to start with.
    assert keys == sorted(set(keys), key=lambda one: (one != "list_models", one))
    assert keys == [one[key] for one in whole[member]]
    assert "nextCursor" not in whole


@requirement("lists:cursors")
@pytest.mark.parametrize("cursor", ["", "nonsense", "1", "a:b:c", "\u0000", "x" * 10_000])
def test_a_cursor_that_nobody_made_is_refused(any_revision, cursor):
    code, message = any_revision.failure("tools/list", cursor=cursor)

    assert code == -32602
    assert "without a cursor" in message


@requirement("security:handles")
@pytest.mark.parametrize("kind", ["of another user", "of another list", "older than an hour"])
def test_a_cursor_is_good_for_its_user_its_list_and_an_hour(
    client, small_pages, make_client, monkeypatch, kind
):
    cursor = client.request("tools/list")["nextCursor"]
    reader = make_client() if kind == "of another user" else client
    method = "resources/list" if kind == "of another list" else "tools/list"
    if kind == "older than an hour":
        later = time.time() + 3601
        monkeypatch.setattr(time, "time", lambda: later)

    refusal = reader.failure(method, cursor=cursor)

    assert refusal == reader.failure(method, cursor="nonsense")
    assert refusal[0] == -32602


names = st.sets(st.text(alphabet="abc", max_size=3))


def identity(item):
    return item


@requirement("lists:pages")
@given(st.lists(names, min_size=1), st.integers(1, 3))
def test_a_list_that_changes_between_pages_neither_repeats_nor_skips_what_stayed(versions, size):
    """Each page is of another version of the list; the last version is read to its end."""
    seen: list[str] = []
    last: str | None = None
    taken = 0
    # As many pages as there can be, if none goes back.
    while taken == 0 or (last is not None and taken < 40 + len(versions)):
        version = sorted(versions[min(taken, len(versions) - 1)])
        page, last = page_after(version, last, size=size, key=identity)
        assert len(page) <= size
        seen += page
        taken += 1

    stayed = set.intersection(*versions[:taken])
    assert last is None
    assert seen == sorted(set(seen))
    assert stayed <= set(seen)


# What answers promise of each other


@requirement("tools:no-connection")
@pytest.mark.parametrize(("method", "member", "key"), LISTS)
def test_a_list_is_the_same_for_every_client_with_the_same_credential(client, method, member, key):
    before = client.request(method)
    client.call_tool("echo", text="a")

    assert client.request(method) == before
    assert CheckedClient(token=client.token).request(method) == before


@requirement("tools:input-schema")
def test_every_tool_takes_an_object_and_its_schema_is_one(any_revision):
    tools = any_revision.list_tools()

    assert tools
    for tool in tools:
        assert tool["inputSchema"]["type"] == "object"
        jsonschema_rs.meta.validate(tool["inputSchema"])
