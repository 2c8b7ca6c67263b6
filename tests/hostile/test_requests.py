"""Requests that two readers could understand in two ways, and calls that outlive their time."""

from __future__ import annotations

import pytest

from mcp_django.protocol.headers import LONGEST_VALUE
from mcp_django.testing import Client
from tests.clients import WSGIClient
from tests.spec import requirement

pytestmark = pytest.mark.django_db


def sent_with(client, *pairs, **scope):
    """The answer to a list of tools, with headers and parts of the scope put in as they are."""
    made = client.scope

    def changed(verb, *, headers=None):
        found = made(verb, headers=headers)
        return {**found, **scope, "headers": [*found["headers"], *pairs]}

    client.scope = changed
    return client.post_request("tools/list")


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        (b"host", b"testserver", 400),
        (b"origin", b"http://localhost:80@evil.example", 403),
        (b"authorization", b"Bearer x", 401),
        (b"mcp-method", b"tools/list", 400),
        (b"mcp-protocol-version", b"2025-06-18", 400),
        (b"content-length", b"99999999", 413),
    ],
)
def test_one_header_too_many_is_refused(staff, name, value, status):
    assert sent_with(Client(user=staff), (name, value)).status == status


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"http_authorization", b"Bearer x"),
        (b"x-forwarded-host", b"evil.example"),
        (b"x-http-method-override", b"DELETE"),
        (b"cookie", b"sessionid=\xff; =; ;;"),
        (b"", b""),
        (b"\xff", b"\xff"),
    ],
)
def test_a_header_that_means_nothing_here_changes_nothing(staff, name, value):
    usual = Client(user=staff).list_tools()

    answer = sent_with(Client(user=staff), (name, value))

    assert answer.status == 200
    assert answer.messages[0]["result"]["tools"] == usual


@requirement("authorization:no-query-token")
def test_a_token_anywhere_but_in_its_header_is_none(staff):
    secret = Client(user=staff).token.encode()
    for pairs in (
        [(b"cookie", b"access_token=" + secret)],
        [(b"x-authorization", b"Bearer " + secret)],
        [(b"authorization_", b"Bearer " + secret)],
        [(b"proxy-authorization", b"Bearer " + secret)],
        [(b"authorization", b"Basic " + secret)],
        [(b"authorization", b"Bearer " + secret), (b"authorization", b"")],
    ):
        answer = sent_with(Client(), *pairs)

        assert answer.status == 401
        assert secret not in answer.body


@requirement("authorization:no-query-token")
@pytest.mark.parametrize("has_header", [True, False])
@pytest.mark.parametrize(
    "query",
    [
        "access_token=%s",
        "a=1&ACCESS_TOKEN=%s",
        "access%%5Ftoken=%s",
        "authorization=Bearer%%20%s",
        "Authorization=Token+%s",
        "%s",
        "key=%s",
    ],
)
def test_an_address_with_a_credential_is_refused_whatever_else_was_sent(staff, query, has_header):
    client = Client(user=staff)
    secret = client.token
    client.token = secret if has_header else None

    answer = sent_with(client, query_string=(query % secret).encode())

    assert answer.status == 400
    assert "Authorization header" in answer.messages[0]["error"]["message"]
    assert secret.encode() not in answer.body


@pytest.mark.parametrize("query", ["access_token=opaque", "q=1&access_token=x.y.z"])
def test_a_credential_of_another_kind_is_refused_in_an_address_as_well(query):
    assert sent_with(Client(), query_string=query.encode()).status == 400
    assert WSGIClient(path=f"/mcp?{query}").http("POST", b"{}").status == 400


@pytest.mark.parametrize("query", ["access=1", "token=", "q=bearer", "session_id=x"])
def test_an_address_without_a_credential_is_nobodys_business(staff, query):
    assert sent_with(Client(user=staff), query_string=query.encode()).status == 200


def test_bytes_in_the_query_string_are_a_bad_request(staff):
    assert sent_with(Client(user=staff), query_string=b"a=\xff").status == 400


LONG = "session_id=".ljust(LONGEST_VALUE + 1, "x")


@pytest.mark.parametrize("path", ["/mcp", "/mcp/sse", "/mcp/messages"])
def test_a_query_string_without_an_end_is_refused_by_each_transport(staff, path):
    answer = sent_with(Client(user=staff), path=path, query_string=LONG.encode())

    assert answer.status == 414
    assert WSGIClient(path=f"/mcp?{LONG}", user=staff).http("POST", b"{}").status == 414
