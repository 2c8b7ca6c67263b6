from __future__ import annotations

import asyncio
from threading import Event

import pytest
from django.contrib.sessions.models import Session
from django.core.signals import request_finished, request_started
from django.urls import get_urlconf, reverse
from django.utils import translation

import mcp_django as mcp
from mcp_django.asgi import get_mcp_application
from mcp_django.transports.middleware import chosen, loaded
from tests.clients import CheckedClient
from tests.shop.models import Order
from tests.spec import requirement
from tests.transports.middlewares import owner, seen
from tests.transports.wire import Connection
from tests.waiting import PATIENCE

pytestmark = pytest.mark.django_db

HERE = "tests.transports.middlewares"
#: Of the match of the endpoint: view, URL, apps.
NAMES = ("mcp_django:endpoint", "endpoint", ["mcp_django"])


def post(client, method="tools/list", headers=None, **params):
    return client.post_request(method, params, headers=headers)


# Which classes run


def test_the_chain_is_loaded_once_and_again_when_a_setting_changes_and_may_be_empty(configure):
    # Of Django's browser classes none runs.
    assert chosen() == []
    assert loaded.chain() is None
    assert loaded.is_known_to_be_empty
    configure(RUN_MIDDLEWARE=[f"{HERE}.both"])
    assert not loaded.is_known_to_be_empty
    first = loaded.chain()

    assert loaded.chain() is first
    assert not loaded.is_known_to_be_empty
    configure(RUN_MIDDLEWARE=[f"{HERE}.function"])
    assert loaded.chain() is not first


@pytest.mark.parametrize(
    ("choice", "paths"),
    [
        # Subclasses of browser classes are browser classes.
        ("auto", [f"{HERE}.function", "django.middleware.locale.LocaleMiddleware"]),
        ("project", None),
        ("none", []),
        ([f"{HERE}.both"], [f"{HERE}.both"]),
    ],
)
def test_a_setting_says_which_classes_run(run, configure, settings, choice, paths):
    locale = "django.middleware.locale.LocaleMiddleware"
    run("OwnSessions", "OwnCsrf", "OwnUsers", "function", locale)
    configure(RUN_MIDDLEWARE=choice)

    assert chosen() == (settings.MIDDLEWARE if paths is None else paths)


# The call inside


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (["function", "both"], ["function in", "both", "tool", "function out"]),
        (["Async"], ["async in", "async view", "tool"]),
        (["AsyncWithSyncHook"], ["async in", "sync view", "tool"]),
        (["Unused", "both"], ["both", "tool"]),
        (["ViewHook", "Measuring"], [("mcp_view", (), {}, True), (*NAMES, "mcp(?:/)?$"), "tool"]),
    ],
)
def test_middleware_and_its_hooks_run_in_order_round_a_tool(client, run, add_tool, names, order):
    run(*names)

    async def note(ctx: mcp.Context) -> str:
        """Note the order."""
        await Order.objects.acount()
        seen.append("tool")
        ctx.progress(1)
        return "noted"

    add_tool(note)
    answer = post(client, "tools/call", name="note", _meta={"progressToken": "t"})

    # Progress streams out of the middleware.
    assert answer.is_stream
    assert answer.messages[-1]["result"]["content"][0]["text"] == "noted"
    assert seen == order


def test_one_request_starts_and_finishes_once_and_its_header_reaches_the_peer_but_no_cookie(
    client, run
):
    run("both", "Header")
    heard = []

    def hear(sender, signal, **kwargs):
        heard.append(signal)

    request_started.connect(hear)
    request_finished.connect(hear)
    try:
        answer = post(client)
    finally:
        request_started.disconnect(hear)
        request_finished.disconnect(hear)

    assert heard == [request_started, request_finished]
    assert answer.headers["x-site"] == "shop"
    assert answer.headers["vary"] == "Accept-Language"
    assert "set-cookie" not in answer.headers


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

    assert seen == [ENDPOINT, (*NAMES, path.removeprefix(root_path).removeprefix("/"))]


@pytest.mark.parametrize("hosts", ["Hosts", "RequestHosts", "ThreadHosts"])
def test_the_endpoint_resolves_behind_middleware_that_chooses_another_urlconf(client, run, hosts):
    run("Resolving", hosts, "Resolving", "Shop", "Measuring")

    post(client)

    view, shop, measured = seen[1:]
    assert seen[0] == view == ENDPOINT
    assert shop == ("/shop/", "shop")
    assert measured[0] == "mcp_django:endpoint"
    # It ends with the call.
    assert get_urlconf() is None


@pytest.mark.parametrize(
    ("root_path", "forced", "prefix", "urlconf", "endpoint"),
    [
        ("", None, "", URLCONFS[2], "/assist"),
        ("/app", None, "/app", URLCONFS[2], "/app/assist"),
        ("/app/", None, "/app", URLCONFS[2], "/app/assist"),
        # It counts more than what the server says.
        ("/other", "/forced", "/forced", URLCONFS[2], "/forced/assist"),
        # A site that includes the endpoint has a path of its own for it.
        ("", None, "", URLCONFS[0], "/mcp"),
    ],
)
def test_addresses_of_the_site_and_of_the_endpoint_can_be_made_in_middleware_and_in_tools(
    staff, run, settings, application, add_tool, root_path, forced, prefix, urlconf, endpoint
):
    def address() -> str:
        """Where the admin is."""
        return reverse("admin:index")

    add_tool(address)
    settings.ROOT_URLCONF = urlconf
    settings.FORCE_SCRIPT_NAME = forced
    run("Reversing")
    client = PrefixedClient(user=staff, application=application, path=f"{prefix}/assist")
    client.root_path = root_path

    answer = client.call_tool("address")

    assert answer.text == f"{prefix}/admin/"
    assert seen == [[f"{prefix}/admin/", endpoint]]


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


@pytest.mark.parametrize(
    ("has_token", "status", "user"), [(True, 200, (True, "staff")), (False, 401, (False, ""))]
)
def test_middleware_that_looks_at_the_user_sees_the_caller_or_nobody(
    client, run, has_token, status, user
):
    run("EagerUser")
    client.token = client.token if has_token else None

    answer = post(client)

    assert answer.status == status
    assert seen == [user]


@pytest.mark.parametrize(("name", "status"), [("eve", 200), ("ada", 403)])
def test_middleware_that_identifies_somebody_else_ends_the_call(run, make_user, name, status):
    run("OtherUser")
    user = make_user(name, is_staff=True)
    if name != "eve":
        make_user("eve", is_superuser=True)

    assert post(CheckedClient(user=user)).status == status


@pytest.mark.parametrize(
    "path",
    [
        *(f"{HERE}.{name}" for name in ("ForgetfulUser", "LazilyForgetfulUser", "DeviceUser")),
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
)
def test_the_next_middleware_sees_the_caller_whomever_the_one_before_has_looked_for(
    client, run, configure, add_tool, path
):
    configure(RUN_MIDDLEWARE=[path, f"{HERE}.UserTenant", f"{HERE}.EagerUser"])

    def whose() -> str:
        """Say whose tenant it is."""
        return owner.get()

    add_tool(whose)

    answer = client.call_tool("whose")

    assert answer.text == "staff"
    assert seen == [(True, "staff")]


def test_no_user_is_looked_up_before_the_tenant_is_set(client, run):
    run("LazilyForgetfulUser", "DeviceUser", "Tenant")

    answer = post(client, headers={"X-Tenant": "acme"})

    assert answer.status == 200
    assert set(seen) == {"acme"}


def test_sessions_and_messages_work_and_nothing_of_them_is_kept(client, run):
    run("SessionAndMessages")

    for _ in range(2):
        answer = post(client)

    assert seen == [1, ["hello"]] * 2
    assert "set-cookie" not in answer.headers
    assert not Session.objects.exists()


# What middleware answers by itself


@requirement("security:errors")
@pytest.mark.parametrize(
    ("names", "status", "named"),
    [
        *(
            ([name], 403, name)
            for name in ("Forbidding", "Denying", "Page", "Login", "ViewRefusal")
        ),
        (["Maintenance"], 503, "Maintenance"),
        *(([name], 500, name) for name in ("Raising", "RaisingAfterwards")),
        (["ViewHook", "ViewRaising"], 500, "ViewRaising"),
        (["ViewRaising", "Measuring"], 500, "ViewRaising"),
        (["Replacing", "Forbidding"], 404, "Replacing"),
    ],
)
@pytest.mark.parametrize("changes", [{}, {"DEBUG": True}, {"DEBUG_PROPAGATE_EXCEPTIONS": True}])
def test_pages_for_people_never_reach_a_peer_and_the_log_names_who_made_them(
    client, run, settings, caplog, names, status, named, changes
):
    for name, value in changes.items():
        setattr(settings, name, value)
    run("function", *names, "Plain")

    answer = post(client)

    assert answer.status == status
    assert answer.headers["content-type"] == "application/json"
    assert answer.messages[0]["id"] == 1
    assert not any(word in answer.body for word in (b"secret", named.encode()))
    assert "location" not in answer.headers
    has_mark = named in ("Forbidding", "Page", "Maintenance")
    assert answer.headers.get("x-page") == ("1" if has_mark else None)
    if changes.keys() != {"DEBUG_PROPAGATE_EXCEPTIONS"}:
        records = [record for record in caplog.records if record.name == "mcp_django"]
        assert [(record.levelname, record.getMessage().split(" ")[0]) for record in records] == [
            ("WARNING" if status < 500 else "ERROR", f"{HERE}.{named}")
        ]
    if status >= 500:
        error = answer.messages[0]["error"]
        assert error["message"] == "Internal error"
        assert error["data"]["id"] in caplog.text


def test_what_an_authenticator_raises_is_no_answer_of_middleware(run, configure, caplog):
    run("function")
    configure(AUTHENTICATORS=["tests.transports.test_wsgi.Faulty"])

    answer = post(CheckedClient())

    assert answer.status == 500
    assert answer.messages[0]["error"]["data"]["id"] in caplog.text
    assert "middlewares.function" not in caplog.text


def test_all_of_djangos_own_middleware_may_run(client, settings, configure):
    settings.MIDDLEWARE = ["django.middleware.gzip.GZipMiddleware", *settings.MIDDLEWARE]
    configure(RUN_MIDDLEWARE="project")

    answer = post(client, headers={"Accept-Encoding": "gzip"})

    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "content-encoding" not in answer.headers
    assert answer.messages[0]["result"]["tools"]
    assert int(answer.headers["content-length"]) == len(answer.body)


# Nobody waits any more


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_cancelled_tool_is_no_error_of_the_site(client, run, add_tool, gate, caplog):
    def work(ctx: mcp.Context) -> str:
        """Work until somebody leaves."""
        gate.wait()
        ctx.check()
        return ""

    run("function")
    add_tool(work)
    call = await gate.held(Connection.calling(client, "work"))
    call.hang_up()
    await call.end()
    gate.open()
    again = await Connection.calling(client, "echo", text="x").whole()

    assert again.status == 200
    assert call.sent == []
    assert caplog.records == []


@pytest.fixture
def endless(add_tool):
    """An async tool that waits for ever: events for its begin and its end."""
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
    return started, ended


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
@pytest.mark.parametrize("leaves", [True, pytest.param(False, marks=pytest.mark.thorough)])
async def test_an_async_tool_inside_middleware_ends_with_its_client_and_with_its_time(
    client, run, endless, configure, leaves
):
    run("function")
    configure(TOOL_TIMEOUT=PATIENCE if leaves else 0.5)
    started, ended = endless
    call = Connection.calling(client, "sleep")
    call.start()
    await asyncio.to_thread(started.wait, PATIENCE)

    if leaves:
        call.hang_up()
    await call.end()

    assert await asyncio.to_thread(ended.wait, PATIENCE)
    assert b"0.5 seconds" in call.body or (leaves and call.sent == [])
