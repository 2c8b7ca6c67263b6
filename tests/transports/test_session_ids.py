"""Who may go on with a session, in which words, and for how long."""

from __future__ import annotations

import re

import msgspec
import pytest

from mcp_django.protocol.revisions import LEGACY
from tests.clients import CheckedClient
from tests.spec import requirement
from tests.transports.wire import speaking

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.parametrize(
        "client", [{"revision": one} for one in LEGACY], ids=LEGACY, indirect=True
    ),
]


@pytest.fixture
def eve(client, eve):
    return speaking(eve, client.revision)


def begin(client):
    """The header of a new session."""
    client.initialize()
    begun, client.session = client.session_headers(), None
    return begun


def ask(client, method="ping", **headers):
    message = client.message(method)
    answer = client.post(message, headers=headers)
    client.check(message, answer)
    return answer


def told(answer):
    """All that an answer tells, but for the id of the request."""
    return answer.status, [message.get("error", "an answer") for message in answer.messages]


def is_not_found(client, headers):
    answers = [
        ask(client, **headers),
        *(client.http(verb, headers=headers) for verb in ("GET", "DELETE")),
    ]
    return [told(answer) for answer in answers] == [
        (404, [{"code": -32600, "message": "Session not found."}])
    ] * 3


@requirement("sessions:unknown")
@pytest.mark.parametrize(
    "session",
    ["", "x", "x" * 43, "x" * 128, "x" * 129, "x" * 8_000, "\xe9", "../..", "a, b"],
    ids=lambda session: repr(session[:10]) + str(len(session)),
)
def test_an_id_that_nobody_was_given_is_not_found(client, session):
    assert is_not_found(client, {"Mcp-Session-Id": session})


@requirement(
    "sessions:id", "sessions:foreign", "sessions:delete", "sessions:unknown", "sessions:expiry"
)
@pytest.mark.parametrize("cache", ["default", "database"])
def test_a_session_is_found_by_its_owner_alone_until_it_is_ended_or_nobody_uses_it(
    client, eve, configure, cache
):
    # No event loop may ask a database whether it is there.
    configure(SESSION_CACHE=cache)
    session, other = begin(client), begin(client)

    # Visible ASCII, and long.
    assert re.fullmatch("[!-~]{43,}", session["Mcp-Session-Id"])
    assert is_not_found(eve, session)
    ended = client.http("DELETE", headers=session)

    assert (ended.status, ended.body) == (204, b"")
    assert is_not_found(client, session)
    assert ask(client, **other).status == 200
    configure(SESSION_IDLE=1e-6)
    assert is_not_found(client, other)


@requirement("sessions:no-authentication")
@pytest.mark.parametrize("verb", ["POST", "GET", "DELETE"])
def test_the_id_of_a_session_is_no_credential(client, verb):
    session = begin(client)
    stranger, ping = CheckedClient(revision=client.revision), client.message("ping")

    real, unknown = (
        stranger.http(verb, msgspec.json.encode(ping), headers=headers)
        for headers in (session, {"Mcp-Session-Id": "x"})
    )

    assert real.status == 401
    assert told(real) == told(unknown)
    assert ask(client, **session).status == 200


@requirement("sessions:id-required")
@pytest.mark.parametrize(
    ("verb", "method", "params"),
    [
        ("POST", "resources/subscribe", {"uri": "django://site"}),
        ("POST", "resources/unsubscribe", {"uri": "django://site"}),
        ("POST", "logging/setLevel", {"level": "info"}),
        ("GET", "", {}),
        ("DELETE", "", {}),
    ],
)
def test_what_needs_a_session_and_names_none_is_told_so(client, verb, method, params):
    answer = client.post_request(method, params) if verb == "POST" else client.http(verb)

    assert answer.status == (405 if verb == "GET" else 400)
    assert "Mcp-Session-Id" in answer.messages[0]["error"]["message"]


# The revision of a session


@requirement("http:revision-assumed", "batch:refused")
@pytest.mark.parametrize("header", [None, *(revision.value for revision in LEGACY)])
def test_a_request_has_the_revision_of_its_session_whatever_its_header_says(client, header):
    session = begin(client)

    listing = ask(client, "tools/list", **session, **{"MCP-Protocol-Version": header})
    batch = client.post([client.message("ping"), client.message("ping")], headers=session)

    features, tools = client.revision.features, listing.messages[0]["result"]["tools"]
    assert any("outputSchema" in tool for tool in tools) is features.structured_content
    if features.batches:
        assert (batch.status, len(batch.messages)) == (200, 2)
    else:
        refusal = {"code": -32600, "message": "This revision has no batches."}
        assert told(batch) == (400, [refusal])


def test_a_modern_request_is_modern_whatever_session_it_names(client):
    session = begin(client)
    modern = CheckedClient(token=client.token)
    message = modern.message("tools/list")
    headers = modern.routing_headers(message)

    for named in (session, {"Mcp-Session-Id": "x"}):
        answer = modern.post(message, headers={**headers, **named})
        assert answer.messages[0]["result"]["resultType"] == "complete"
