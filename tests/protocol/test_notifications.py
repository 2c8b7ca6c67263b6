"""What this server says without being asked, in the words of each revision."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.protocol.methods import LOG_LEVELS
from mcp_django.protocol.render import (
    acknowledged,
    cancelled,
    list_changed,
    log_message,
    notification,
    progress,
    resource_updated,
    with_subscription,
)
from mcp_django.protocol.revisions import LEGACY, MODERN, Era, Revision
from tests.oracle import SUBSCRIBED, assert_valid_message
from tests.spec import requirement

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
URI = "django://objects/shop.order/1"


def wire(one, revision):
    """What a peer of this revision reads, after the official models have."""
    if revision.era is Era.MODERN and one.method in SUBSCRIBED:
        one = with_subscription(one, 1)
    body = notification(one, revision)
    assert_valid_message(revision, one.method, body)
    return json.loads(body)


def without_meta(params):
    return {name: value for name, value in params.items() if name != "_meta"}


LISTS = ("tools", "prompts", "resources")
BOTH, OLD, NEW = list(Revision), list(LEGACY), list(MODERN)
SAID = [
    (BOTH, resource_updated(URI), "resources/updated", {"uri": URI}),
    *((BOTH, list_changed(name), f"{name}/list_changed", {}) for name in LISTS),
    *(
        (BOTH, log_message(level, [1], logger=""), "message", {"level": level, "data": [1]})
        for level in LOG_LEVELS
    ),
    (
        BOTH,
        log_message("info", {"message": "half"}, logger="shop"),
        "message",
        {"level": "info", "data": {"message": "half"}, "logger": "shop"},
    ),
    (
        BOTH,
        progress("t", 0, total=2.5),
        "progress",
        {"progressToken": "t", "progress": 0, "total": 2.5},
    ),
    (BOTH, progress(0, 7), "progress", {"progressToken": 0, "progress": 7}),
    *(
        (OLD, cancelled(number, reason="No."), "cancelled", {"requestId": number, "reason": "No."})
        for number in ("abc", 7)
    ),
    *(
        (NEW, acknowledged(honoured), "subscriptions/acknowledged", {"notifications": honoured})
        for honoured in (
            {},
            {"toolsListChanged": True},
            {"promptsListChanged": True, "resourcesListChanged": True},
            {"resourceSubscriptions": []},
            {"resourceSubscriptions": [URI]},
        )
    ),
]


@requirement("subscriptions:acknowledged")
@pytest.mark.parametrize(("revisions", "one", "method", "params"), SAID)
def test_a_notification_says_so_much_and_no_more(revisions, one, method, params):
    for revision in revisions:
        read = wire(one, revision)

        assert read["method"] == f"notifications/{method}"
        assert without_meta(read["params"]) == params


@requirement("subscriptions:id")
@pytest.mark.parametrize(
    "one",
    [acknowledged({}), list_changed("tools"), resource_updated(URI)],
    ids=lambda one: one.method,
)
@pytest.mark.parametrize("subscription", [7, "7", "", 0], ids=repr)
def test_a_message_of_a_subscription_names_it_in_the_type_of_the_requests_id(one, subscription):
    body = notification(with_subscription(one, subscription), MODERN[-1])

    assert_valid_message(MODERN[-1], one.method, body)
    found = json.loads(body)
    named = found["params"]["_meta"][SUBSCRIPTION]
    assert (named, type(named)) == (subscription, type(subscription))
    assert found["params"].keys() - {"_meta"} == one.params.keys()


def test_a_message_of_a_subscription_keeps_what_else_its_meta_says():
    one = with_subscription(with_subscription(list_changed("tools"), 1), 2)
    one.params["_meta"]["a"] = 1

    assert with_subscription(one, 3).params["_meta"] == {SUBSCRIPTION: 3, "a": 1}
    assert one.params["_meta"] == {SUBSCRIPTION: 2, "a": 1}


@requirement("progress:message")
def test_progress_loses_its_words_where_the_revision_has_none(revision):
    params = wire(progress("t", 1, message="half"), revision)["params"]

    assert ("message" in params) is revision.features.progress_message


@given(st.text(), st.sampled_from(list(Revision)))
def test_any_uri_travels_unchanged_and_on_one_line(uri, revision):
    body = notification(resource_updated(uri), revision)

    assert json.loads(body)["params"] == {"uri": uri}
    assert not set(b"\r\n") & set(body)
