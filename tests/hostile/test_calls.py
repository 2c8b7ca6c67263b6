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


def test_a_refusal_with_half_a_character_is_still_a_refusal(client, add_tool):
    def name() -> str:
        """Raise the name of a file that no encoding has."""
        raise mcp.ToolError("There is no file \udcff.txt.")

    add_tool(name)

    answer = client.call_tool("name")

    assert answer.is_error
    assert answer.text == "There is no file ?.txt."
