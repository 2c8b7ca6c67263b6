"""What a tool can see and leave behind, and what a request can make the server repeat."""

from __future__ import annotations

import pytest
from django.db import connection
from django.http import HttpRequest

import mcp_django as mcp
from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient, WSGIClient
from tests.spec import requirement

pytestmark = pytest.mark.django_db


@requirement("authorization:no-passthrough")
def test_a_tool_sees_no_credential(client, add_tool):
    def dump(request: HttpRequest, ctx: mcp.Context) -> str:
        """Show everything of the request."""
        return repr([request.META, dict(request.headers), request.scope, vars(ctx.request)])

    add_tool(dump)

    assert client.token not in client.call_tool("dump").text


def test_what_a_tool_writes_on_its_user_ends_with_the_call(client, add_tool):
    def sudo(request: HttpRequest) -> str:
        """Work as somebody mightier for a moment."""
        request.user.is_superuser = True
        return "Done"

    add_tool(sudo)
    client.call_tool("sudo")

    with pytest.raises(ProtocolFailure):
        client.call_tool("pay", number="x")


@pytest.mark.parametrize("kind", [CheckedClient, WSGIClient])
def test_a_tool_gets_a_user_with_the_permissions_that_the_token_is_held_to(
    depot, make_user, add_tool, kind
):
    def ask_for_rights(request: HttpRequest) -> list[bool]:
        """Say what the user may do."""
        user = request.user
        permissions = ("depot.view_parcel", "depot.view_van")
        return [user.is_superuser, *(user.has_perm(name) for name in permissions)]

    add_tool(ask_for_rights, permission="depot.view_parcel")
    root = make_user("root", is_staff=True, is_superuser=True)

    answer = kind(user=root, models=["depot.parcel"]).call_tool("ask_for_rights")

    assert answer.data == {"result": [False, True, False]}


def test_bytes_in_the_query_string_are_a_bad_request(client, monkeypatch):
    original = client.scope
    monkeypatch.setattr(
        client,
        "scope",
        lambda *arguments, **options: {
            **original(*arguments, **options),
            "query_string": b"a=\xff",
        },
    )

    assert client.post_request("tools/list").status == 400


def test_a_long_progress_token_is_refused(client):
    answer = client.post_request(
        "tools/call",
        {
            "name": "count_to",
            "arguments": {"number": 3},
            "_meta": {"progressToken": "t" * 1_000_000},
        },
    )

    assert (answer.status, answer.messages[0]["error"]["code"]) == (400, -32600)
    assert len(answer.body) < 10_000


@pytest.mark.database
@pytest.mark.skipif(connection.vendor != "postgresql", reason="only there it is a setting")
@pytest.mark.django_db(transaction=True)
def test_the_deadline_of_calls_does_not_stay_on_the_sites_own_connection(staff):
    def deadline():
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            return cursor.fetchone()

    before = deadline()
    found = WSGIClient(user=staff).call_tool("find_records", model="shop.memo")

    assert not found.is_error
    assert deadline() == before
