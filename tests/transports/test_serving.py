from __future__ import annotations

import asyncio
import re
from threading import Event

import pytest
from django.contrib.auth.backends import BaseBackend

from mcp_django.auth.authenticate import authenticate
from mcp_django.exceptions import Cancelled
from mcp_django.handlers.dispatch import PendingAnswer
from mcp_django.protocol.revisions import Revision
from mcp_django.testing import ProtocolFailure
from mcp_django.transports.exchanges import crashed, run_async, too_slow
from mcp_django.transports.http.endpoint import understand
from mcp_django.transports.requests import build_request, own_copy
from tests.clients import CheckedClient
from tests.spec import requirement

pytestmark = pytest.mark.django_db

NOTIFICATION = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


@pytest.fixture
def configure(settings):
    def set_some(**changes):
        settings.MCP_DJANGO = {**settings.MCP_DJANGO, **changes}

    return set_some


def exchange_of(client, body, headers=None):
    from mcp_django.protocol.headers import Headers

    return understand("POST", Headers(client.scope("POST", headers=headers)["headers"]), body)


# Refusals of the whole request


@requirement("authorization:401")
def test_a_credential_that_is_wrong_is_challenged_with_an_error():
    answer = CheckedClient(token="wrong").post(NOTIFICATION)

    assert answer.status == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    assert answer.headers["cache-control"] == "no-store"


def test_every_challenge_is_told(configure):
    configure(
        AUTHENTICATORS=["tests.transports.http.test_wsgi.Nobody", "mcp_django.auth.PersonalTokens"]
    )

    assert CheckedClient().post(NOTIFICATION).headers["www-authenticate"] == "Basic, Bearer"


@requirement("security:closed")
def test_a_site_without_authenticators_serves_nobody_and_tells_only_its_log(configure, caplog):
    configure(AUTHENTICATORS=[])

    answer = CheckedClient().post(b'{"jsonrpc":"2.0","id":3,"method":"ping"}')

    assert answer.status == 503
    assert answer.messages[0]["id"] == 3
    assert b"AUTHENTICATORS" not in answer.body
    assert "AUTHENTICATORS" in caplog.text


@requirement("tools:validation")
def test_too_many_calls_are_told_when_to_come_back(client, configure):
    configure(CALLS_PER_MINUTE=1)
    client.call_tool("echo", text="x")

    with pytest.raises(ProtocolFailure) as raised:
        client.call_tool("echo", text="x")
    answer = client.post_request("tools/list")

    assert raised.value.status == 429
    assert 0 < int(answer.headers["retry-after"]) <= 60


def test_each_message_of_a_batch_counts_as_a_call(client, configure):
    configure(CALLS_PER_MINUTE=2)
    client = CheckedClient(token=client.token, revision=Revision.V2025_03_26)

    answer = client.post([client.message("ping") for _ in range(3)])

    assert answer.status == 429


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {}, 400),
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (NOTIFICATION, {"Mcp-Session-Id": "unknown"}, 404),
    ],
    ids=["body", "type", "session"],
)
def test_requests_that_are_refused_count_as_calls(client, configure, body, headers, status):
    configure(CALLS_PER_MINUTE=1)
    legacy = {"MCP-Protocol-Version": Revision.V2025_11_25.value, **headers}

    first, second = [client.post(body, headers=legacy) for _ in range(2)]

    assert (first.status, second.status) == (status, 429)
    assert int(second.headers["retry-after"]) > 0


def test_too_many_wrong_credentials_are_told_when_to_come_back(monkeypatch):
    from mcp_django.auth import throttles

    monkeypatch.setattr(throttles, "MOST_FAILURES", 1)
    client = CheckedClient(token="wrong")

    first, answer = client.post(NOTIFICATION), client.post(NOTIFICATION)

    assert (first.status, answer.status) == (401, 429)
    assert int(answer.headers["retry-after"]) > 0


# Answers in place of an answer


def test_a_failure_carries_the_id_of_the_request_and_the_number_in_the_log(client, caplog):
    exchange = exchange_of(client, b'{"jsonrpc":"2.0","id":3,"method":"ping"}')

    reply = crashed(exchange)

    [number] = re.findall(r"A request failed \[(\w+)\]", caplog.text)
    assert reply.status == 500
    assert b'"id":3' in reply.body
    assert b'"data":{"id":"%s"}' % number.encode() in reply.body


@requirement("limits:handlers")
@pytest.mark.parametrize(
    "body",
    [
        NOTIFICATION,
        b"{",
        b'{"jsonrpc":"2.0","id":3,"method":"tools/list"}',
        b'[{"jsonrpc":"2.0","id":3,"method":"tools/call"}]',
    ],
)
def test_whatever_takes_too_long_and_is_no_tool_is_an_error(client, body):
    reply = too_slow(exchange_of(client, body))

    assert b'"code":-32603' in reply.body
    assert b"60 seconds" in reply.body


def test_a_tool_that_takes_too_long_is_a_result_that_the_model_reads(client):
    body = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x"}}'

    reply = too_slow(exchange_of(client, body))

    assert reply.status == 200
    assert b'"isError":true' in reply.body


# Async tools where no loop of ours can take them


def test_a_coroutine_runs_to_its_end():
    async def add():
        await asyncio.sleep(0)
        return 3

    assert run_async(add(), Event()) == 3


def test_what_a_coroutine_raises_comes_back():
    async def burst():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_async(burst(), Event())


def test_a_coroutine_that_nobody_waits_for_is_cancelled():
    cancelled = Event()

    async def leave():
        cancelled.set()
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Cancelled):
        run_async(leave(), cancelled)


def test_a_coroutine_that_was_done_all_the_same_has_its_result():
    cancelled = Event()

    async def finish():
        cancelled.set()
        return "done"

    assert run_async(finish(), cancelled) == "done"


def test_a_reply_that_nobody_awaits_is_closed_without_complaint():
    async def tool():
        raise AssertionError("It never runs.")

    class NoCoroutine:
        def __await__(self):
            raise AssertionError("It never runs.")

    PendingAnswer(awaitable=tool(), settle=lambda returned: None, give_up=bool).close()
    PendingAnswer(awaitable=NoCoroutine(), settle=lambda returned: None, give_up=bool).close()


# The permissions of the caller


class StrictBackend(BaseBackend):
    """As Nautobot and NetBox have it: takes the name of a permission apart before it answers."""

    def has_perm(self, user_obj, perm, obj=None):
        app_label, _, codename = perm.partition(".")
        action, _, model = codename.partition("_")
        if not (app_label and action and model):
            raise ValueError(f"Invalid permission name: {perm}")
        return False

    def get_all_permissions(self, user_obj, obj=None):
        raise NotImplementedError


STRICT = f"{__name__}.StrictBackend"
MODEL = "django.contrib.auth.backends.ModelBackend"


@pytest.mark.parametrize("backends", [[STRICT, MODEL], [MODEL, STRICT]])
def test_a_backend_is_never_asked_for_a_permission_without_a_name(
    settings, make_user, revision, backends
):
    settings.AUTHENTICATION_BACKENDS = backends
    client = CheckedClient(user=make_user("viewer", is_staff=True), revision=revision)

    answer = client.call_tool("echo", text="x")

    assert "viewer" in answer.text


@pytest.mark.parametrize("backends", [[MODEL], [MODEL, STRICT]])
def test_the_permissions_of_a_caller_who_came_a_moment_ago_are_not_read_again(
    settings, client, add_tool, django_assert_num_queries, backends
):
    settings.AUTHENTICATION_BACKENDS = backends

    def may_view(request) -> bool:
        """Say whether the caller may view orders."""
        return request.user.has_perm("shop.view_order")

    add_tool(may_view)
    client.call_tool("may_view")

    with django_assert_num_queries(0):
        answer = client.call_tool("may_view")

    assert answer.text == '{"result":true}'


@pytest.mark.parametrize(("is_superuser", "queries"), [(True, 0), (False, 2)])
def test_a_superuser_needs_no_permissions_and_anybody_else_reads_them_once(
    make_user, django_assert_num_queries, is_superuser, queries
):
    client = CheckedClient(user=make_user("ada", "view_order", is_superuser=is_superuser))
    principal = authenticate(build_request(client.scope("POST"), b""))

    with django_assert_num_queries(queries):
        callers = [own_copy(principal).user for _ in range(2)]
        may_view = [user.has_perm("shop.view_order") for user in callers]

    assert may_view == [True, True]
