from __future__ import annotations

import asyncio
from threading import Event

import pytest
from django.contrib.sessions.models import Session
from django.core.signals import request_finished, request_started
from django.urls import NoReverseMatch, get_urlconf, reverse
from django.utils import translation

import mcp_django as mcp
from mcp_django.asgi import get_mcp_application
from mcp_django.protocol.revisions import Revision
from mcp_django.testing import ProtocolFailure
from mcp_django.transports.exchanges import Reply
from mcp_django.transports.http.middleware import response_of
from tests.clients import CheckedClient
from tests.shop.models import Order
from tests.spec import requirement
from tests.transports.middlewares import owner, seen
from tests.transports.wire import Connection
from tests.waiting import PATIENCE

HERE = "tests.transports.middlewares"


@pytest.fixture(autouse=True)
def forget():
    seen.clear()
    yield
    seen.clear()


@pytest.fixture
def run(settings):
    """Put middleware of these names round calls."""

    def add(*names):
        paths = [name if "." in name else f"{HERE}.{name}" for name in names]
        settings.MIDDLEWARE = [*settings.MIDDLEWARE, *paths]

    return add


def post(client, method="tools/list", headers=None, **params):
    return client.post_request(method, params, headers=headers)


# The call inside


@pytest.mark.django_db
def test_every_revision_is_answered_through_middleware(client, run, revision):
    run("function")
    client = CheckedClient(token=client.token, revision=revision)

    text = client.call_tool("echo", text="hello").text

    assert "staff" in text
    assert seen == ["function in", "function out"]


@pytest.mark.django_db
def test_async_tools_run_inside_the_middleware(client, run, add_tool):
    run("function")

    async def note() -> str:
        """Note the order."""
        await Order.objects.acount()
        seen.append("tool")
        return "noted"

    add_tool(note)

    assert client.call_tool("note").text == "noted"
    assert seen == ["function in", "tool", "function out"]


@pytest.mark.django_db
def test_progress_streams_out_of_the_middleware(client, run):
    run("function")

    answer = post(
        client,
        "tools/call",
        name="count_to",
        arguments={"number": 2},
        _meta={"progressToken": "t"},
    )

    assert answer.is_stream
    assert "result" in answer.messages[-1]


@pytest.mark.django_db
def test_notifications_pass_through_middleware_with_an_empty_answer(client, run):
    run("function")

    answer = client.post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    assert (answer.status, answer.body) == (202, b"")
    assert "content-type" not in answer.headers


@pytest.mark.django_db
def test_a_batch_stays_a_batch(client, run):
    run("function")
    client = CheckedClient(token=client.token, revision=Revision.V2025_03_26)

    answer = client.post([client.message("ping"), client.message("ping")])

    assert [message["id"] for message in answer.messages] == [1, 2]


@pytest.mark.django_db
def test_a_header_that_middleware_adds_reaches_the_peer_and_a_cookie_does_not(client, run):
    run("Header")

    answer = post(client)

    assert answer.headers["x-site"] == "shop"
    assert answer.headers["vary"] == "Accept-Language"
    assert "set-cookie" not in answer.headers


@pytest.mark.django_db
def test_one_request_starts_and_finishes_once(client, run):
    run("both")
    heard = []

    def hear(sender, signal, **kwargs):
        heard.append(signal)

    request_started.connect(hear)
    request_finished.connect(hear)
    try:
        post(client)
    finally:
        request_started.disconnect(hear)
        request_finished.disconnect(hear)

    assert heard == [request_started, request_finished]


@pytest.mark.django_db
def test_hooks_for_views_see_the_view_of_the_endpoint(client, run):
    run("ViewHook")

    post(client)

    assert seen == [("mcp_view", (), {}, True)]


@pytest.mark.django_db
def test_the_language_of_the_client_is_the_language_of_the_tool(client, run, add_tool):
    run("django.middleware.locale.LocaleMiddleware")

    def language() -> str:
        """Say which."""
        return translation.get_language()

    add_tool(language)
    answer = post(client, "tools/call", {"Accept-Language": "fr"}, name="language", arguments={})

    assert answer.messages[0]["result"]["content"][0]["text"] == "fr"
    assert answer.headers["content-language"] == "fr"


# The view that middleware is in front of

ENDPOINT = {("mcp_django:endpoint", "mcp_view")}
#: URLconfs with the endpoint, without it, and with another view at each path.
URLCONFS = ["tests.urls", "django.contrib.auth.urls", "tests.transports.other_urls"]


class PrefixedClient(CheckedClient):
    """Asks a server that has the site below a path."""

    root_path = ""

    def scope(self, verb, *, headers=None):
        return {**super().scope(verb, headers=headers), "root_path": self.root_path}


@pytest.fixture
def application():
    """The whole site, with the endpoint at another path than its URLconf has."""
    return get_mcp_application(path="assist")


@pytest.mark.django_db
@pytest.mark.parametrize("urlconf", URLCONFS)
@pytest.mark.parametrize(
    ("path", "root_path"),
    [("/assist", ""), ("/assist/", ""), ("/office/assist", "/office"), ("/assist", "/office")],
)
def test_the_endpoint_resolves_for_middleware_that_asks_whatever_the_urlconf_has(
    staff, run, settings, application, urlconf, path, root_path
):
    settings.ROOT_URLCONF = urlconf
    run("Resolving", "Measuring")
    client = PrefixedClient(user=staff, application=application, path=path)
    client.root_path = root_path

    client.call_tool("echo", text="x")

    names = ("mcp_django:endpoint", "endpoint", ["mcp_django"])
    assert seen == [ENDPOINT, (*names, path.removeprefix(root_path).removeprefix("/"))]


@pytest.mark.django_db
@pytest.mark.parametrize("hosts", ["Hosts", "ThreadHosts"])
def test_the_endpoint_resolves_behind_middleware_that_chooses_another_urlconf(client, run, hosts):
    run("Resolving", hosts, "Resolving", "Shop", "Measuring")

    post(client)

    view, shop, measured = seen[1:]
    assert seen[0] == view == ENDPOINT
    assert shop == ("/shop/", "shop")
    assert measured[0] == "mcp_django:endpoint"


@pytest.mark.django_db
def test_addresses_of_the_site_and_of_the_endpoint_can_be_made_in_middleware_and_in_tools(
    staff, run, settings, application, add_tool
):
    def address() -> str:
        """Where the admin is."""
        return reverse("admin:index")

    add_tool(address)
    settings.ROOT_URLCONF = "tests.transports.other_urls"
    run("Reversing")
    client = CheckedClient(user=staff, application=application, path="/assist")

    answer = client.call_tool("address")

    assert answer.text == "/admin/"
    assert seen == [["/admin/", "/assist"]]


@pytest.mark.django_db
def test_a_site_that_includes_the_endpoint_reverses_to_its_own_path(client, run, settings):
    settings.ROOT_URLCONF = "tests.urls"
    client.path = "/elsewhere"
    run("Reversing", "Resolving")

    post(client)

    assert seen == [["/admin/", "/mcp"], ENDPOINT]


@pytest.mark.django_db
@pytest.mark.parametrize("end", ["sse", "messages"])
def test_the_addresses_of_http_sse_resolve_as_well(staff, run, settings, application, end):
    settings.ROOT_URLCONF = "tests.transports.other_urls"
    run("Resolving")
    client = CheckedClient(user=staff, application=application, path=f"/assist/{end}")

    client.http("PUT")

    assert seen == [ENDPOINT]


@pytest.mark.django_db
def test_the_urlconf_of_a_call_ends_with_the_call(client, run):
    run("Hosts")

    post(client)

    assert get_urlconf() is None
    with pytest.raises(NoReverseMatch):
        reverse("shop")


@pytest.mark.django_db
@pytest.mark.parametrize(("debug", "status"), [(False, 410), (True, 404)])
def test_what_middleware_does_not_find_is_answered_by_the_handler_of_the_sites_urlconf(
    client, run, settings, debug, status
):
    settings.DEBUG = debug
    settings.ROOT_URLCONF = "tests.transports.other_urls"
    run("Missing")

    answer = post(client)

    assert answer.status == status


# Who calls


@pytest.mark.django_db
def test_a_tenant_is_set_before_the_first_query_of_authentication(client, run):
    run("Tenant")

    text = post(
        client, "tools/call", {"X-Tenant": "acme"}, name="echo", arguments={"text": "x"}
    ).body

    assert b"staff" in text
    assert seen
    assert set(seen) == {"acme"}


@pytest.mark.django_db
def test_without_its_tenant_a_site_answers_an_internal_error(client, run, caplog):
    run("Tenant")

    answer = post(client)

    assert answer.status == 500
    assert b"tenant" not in answer.body


@pytest.mark.django_db
def test_middleware_that_looks_at_the_user_sees_the_principals(client, run):
    run("EagerUser")

    post(client)

    assert seen == [(True, "staff")]


@pytest.mark.django_db
def test_middleware_that_looks_at_the_user_of_nobody_sees_an_anonymous_one(run):
    run("EagerUser")

    answer = post(CheckedClient())

    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert seen == [(False, "")]


@pytest.mark.django_db
def test_middleware_that_forgets_the_user_does_not_make_the_call_anonymous(client, run):
    run("ForgetfulUser")

    assert "staff" in client.call_tool("echo", text="x").text


@pytest.mark.django_db
@pytest.mark.parametrize(
    "name",
    [
        "ForgetfulUser",
        "LazilyForgetfulUser",
        "DeviceUser",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
)
def test_the_next_middleware_sees_the_caller_whomever_the_one_before_has_looked_for(
    client, settings, add_tool, name
):
    path = name if "." in name else f"{HERE}.{name}"
    settings.MCP_DJANGO = {
        **settings.MCP_DJANGO,
        "RUN_MIDDLEWARE": [path, f"{HERE}.UserTenant", f"{HERE}.EagerUser"],
    }
    add_tool(whose)

    answer = client.call_tool("whose")

    assert answer.text == "staff"
    assert seen == [(True, "staff")]


def whose() -> str:
    """Say whose tenant it is."""
    return owner.get()


@pytest.mark.django_db
def test_no_user_is_looked_up_before_the_tenant_is_set(client, run):
    run("LazilyForgetfulUser", "DeviceUser", "Tenant")

    answer = post(client, headers={"X-Tenant": "acme"})

    assert answer.status == 200
    assert set(seen) == {"acme"}


@pytest.mark.django_db
def test_middleware_that_finds_another_user_ends_the_call(client, run, make_user):
    run("OtherUser")
    make_user("eve", is_superuser=True)

    with pytest.raises(ProtocolFailure) as refused:
        client.call_tool("echo", text="x")

    assert refused.value.status == 403


@pytest.mark.django_db
def test_middleware_that_finds_the_same_user_is_right(run, make_user):
    run("OtherUser")

    client = CheckedClient(user=make_user("eve", is_staff=True))

    assert "eve" in client.call_tool("echo", text="x").text


@pytest.mark.django_db
def test_sessions_and_messages_work_and_nothing_of_them_is_kept(client, run):
    run("SessionAndMessages")

    for _ in range(2):
        answer = post(client)

    assert seen == [1, ["hello"]] * 2
    assert "set-cookie" not in answer.headers
    assert not Session.objects.exists()


# What middleware answers by itself


@requirement("security:errors")
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("Forbidding", 403),
        ("Denying", 403),
        ("ViewRefusal", 403),
        ("Login", 403),
        ("Page", 403),
        ("Maintenance", 503),
        ("Raising", 500),
        ("RaisingAfterwards", 500),
    ],
)
@pytest.mark.parametrize("debug", [False, True])
def test_pages_for_people_never_reach_a_peer(client, run, settings, caplog, name, status, debug):
    settings.DEBUG = debug
    run("function", name)

    answer = post(client)

    assert answer.status == status
    assert answer.headers["content-type"] == "application/json"
    assert answer.messages[0]["id"] == 1
    assert b"secret" not in answer.body
    assert "location" not in answer.headers


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("names", "status", "named", "level"),
    [
        (["Forbidding"], 403, "Forbidding", "WARNING"),
        (["Denying"], 403, "Denying", "WARNING"),
        (["Page"], 403, "Page", "WARNING"),
        (["Login"], 403, "Login", "WARNING"),
        (["ViewRefusal"], 403, "ViewRefusal", "WARNING"),
        (["Maintenance"], 503, "Maintenance", "ERROR"),
        (["Raising"], 500, "Raising", "ERROR"),
        (["RaisingAfterwards"], 500, "RaisingAfterwards", "ERROR"),
        (["ViewHook", "ViewRaising"], 500, "ViewRaising", "ERROR"),
        (["ViewRaising", "Measuring"], 500, "ViewRaising", "ERROR"),
        (["Replacing", "Forbidding"], 404, "Replacing", "WARNING"),
    ],
)
def test_the_log_names_the_middleware_that_answered_and_the_answer_does_not(
    client, run, caplog, names, status, named, level
):
    run("function", *names, "Plain")

    answer = post(client)

    records = [one for one in caplog.records if one.name == "mcp_django"]
    assert [(one.levelname, one.getMessage().split(" ")[0]) for one in records] == [
        (level, f"{HERE}.{named}")
    ]
    assert answer.status == status
    assert named.encode() not in answer.body


@pytest.mark.django_db
def test_what_an_authenticator_raises_is_no_answer_of_middleware(run, settings, caplog):
    run("function")
    settings.MCP_DJANGO = {
        **settings.MCP_DJANGO,
        "AUTHENTICATORS": ["tests.transports.http.test_wsgi.Broken"],
    }

    answer = post(CheckedClient())

    assert answer.status == 500
    assert answer.messages[0]["error"]["data"]["id"] in caplog.text
    assert "middlewares.function" not in caplog.text


@pytest.mark.django_db
def test_headers_of_a_middlewares_own_answer_are_passed_on(client, run):
    run("Forbidding")

    assert post(client).headers["x-page"] == "1"


@pytest.mark.django_db
def test_a_failure_of_middleware_has_a_number_that_stands_in_the_log(client, run, caplog):
    run("Raising")

    error = post(client).messages[0]["error"]

    assert error["message"] == "Internal error"
    assert error["data"]["id"] in caplog.text
    assert "secret bug" in caplog.text


@pytest.mark.django_db
def test_a_site_that_lets_exceptions_through_gets_them_into_the_log_only(
    client, run, settings, caplog
):
    settings.DEBUG_PROPAGATE_EXCEPTIONS = True
    run("Raising")

    answer = post(client)

    assert answer.status == 500
    assert answer.messages[0]["error"]["data"]["id"] in caplog.text
    assert b"secret" not in answer.body


@pytest.mark.django_db
def test_all_of_djangos_own_middleware_may_run(client, settings):
    settings.MIDDLEWARE = ["django.middleware.gzip.GZipMiddleware", *settings.MIDDLEWARE]
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "RUN_MIDDLEWARE": "project"}

    answer = post(client, headers={"Accept-Encoding": "gzip"})

    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "content-encoding" not in answer.headers
    assert answer.messages[0]["result"]["tools"]
    assert int(answer.headers["content-length"]) == len(answer.body)


def test_two_challenges_make_one_header():
    reply = Reply(
        status=401, headers=(("WWW-Authenticate", "Bearer"), ("WWW-Authenticate", "Basic"))
    )

    assert response_of(reply)["WWW-Authenticate"] == "Bearer, Basic"


# Nobody waits any more


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_cancelled_tool_is_no_error_of_the_site(client, run, add_tool, caplog):
    run("function")
    started, release = Event(), Event()

    def work(ctx: mcp.Context) -> str:
        """Work until somebody leaves."""
        started.set()
        release.wait(PATIENCE)
        ctx.check()
        return ""

    add_tool(work)
    call = Connection.calling(client, "work")
    call.start()
    await asyncio.to_thread(started.wait, PATIENCE)
    call.hang_up()
    await call.end()
    release.set()
    again = await Connection.calling(client, "echo", text="x").whole()

    assert again.status == 200
    assert call.sent == []
    assert caplog.records == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_an_async_tool_inside_middleware_is_cancelled_with_its_call(client, run, add_tool):
    run("function")
    started, ended = Event(), Event()

    async def sleep() -> str:
        """Wait for ever."""
        started.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()
        return ""

    add_tool(sleep)
    call = Connection.calling(client, "sleep")
    call.start()
    await asyncio.to_thread(started.wait, PATIENCE)
    call.hang_up()
    await call.end()

    assert await asyncio.to_thread(ended.wait, PATIENCE)
    assert call.sent == []


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_an_async_tool_inside_middleware_that_runs_for_too_long_frees_its_thread(
    client, run, add_tool, settings
):
    run("function")
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "TOOL_TIMEOUT": 0.5}
    ended = Event()

    async def sleep() -> str:
        """Wait for ever."""
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()
        return ""

    add_tool(sleep)

    call = await Connection.calling(client, "sleep").whole()

    assert call.json["result"]["isError"]
    assert "0.5 seconds" in call.json["result"]["content"][0]["text"]
    assert await asyncio.to_thread(ended.wait, PATIENCE)


@pytest.mark.django_db
def test_an_async_tool_inside_middleware_that_cancels_itself_is_a_bug(
    client, run, add_tool, caplog
):
    run("function")

    async def sleep() -> str:
        """Cancel itself."""
        raise asyncio.CancelledError

    add_tool(sleep)

    with pytest.raises(ProtocolFailure, match="Internal error"):
        client.call_tool("sleep")
