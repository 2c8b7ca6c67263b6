from __future__ import annotations

from threading import Event

import pytest
from django.contrib.auth.backends import BaseBackend

from mcp_django.protocol.revisions import Revision
from mcp_django.testing import ProtocolFailure
from mcp_django.transports.exchanges import run_async
from tests.clients import CheckedClient
from tests.spec import requirement

pytestmark = pytest.mark.django_db

# Refusals of the whole request


@requirement("security:closed")
def test_a_site_without_authenticators_serves_nobody_and_tells_only_its_log(configure, caplog):
    configure(AUTHENTICATORS=[])

    answer = CheckedClient().post(b'{"jsonrpc":"2.0","id":3,"method":"ping"}')

    assert answer.status == 503
    assert answer.messages[0]["id"] == 3
    assert b"AUTHENTICATORS" not in answer.body
    assert "AUTHENTICATORS" in caplog.text


@requirement("tools:validation")
def test_too_many_calls_are_told_when_to_come_back_and_each_of_a_batch_is_one(
    client, make_client, configure, clock
):
    configure(CALLS_PER_MINUTE=3)
    batching = CheckedClient(token=client.token, revision=Revision.V2025_03_26)
    client.call_tool("echo", text="x")
    clock.now += 15

    # To ask again prolongs no waiting.
    answers = [batching.post([batching.message("ping") for _ in range(3)]) for _ in range(2)]
    with pytest.raises(ProtocolFailure) as raised:
        client.call_tool("echo", text="x")

    assert [(one.status, one.headers["retry-after"]) for one in answers] == [(429, "45")] * 2
    assert raised.value.status == 429
    assert make_client().list_tools()
    clock.now += 45
    assert client.list_tools()


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {}, 400),
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (b'{"jsonrpc":"2.0","method":"x"}', {"Mcp-Session-Id": "unknown"}, 404),
    ],
    ids=["body", "type", "session"],
)
def test_requests_that_are_refused_count_as_calls(client, configure, body, headers, status):
    configure(CALLS_PER_MINUTE=1)
    legacy = {"MCP-Protocol-Version": Revision.V2025_11_25.value, **headers}

    first, second = [client.post(body, headers=legacy) for _ in range(2)]

    assert (first.status, second.status) == (status, 429)
    assert int(second.headers["retry-after"]) > 0


# Async tools where no loop of ours can take them


def test_a_coroutine_that_was_done_all_the_same_has_its_result():
    cancelled = Event()

    async def finish():
        cancelled.set()
        return "done"

    assert run_async(finish(), cancelled) == "done"


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


@pytest.mark.parametrize("backends", [[MODEL], [MODEL, STRICT], [STRICT, MODEL]])
def test_a_backend_is_asked_once_in_a_while_and_for_no_permission_without_a_name(
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
