from __future__ import annotations

import io

import msgspec
import pytest
from django.contrib import messages
from django.contrib.messages import get_messages
from django.contrib.sessions.models import Session
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mcp_django.auth import authenticate as authentication
from mcp_django.auth.throttles import failures
from mcp_django.protocol.revisions import Era
from mcp_django.testing import ProtocolFailure
from mcp_django.transports.middleware import CALLER
from mcp_django.transports.requests import build_request
from mcp_django.transports.wsgi import mcp_view
from tests.clients import CheckedClient, WSGIClient
from tests.settings import MIDDLEWARE
from tests.spec import requirement
from tests.transports.middlewares import owner, seen
from tests.transports.wire import PING

pytestmark = [pytest.mark.django_db, pytest.mark.client(kind=WSGIClient)]


WISHES = {"notifications": {"toolsListChanged": True}}
STREAMED = {
    Era.MODERN: [("subscriptions/listen", WISHES)],
    Era.LEGACY: [
        ("resources/subscribe", {"uri": "django://site"}),
        ("resources/unsubscribe", {"uri": "django://site"}),
        ("logging/setLevel", {"level": "info"}),
    ],
}


def test_every_revision_is_served_without_what_needs_a_session_or_a_stream(client, revision):
    hello = client.discover() if revision.era is Era.MODERN else client.initialize()

    announced = hello["capabilities"]
    assert announced["experimental"] == {"jsonOnly": {}}
    assert "logging" not in announced
    assert announced["tools"] == announced["resources"] == announced["prompts"] == {}
    assert client.session is None
    assert "echo" in client.tools()
    assert "staff" in client.call_tool("echo_later", text="x").text
    for method, params in STREAMED[revision.era]:
        failure = client.error(method, **params)
        status = 404 if revision.era is Era.MODERN else 200
        assert (failure.code, failure.status) == (-32601, status)


SESSION = {"Mcp-Session-Id": "x" * 43}
NOTICE = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


@pytest.mark.parametrize(
    ("body", "headers", "status", "answer"),
    [
        (NOTICE, {}, 202, b""),
        # Of exactly the limit.
        (PING.ljust(100), {}, 200, b'{"jsonrpc":"2.0","id":7,"result":{}}'),
        (b"[" + PING + b"]", {}, 200, b'[{"jsonrpc":"2.0","id":7,"result":{}}]'),
        # The id of a session means nothing.
        (PING, SESSION, 200, b'{"jsonrpc":"2.0","id":7,"result":{}}'),
    ],
)
def test_what_is_posted_is_answered_as_json_says(client, configure, body, headers, status, answer):
    configure(MAX_BODY=100)

    posted = client.post(body, headers=headers)

    assert (posted.status, posted.body) == (status, answer)
    assert ("content-type" in posted.headers) is bool(answer)


POST_ONLY = {"allow": "POST"}
MODERN = {"MCP-Protocol-Version": "2026-07-28"}
#: Turned away before anybody asks who they are.
STRANGERS = [
    ("POST", PING, {"Host": "evil.example"}, 400, {}),
    ("POST", PING, {"Origin": "https://evil.example"}, 403, {}),
    ("POST", PING, {"X-Long": "x" * 8193}, 431, {}),
    ("POST", PING, {f"X-{n}": "x" * 8192 for n in range(8)}, 431, {}),
]
#: Verb, body, headers; status and headers of the answer.
REFUSED = [
    *((verb, PING, MODERN, 405, POST_ONLY) for verb in ("GET", "DELETE", "PUT")),
    ("POST", PING.ljust(1001), {}, 413, {}),
    ("POST", PING, {"Content-Type": "text/plain"}, 415, {}),
    ("POST", PING, {"Content-Type": "application/x-www-form-urlencoded"}, 415, {}),
    ("POST", PING, {"Content-Encoding": "gzip"}, 415, {}),
    *(("POST", body, {}, 400, {}) for body in (b"{", b"", b"7")),
    ("POST", PING, {"MCP-Protocol-Version": "1999-01-01"}, 400, {}),
]
#: The other endpoint has one kind of answer, and asks nobody whether they take it.
NOTHING_TO_READ = ("POST", PING, {"Accept": "text/html"}, 406, {})
#: Sessions of the other endpoint: tests/transports/test_session_ids.py.
WITHOUT_SESSIONS = [
    *((verb, PING, {}, 405, POST_ONLY) for verb in ("PUT", "GET", "DELETE")),
    *((verb, PING, SESSION, 405, POST_ONLY) for verb in ("GET", "DELETE")),
]
CASES = [
    (kind, *case, case in STRANGERS)
    for kind, own in ((CheckedClient, [NOTHING_TO_READ]), (WSGIClient, WITHOUT_SESSIONS))
    for case in (*STRANGERS, *REFUSED, *own)
]


@requirement("http:refusals", "authorization:401")
@pytest.mark.parametrize(("kind", "verb", "body", "headers", "status", "answered", "first"), CASES)
def test_either_endpoint_tells_a_caller_and_no_stranger_what_is_wrong_with_a_request(
    client, configure, kind, verb, body, headers, status, answered, first
):
    configure(MAX_BODY=1000)

    answer = kind(token=client.token).http(verb, body, headers=headers)
    to_stranger = kind().http(verb, body, headers=headers)

    assert answer.status == status
    assert answer.headers.items() >= answered.items()
    # Django's own middleware turns strange hosts away first.
    assert b'"error"' in answer.body or (kind is WSGIClient and "Host" in headers)
    assert to_stranger.status == (status if first else 401)
    assert ("www-authenticate" in to_stranger.headers) is not first
    assert (b"<personal token>" in to_stranger.body) is not first
    # Of a body that nobody read there is no id.
    assert b'"id":7' not in to_stranger.body


class Untouched:
    def read(self, *args):
        raise AssertionError("The body was read.")


class Broken:
    def read(self, *args):
        raise OSError("gone")


@pytest.mark.parametrize(
    ("length", "stream", "is_known", "status"),
    [
        # Where Django is served by ASGI a body may be longer than declared.
        ("5", io.BytesIO(PING), True, 413),
        ("11", Untouched(), True, 413),
        # The client leaves in the middle.
        ("5", Broken(), True, 400),
        ("5", Untouched(), False, 401),
    ],
)
def test_a_body_that_is_too_long_stops_or_has_no_credential_is_refused_quietly(
    client, configure, settings, caplog, length, stream, is_known, status
):
    configure(MAX_BODY=10)
    settings.MIDDLEWARE = MIDDLEWARE
    client.token = client.token if is_known else None
    request = build_request(client.scope("POST", headers={"Content-Length": length}), b"")
    request._stream = stream

    assert mcp_view(request).status_code == status
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


# Browsers


@pytest.mark.parametrize(("has_token", "status"), [(True, 200), (False, 401)])
def test_who_calls_is_whose_token_it_is_whoever_is_logged_in(
    client, make_user, settings, has_token, status
):
    required = "django.contrib.auth.middleware.LoginRequiredMiddleware"
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, required]
    client.web.force_login(make_user("eve"))
    client.token = client.token if has_token else None

    answer = client.post_request("tools/call", {"name": "echo", "arguments": {"text": "x"}})

    assert answer.status == status
    assert (b"staff" in answer.body) is has_token


# Middleware that Django runs before the view

HERE = "tests.transports.middlewares"
AUTH = "django.contrib.auth.middleware.AuthenticationMiddleware"


@pytest.fixture
def order(settings):
    """Put middleware behind Django's AuthenticationMiddleware, or `first` of all."""

    def put(*names, first=()):
        paths = [name if "." in name else f"{HERE}.{name}" for name in names]
        before = [name if "." in name else f"{HERE}.{name}" for name in first]
        own = list(MIDDLEWARE)
        at = own.index(AUTH) + 1
        settings.MIDDLEWARE = [*before, *own[:at], *paths, *own[at:]]

    return put


@pytest.fixture
def write(add_tool):
    """A tool that writes where the tenant's rows are."""
    written = []

    def save() -> str:
        """Write something down."""
        written.append(owner.get())
        return written[-1]

    add_tool(save, permission="shop.view_order")
    return written


@pytest.mark.parametrize(("kind", "choice"), [(WSGIClient, "auto"), (CheckedClient, "project")])
def test_middleware_behind_ours_sees_the_tenant_of_the_caller_and_under_asgi_ours_may_stay(
    client, configure, order, write, revision, kind, choice
):
    configure(RUN_MIDDLEWARE=choice)
    order(CALLER, "UserTenant")
    client = kind(token=client.token, revision=revision)

    assert client.call_tool("save").text == "staff"
    assert write == ["staff"]


@pytest.mark.parametrize(
    ("names", "first", "changes"),
    [
        (["UserTenant"], (), {}),
        (["UserTenant", CALLER], (), {}),
        (["Plain", CALLER, "UserTenant"], (), {}),
        # Ours in front of Django's counts as missing, and so does one that cannot know the view.
        (["UserTenant"], (CALLER,), {}),
        ([CALLER, "OwnURLs", "UserTenant"], (), {"ROOT_URLCONF": "django.contrib.auth.urls"}),
    ],
)
@pytest.mark.parametrize(
    "call", [{"name": "save"}, {"name": "find_records", "arguments": {"model": "shop.order"}}]
)
def test_a_call_is_refused_where_middleware_looks_at_the_user_too_early(
    client, order, settings, write, caplog, names, first, changes, call
):
    for name, value in changes.items():
        setattr(settings, name, value)
    order(*names, first=first)

    answer = client.post_request("tools/call", call)

    message = answer.messages[0]["error"]["message"]
    assert answer.status == 503
    assert f"{CALLER} must stand in front of" in message
    assert HERE not in message
    assert f"{HERE}.{'Plain' if 'Plain' in names else 'UserTenant'}" in caplog.text
    assert write == []
    # Who has no credential hears nothing of it.
    assert WSGIClient().post(PING).status == 401


@pytest.mark.parametrize("choice", ["none", [f"{HERE}.function"]])
def test_a_site_may_say_which_middleware_matters_to_calls(client, order, configure, write, choice):
    configure(RUN_MIDDLEWARE=choice)
    order("UserTenant")

    if choice == "none":
        assert client.call_tool("save").text == "nobody"
    else:
        # It is not among MIDDLEWARE, so Django does not run it.
        with pytest.raises(ProtocolFailure, match="not set up"):
            client.call_tool("save")


@pytest.mark.parametrize(
    ("names", "first"),
    [([], ["Plain"]), ([], ["function"]), (["django.middleware.locale.LocaleMiddleware"], [])],
)
def test_djangos_own_middleware_and_what_sees_no_user_may_stay_where_they_are(
    client, order, names, first
):
    order(*names, first=first)

    assert "staff" in client.call_tool("echo", text="x").text


@pytest.mark.parametrize("name", ["ForgetfulUser", "OtherUser"])
def test_middleware_that_replaces_the_user_behind_ours_ends_the_call(
    client, make_user, order, write, name
):
    make_user("eve", is_superuser=True)
    order(CALLER, name, "UserTenant")

    with pytest.raises(ProtocolFailure, match="another user"):
        client.call_tool("save")

    assert write == []


def test_a_wrong_credential_is_counted_once_and_leaves_middleware_with_nobody(order, monkeypatch):
    order(CALLER, "EagerUser")
    seen.clear()
    counted = []
    monkeypatch.setattr(failures, "add", counted.append)

    answer = WSGIClient(token="mcp_wrong").post(PING)

    assert (answer.status, answer.messages[0]["id"]) == (401, 7)
    assert seen == [(False, "")]
    assert counted == ["127.0.0.1"]


def test_a_caller_costs_no_more_queries_behind_ours(client, order, decisions_are_known):
    client.call_tool("echo", text="x")
    authentication.cache.clear()
    with CaptureQueriesContext(connection) as alone:
        client.call_tool("echo", text="x")
    authentication.cache.clear()
    order(CALLER, "UserTenant")
    client = WSGIClient(token=client.token)

    with CaptureQueriesContext(connection) as behind:
        client.call_tool("echo", text="x")

    assert 0 < len(behind) <= len(alone)


@pytest.mark.parametrize("names", [[], [CALLER, "SessionAndMessages"]])
def test_neither_a_call_nor_middleware_behind_ours_touches_the_session_of_the_browser(
    client, staff, add_tool, order, names
):
    def scribble(request) -> int:
        """Write where a browser would see it."""
        request.session["seen"] = request.session.get("seen", 0) + 1
        messages.info(request, "hi")
        assert str([*get_messages(request)][-1]) == "hi"
        return request.session["seen"]

    add_tool(scribble)
    client.web.force_login(staff)
    session = client.web.session
    session["visits"] = 41
    session.save()
    seen.clear()
    order(*names)

    for _ in range(2):
        assert client.call_tool("scribble").text == '{"result":1}'

    assert seen[:1] == [1] * bool(names)
    kept = Session.objects.get().get_decoded()
    assert (kept["visits"], "seen" in kept) == (41, False)
    assert client.web.cookies["sessionid"].value


def test_pages_of_the_site_have_the_user_of_the_browser(client, staff, order):
    client.web.force_login(staff)
    order(CALLER, "EagerUser")
    seen.clear()

    page = client.web.get("/admin/", headers={"Authorization": "Bearer wrong"})
    missing = client.web.get("/nothing/here")

    assert (page.status_code, missing.status_code) == (200, 404)
    assert seen == [(True, "staff")] * 2


# What goes wrong


@pytest.mark.parametrize("names", [[], [CALLER, "UserTenant"]], ids=["view", "middleware"])
def test_a_bug_of_ours_is_an_answer_and_a_number_in_the_log_whoever_meets_it_first(
    client, configure, order, caplog, names
):
    configure(AUTHENTICATORS=[f"{__name__}.Faulty"])
    order(*names)

    answer = client.post(PING)

    assert answer.status == 500
    assert answer.messages[0]["error"]["message"] == "Internal error"
    assert answer.messages[0]["error"]["data"]["id"] in caplog.text
    assert b"secret" not in answer.body


class Faulty:
    def authenticate(self, request):
        raise ValueError("secret")

    def challenge(self):
        return None


def test_a_body_in_chunks_is_read_where_the_server_says_where_it_ends(superuser):
    client = WSGIClient(user=superuser)
    message = client.message("tools/list", {})
    sent = {**client.routing_headers(message), "Authorization": f"Bearer {client.token}"}
    environ = {
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": "",
        "wsgi.input": io.BytesIO(msgspec.json.encode(message)),
        "wsgi.input_terminated": True,
    }

    answer = client.web.post("/mcp", headers={**sent, "Transfer-Encoding": "chunked"}, **environ)

    assert answer.status_code == 200
    assert b"find_records" in answer.content
