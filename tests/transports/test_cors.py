"""Pages of other origins, as a browser asks for them and as it reads the answers."""

from __future__ import annotations

from functools import partial

import pytest

from mcp_django.asgi import get_mcp_application
from mcp_django.protocol.revisions import LATEST_LEGACY, MODERN
from tests.clients import CheckedClient, WSGIClient
from tests.transports.wire import PING, counting

pytestmark = pytest.mark.django_db

CHAT = "https://chat.example.com"
CORS = "corsheaders.middleware.CorsMiddleware"
#: What clients in browsers send besides what any page may send.
SENT = (
    "authorization,content-type,last-event-id,mcp-method,mcp-name,mcp-param-region,"
    "mcp-protocol-version,mcp-session-id"
)


@pytest.fixture(autouse=True)
def chat_is_allowed(configure):
    configure(ALLOWED_ORIGINS=[CHAT])


#: Clients of one transport each.
KINDS = {
    "asgi": CheckedClient,
    "wsgi": WSGIClient,
    **{
        end: partial(CheckedClient, application=get_mcp_application(), path=f"/mcp/{end}")
        for end in ("sse", "messages")
    },
}


@pytest.fixture(params=["asgi", "wsgi"])
def connect(request, staff):
    return partial(KINDS[request.param], user=staff)


def ask(client, *, origin=CHAT, method="POST", headers=SENT, host="testserver"):
    """The preflight of a browser, which carries no credential."""
    client.token = None
    asked = {
        "Host": host,
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": headers,
        "Content-Type": None,
    }
    return client.http("OPTIONS", headers=asked)


def names(answer, header):
    return {name.strip().lower() for name in answer.headers[header].split(",")}


def control(answer):
    return [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("connect", KINDS, indirect=True)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_page_of_an_allowed_origin_may_send_whatever_clients_send_and_nothing_else(
    connect, method
):
    others = "x-other,mcp-param-a, mcp-param-\u00e9,mcp-param- b"
    answer = ask(connect(), method=method, headers=f"{SENT},{others}")
    no_preflight = connect().http("OPTIONS", headers={"Origin": CHAT})

    assert no_preflight.status == 405
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == CHAT
    assert method.lower() in names(answer, "access-control-allow-methods")
    allowed = names(answer, "access-control-allow-headers")
    assert allowed - {"accept"} == {*SENT.split(","), "mcp-param-a"}
    assert "origin" in names(answer, "vary")


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        *(
            ("testserver", origin)
            for origin in ("https://evil.example", "null", "http://testserver", None)
        ),
        ("localhost", "http://localhost:3000"),
    ],
)
def test_pages_of_other_origins_get_nothing(connect, host, origin):
    client = connect()

    posted = client.post(client.message("ping"), headers={"Host": host, "Origin": origin})
    asked = ask(client, host=host, origin=origin)

    assert asked.status in (401, 403)
    assert control(asked) == control(posted) == []


@pytest.mark.parametrize("revision", [LATEST_LEGACY, MODERN[-1]], ids=str)
@pytest.mark.parametrize("token", [True, False])
def test_the_page_may_read_every_answer_and_the_headers_that_clients_need(
    connect, revision, token
):
    client = connect(revision=revision)
    client.token = client.token if token else None

    answer = client.post_request("tools/list", headers={"Origin": CHAT})

    assert answer.status == (200 if token else 401)
    assert answer.headers["access-control-allow-origin"] == CHAT
    exposed = names(answer, "access-control-expose-headers")
    assert exposed >= {"mcp-session-id", "www-authenticate"}
    assert "access-control-allow-credentials" not in answer.headers


def test_a_stream_can_be_read_and_headers_of_middleware_stay_beside_ours(client, run):
    stream = client.post_request("tools/call", counting("t"), headers={"Origin": CHAT})
    run("Header")
    answer = client.post(client.message("ping"), headers={"Origin": CHAT})

    assert stream.is_stream
    assert stream.headers["access-control-allow-origin"] == CHAT
    assert names(answer, "vary") == {"accept-language", "origin"}


# django-cors-headers


@pytest.fixture(params=["auto", "project"])
def cors(request, settings, configure):
    """A site that answers pages of two other origins by itself."""
    configure(RUN_MIDDLEWARE=request.param)
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "corsheaders"]
    settings.MIDDLEWARE = [CORS, *settings.MIDDLEWARE]
    settings.CORS_ALLOWED_ORIGINS = [CHAT, "http://localhost:3000"]
    settings.CORS_EXPOSE_HEADERS = ["X-Request-Id"]


def test_a_view_answers_where_middleware_leaves_its_address_alone(staff, client, cors, settings):
    wsgi = WSGIClient(user=staff)
    before = names(ask(wsgi), "access-control-allow-headers")
    # Under ASGI an allowed origin may send ours, though the site names none of them.
    under_asgi = names(ask(client), "access-control-allow-headers")
    settings.CORS_ALLOWED_ORIGINS = []
    unlisted = control(ask(wsgi))

    settings.CORS_URLS_REGEX = r"^/(?!mcp|oauth/|\.well-known/oauth-)"

    assert "mcp-protocol-version" not in before
    assert unlisted == []
    for allowed in (under_asgi, names(ask(wsgi), "access-control-allow-headers")):
        assert allowed >= set(SENT.split(","))


def test_middleware_answers_preflights_and_an_answer_names_its_origin_once(connect, cors):
    client = connect()

    answer = client.post(PING, headers={"Origin": CHAT})
    asked = ask(client, origin="http://localhost:3000", host="localhost")

    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == CHAT
    assert "x-request-id" in names(answer, "access-control-expose-headers")
    assert (asked.status, asked.body) == (200, b"")
    assert asked.headers["access-control-allow-origin"] == "http://localhost:3000"


def test_a_page_that_middleware_makes_of_a_preflight_is_no_page(client, run):
    run("Page")

    asked = ask(client, origin="http://localhost:3000", host="localhost")
    posted = client.post(client.message("ping"))

    assert (asked.status, asked.body) == (200, b"")
    assert posted.status == 403
