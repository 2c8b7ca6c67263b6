"""Clients that run in a page of another origin sign in with `fetch`: see ALLOWED_ORIGINS."""

from __future__ import annotations

import pytest
from asgiref.sync import async_to_sync
from django.core.checks import run_checks
from django.test import AsyncClient, Client

pytestmark = [pytest.mark.needs("oauth"), pytest.mark.django_db]

CHAT, SITE, EVIL = "https://chat.example.com", "https://www.example.com", "https://evil.example"
METADATA = "/.well-known/oauth-authorization-server"
RESOURCE = "/.well-known/oauth-protected-resource"
FORM = "application/x-www-form-urlencoded"
#: Method, path, body, its type, and the status of the answer.
REQUESTS = [
    ("GET", METADATA, "", FORM, 200),
    ("GET", f"{METADATA}/elsewhere", "", FORM, 404),
    ("GET", f"{RESOURCE}/mcp", "", FORM, 200),
    ("GET", f"{RESOURCE}/elsewhere", "", FORM, 404),
    ("GET", RESOURCE, "", FORM, 200),
    ("POST", "/oauth/register", '{"redirect_uris": ["https://a.example"]}', "text/json", 201),
    ("POST", "/oauth/register", "{}", "application/json", 400),
    ("GET", "/oauth/register", "", FORM, 405),
    ("POST", "/oauth/token", "grant_type=authorization_code&code=c&client_id=a", FORM, 401),
    ("POST", "/oauth/token", "grant_type=magic", FORM, 400),
    ("GET", "/oauth/token", "", FORM, 405),
    ("POST", "/oauth/revoke", "token=a", FORM, 401),
    ("POST", "/oauth/revoke/", "", FORM, 400),
]
#: Each address, and how clients ask there.
PATHS = {path: method for method, path, *_ in reversed(REQUESTS)}


@pytest.fixture
def origins(configure):
    configure(ALLOWED_ORIGINS=[CHAT], REGISTRATION="cimd+dcr")


async def awaited(response):
    return await response


@pytest.fixture(params=[Client, AsyncClient], ids=["wsgi", "asgi"])
def send(request, origins):
    """Send one request as a browser does, in the name of a page."""
    client = request.param(enforce_csrf_checks=True)

    def send(method, path, body="", kind=FORM, *, origin=CHAT, **headers):
        sent = client.generic(method, path, body, kind, headers={"origin": origin, **headers})
        return async_to_sync(awaited)(sent) if request.param is AsyncClient else sent

    return send


def ask(send, path, **options):
    """Send the preflight of what clients send."""
    asked = {"access-control-request-method": PATHS[path]}
    asked["access-control-request-headers"] = "authorization,content-type,mcp-protocol-version"
    return send("OPTIONS", path, **options, **asked)


def control(response):
    headers = {name.lower(): value for name, value in response.items()}
    return {name: value for name, value in headers.items() if name.startswith("access-control")}


@pytest.mark.parametrize("path", PATHS)
def test_a_page_of_an_allowed_origin_may_send_what_clients_send_and_no_other_page_may(send, path):
    # They are not counted as clients that register.
    *_, response = [ask(send, path) for _ in range(20)]

    assert (response.status_code, response.content) == (204, b"")
    headers = control(response)
    assert headers["access-control-allow-origin"] == CHAT
    assert PATHS[path] in headers["access-control-allow-methods"]
    allowed = headers["access-control-allow-headers"].lower().split(", ")
    assert {"authorization", "content-type", "mcp-protocol-version"} <= set(allowed)
    assert "access-control-allow-credentials" not in headers
    assert "Origin" in response.headers["Vary"]
    assert control(ask(send, path, origin=EVIL)) == {}


@pytest.mark.parametrize(("method", "path", "body", "kind", "status"), REQUESTS)
def test_it_may_read_each_answer_and_no_other_page_may(send, method, path, body, kind, status):
    response = send(method, path, body, kind)
    others = [send(method, path, body, kind, origin=origin) for origin in (SITE, EVIL, "null")]

    assert {answer.status_code for answer in [response, *others]} == {status}
    assert control(response) == {
        "access-control-allow-origin": CHAT,
        "access-control-expose-headers": "Mcp-Session-Id, WWW-Authenticate, Retry-After",
    }
    assert [control(answer) for answer in others] == [{}, {}, {}]


@pytest.mark.parametrize("verb", ["OPTIONS", "GET"])
@pytest.mark.parametrize("origin", [CHAT, EVIL])
def test_the_page_where_people_consent_is_for_no_script_at_all(send, verb, origin):
    asked = {"access-control-request-method": "GET"}

    assert control(send(verb, "/oauth/authorize", origin=origin, **asked)) == {}


# django-cors-headers


@pytest.fixture
def cors(settings, origins):
    """A site that has answers for two other origins, and for ours."""
    settings.MIDDLEWARE = ["corsheaders.middleware.CorsMiddleware", *settings.MIDDLEWARE]
    settings.CORS_ALLOWED_ORIGINS = [CHAT, SITE]


def problems():
    return [message for message in run_checks() if message.id == "mcp_django_oauth.W001"]


@pytest.mark.parametrize("origin", [CHAT, SITE, EVIL])
def test_an_answer_names_its_origin_once_whoever_answers_for_it(send, cors, origin):
    answers = [send(*request[:4], origin=origin) for request in REQUESTS]
    asked = [ask(send, path, origin=origin) for path in PATHS]

    assert [answer.status_code for answer in answers] == [status for *_, status in REQUESTS]
    named = {control(answer).get("access-control-allow-origin") for answer in [*answers, *asked]}
    assert named == {None if origin == EVIL else origin}


def test_a_check_says_how_middleware_leaves_preflights_to_us(send, cors, settings, configure):
    settings.CORS_ALLOWED_ORIGINS = [SITE]
    (problem,) = problems()
    lost = [control(ask(send, path)) for path in PATHS]
    configure(ALLOWED_ORIGINS=[])
    # It is for sites with clients in pages.
    assert problems() == []
    configure(ALLOWED_ORIGINS=[CHAT])

    settings.CORS_URLS_REGEX = problem.hint.split('"')[1]

    assert lost == [{}] * len(PATHS)
    assert problems() == []
    for path in PATHS:
        headers = control(ask(send, path))
        assert headers["access-control-allow-origin"] == CHAT
        assert "MCP-Protocol-Version" in headers["access-control-allow-headers"]
    assert control(ask(send, "/oauth/token", origin=SITE)) == {}
