"""The project's middleware runs when a stream is opened, and round each look at its rights. It may
hold a transaction round each request of a legacy session.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.cache import caches
from django.utils import timezone

from mcp_django.principal import DEFAULT_SERVER
from mcp_django.protocol.revisions import LEGACY, Revision
from mcp_django.stores.sessions import get_store
from mcp_django.subscriptions.outbox import publish
from mcp_django.subscriptions.topics import Change
from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient
from tests.transports.event_stream import changed, looked
from tests.transports.middlewares import seen

URI = "django://models/shop.order"


@pytest.fixture(
    params=[
        pytest.param(True, marks=pytest.mark.django_db, id="in the transaction of a test"),
        pytest.param(False, marks=pytest.mark.django_db(transaction=True), id="in threads"),
    ]
)
def connect(request, run, make_user, configure):
    """Clients of one member of the staff, who has begun no session. Those are in the database."""
    caches["database"].clear()
    configure(SESSION_CACHE="database")

    def make(revision=Revision.V2025_06_18):
        return CheckedClient(user=user, revision=revision, inline=request.param)

    run("in_transaction")
    user = make_user("staff", "view_order", is_staff=True)
    return make


def only_session():
    [session] = get_store().sessions()
    return session


def subscriptions():
    return get_store().subscriptions(only_session().key)


@pytest.mark.parametrize("legacy", LEGACY, ids=str)
def test_a_session_begins_is_used_and_ends(connect, legacy):
    client = connect(legacy)

    client.initialize()

    assert only_session().is_initialized
    long_ago = timezone.now() - timedelta(minutes=5)
    get_store().update_session(only_session().key, seen=long_ago)
    assert client.list_tools()
    assert only_session().seen > long_ago
    used = client.session
    client.end_session()
    assert get_store().sessions() == []
    client.session = used
    with pytest.raises(ProtocolFailure, match="Session not found"):
        client.list_tools()


def test_a_session_subscribes_up_to_its_limit_and_says_which_messages_it_wants(connect, configure):
    configure(MAX_SUBSCRIPTIONS=1)
    client = connect()
    client.initialize()

    for _ in range(2):
        client.request("resources/subscribe", {"uri": URI})
    client.request("logging/setLevel", {"level": "error"})
    with pytest.raises(ProtocolFailure, match="subscribes to 1 resources at most"):
        client.request("resources/subscribe", {"uri": "django://site"})

    assert subscriptions() == {URI}
    assert only_session().log_level == "error"
    client.request("resources/unsubscribe", {"uri": URI})
    client.request("resources/subscribe", {"uri": "django://site"})
    assert subscriptions() == {"django://site"}


@pytest.mark.thorough
def test_a_middleware_that_answers_with_its_own_page_begins_no_session(connect, run):
    run("Closing")

    with pytest.raises(ProtocolFailure, match="middleware refused"):
        connect().initialize()

    assert get_store().sessions() == []


# Streams


@pytest.mark.asyncio
@pytest.mark.django_db(transaction=True)
async def test_headers_of_middleware_are_those_of_the_stream(client, uri, run, listen):
    run("Header")

    stream = await listen(client, uri, toolsListChanged=True)

    assert stream.headers["x-site"] == "shop"
    assert stream.headers["content-type"] == "text/event-stream"


@pytest.mark.asyncio
@pytest.mark.django_db(transaction=True)
@pytest.mark.thorough
async def test_who_is_refused_by_middleware_today_is_told_nothing_today(client, uri, run, listen):
    run("Gatekeeper")
    stream = await listen(client, uri, toolsListChanged=True)
    seen.append("closed")
    publish({Change(topic="tools", server=DEFAULT_SERVER)})
    changed(uri)
    await looked()
    assert stream.outbox.empty()
    seen.remove("closed")

    changed(uri)

    assert (await stream.message())["params"].get("uri", uri) == uri


@pytest.mark.asyncio
@pytest.mark.django_db(transaction=True)
async def test_rights_and_the_credential_are_looked_at_within_the_tenant_of_the_stream(
    client, uri, run, staff, listen
):
    run("Tenant")
    stream = await listen(client, uri, headers={"X-Tenant": "north"})
    seen.clear()

    changed(uri)
    heard = await stream.message()
    tenants = set(seen)
    staff.is_active = False
    await staff.asave()
    changed(uri)

    assert heard["params"]["uri"] == uri
    assert tenants == {"north"}
    assert [message.get("id") for message in await stream.rest()] == [1]
