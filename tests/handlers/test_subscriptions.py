"""resources/subscribe and unsubscribe, logging/setLevel, subscriptions/listen: what is refused."""

from __future__ import annotations

import pytest

import mcp_django as mcp
from mcp_django.models import CallRecord
from mcp_django.protocol.methods import LOG_LEVELS
from mcp_django.protocol.revisions import LEGACY, MODERN
from tests.clients import CheckedClient
from tests.shop.models import Order
from tests.spec import requirement

pytestmark = pytest.mark.django_db
SITE = "django://site"
COLLECTION = "django://objects/shop.order"
TOO_LONG = f"{COLLECTION}?search=" + "x" * 2048


@pytest.fixture(params=LEGACY, ids=lambda one: one.value)
def session(request, staff):
    """A client in a session."""
    client = CheckedClient(user=staff, revision=request.param, record=True)
    client.initialize()
    return client


@pytest.fixture
def modern(staff):
    return CheckedClient(user=staff, revision=MODERN[-1])


def subscribe(client, uri):
    return client.request("resources/subscribe", {"uri": uri})


def test_what_is_not_there_and_what_is_hidden_are_refused_alike(session, make_user):
    order = Order.objects.create(number="1")
    eve = CheckedClient(user=make_user("eve", is_staff=True), revision=session.revision)
    eve.initialize()
    hidden, missing = f"{COLLECTION}/{order.pk}", f"{COLLECTION}/{order.pk + 1}"

    refusals = [eve.failure("resources/subscribe", uri=uri) for uri in (hidden, missing)]

    assert {code for code, _ in refusals} == {-32002}
    assert len({message.replace(hidden, missing) for _, message in refusals}) == 1
    assert subscribe(session, hidden) == {}


@pytest.mark.parametrize("uri", ["", "x", "django://nothing", TOO_LONG, f"{COLLECTION}/0"])
def test_what_no_resource_has_for_a_uri_is_refused_and_recorded_as_denied(session, uri):
    code, _ = session.failure("resources/subscribe", uri=uri)

    record = CallRecord.objects.get()
    assert code == -32002
    assert (record.method, record.outcome) == ("resources/subscribe", "denied")


@requirement("subscriptions:unsubscribe")
@pytest.mark.parametrize("uri", [SITE, f"{COLLECTION}/1", "nothing", "x" * 10_000])
def test_unsubscribing_is_done_whatever_was_subscribed_to_and_tells_nothing(session, uri):
    assert session.request("resources/unsubscribe", {"uri": uri}) == {}


# Log messages


def told_levels(client):
    messages = client.exchange("tools/call", {"name": "speak", "arguments": {}})
    return [one["params"]["level"] for one in messages[:-1]]


@requirement("logging:levels", "logging:default-level")
@pytest.mark.parametrize("level", [None, *LOG_LEVELS])
def test_a_session_hears_of_its_own_level_or_that_of_the_site_and_what_is_more_urgent(
    session, add_tool, level
):
    def speak(ctx: mcp.Context) -> str:
        """Say something at each level."""
        for level in LOG_LEVELS:
            ctx.log(level, level)
        return "done"

    add_tool(speak)
    other = CheckedClient(token=session.token, revision=session.revision)
    other.initialize()
    if level is not None:
        assert session.request("logging/setLevel", {"level": level}) == {}

    assert told_levels(session) == list(LOG_LEVELS[LOG_LEVELS.index(level or "info") :])
    assert told_levels(other) == list(LOG_LEVELS[LOG_LEVELS.index("info") :])


# The modern era


def test_a_stream_subscribes_to_so_many_resources_and_no_more(modern, configure):
    configure(MAX_SUBSCRIPTIONS=2)
    wishes = {"resourceSubscriptions": [SITE, COLLECTION, "x"]}

    refusal = modern.failure("subscriptions/listen", notifications=wishes)

    assert refusal == (-32602, "A stream subscribes to 2 resources at most.")
