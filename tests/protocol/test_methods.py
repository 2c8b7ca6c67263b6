from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types.methods import CLIENT_REQUESTS

from mcp_django.protocol.errors import INVALID_PARAMS, METHOD_NOT_FOUND, ProtocolError
from mcp_django.protocol.methods import LOG_LEVELS, METHODS, Wishes, parse_params, served
from mcp_django.protocol.revisions import Era
from tests.spec import requirement

BOTH = {f"{name}/list" for name in ("tools", "resources", "resources/templates", "prompts")}
BOTH |= {"tools/call", "resources/read", "prompts/get", "completion/complete"}
#: What needs a stream, or a session that has one.
STREAMED = {
    Era.LEGACY: {"resources/subscribe", "resources/unsubscribe", "logging/setLevel"},
    Era.MODERN: {"subscriptions/listen"},
}
SERVED = {Era.LEGACY: BOTH | {"initialize", "ping"}, Era.MODERN: BOTH | {"server/discover"}}
NAMES = {name for name, _ in CLIENT_REQUESTS} | {"", "rpc.discover", "tools/List", "x" * 10_000}


def wishing(**wishes):
    """The params of a subscription."""
    return {"notifications": wishes}


@requirement("jsonrpc:unknown-method", "envelope:method-not-found", "envelope:removed-methods")
@pytest.mark.parametrize("name", sorted(NAMES))
@pytest.mark.parametrize("streams", [True, False], ids=["streams", "no streams"])
def test_a_method_is_served_in_its_eras_and_where_there_is_what_it_needs(revision, name, streams):
    expected = SERVED[revision.era] | (STREAMED[revision.era] if streams else set())

    if name in expected:
        assert served(name, revision, streams=streams) is METHODS[name]
    else:
        with pytest.raises(ProtocolError) as caught:
            served(name, revision, streams=streams)
        # An unknown method is 404 since 2026-07-28; before, errors ride on 200.
        status = 404 if revision.era is Era.MODERN else 200
        assert (caught.value.code, caught.value.status) == (METHOD_NOT_FOUND, status)
        assert len(caught.value.message) < 120


@pytest.mark.parametrize("name", METHODS)
def test_a_served_method_exists_in_the_revision_that_serves_it(revision, name):
    if revision.era in METHODS[name].eras:
        assert (name, revision.value) in CLIENT_REQUESTS


@requirement("jsonrpc:invalid-params")
@pytest.mark.parametrize(
    ("method", "params", "member"),
    [
        *(("tools/call", params, "name") for params in ({}, {"name": 1})),
        *(("tools/call", {"name": "a", "arguments": sent}, "arguments") for sent in ([], "{}")),
        *(("resources/read", params, "uri") for params in ({}, {"uri": ["a"]})),
        ("tools/list", {"cursor": 1}, "cursor"),
        ("resources/list", {"cursor": {}}, "cursor"),
        ("resources/templates/list", {"cursor": False}, "cursor"),
        ("resources/subscribe", {"uri": None}, "uri"),
        ("resources/unsubscribe", {"uri": 1}, "uri"),
        ("logging/setLevel", {}, "level"),
        *(("logging/setLevel", {"level": level}, "level") for level in ("trace", "INFO")),
        ("subscriptions/listen", {}, "notifications"),
        ("subscriptions/listen", {"notifications": ["toolsListChanged"]}, "notifications"),
        *(
            ("subscriptions/listen", wishing(**{f"{name}ListChanged": wish}), f"{name}ListChanged")
            for name, wish in (("tools", 1), ("prompts", "true"), ("resources", None))
        ),
        *(
            ("subscriptions/listen", wishing(resourceSubscriptions=wish), "resourceSubscriptions")
            for wish in ("a", [1])
        ),
    ],
)
def test_params_of_another_shape_are_refused_and_the_member_is_named(method, params, member):
    with pytest.raises(ProtocolError, match=member) as caught:
        parse_params(method, params)

    assert (caught.value.code, caught.value.status) == (INVALID_PARAMS, 200)


@requirement("logging:levels", "tasks:removed")
@pytest.mark.parametrize(
    ("method", "params", "read"),
    [
        *(
            ("tools/list", params, {"cursor": None})
            for params in ({}, {"cursor": None}, {"_meta": {}, "x": 1})
        ),
        ("tools/list", {"cursor": ""}, {"cursor": ""}),
        ("tools/call", {"name": "a"}, {"name": "a", "arguments": None}),
        ("tools/call", {"name": "a", "task": {}, "arguments": {}}, {"name": "a", "arguments": {}}),
        *(("logging/setLevel", {"level": level}, {"level": level}) for level in LOG_LEVELS),
        (
            "subscriptions/listen",
            wishing(toolsListChanged=True, unknown=7),
            {"notifications": Wishes(toolsListChanged=True)},
        ),
        (
            "subscriptions/listen",
            wishing(resourceSubscriptions=["a", "b"]),
            {"notifications": Wishes(resourceSubscriptions=["a", "b"])},
        ),
    ],
)
def test_params_say_what_they_name_and_nothing_else(method, params, read):
    parsed = parse_params(method, params)

    assert {name: getattr(parsed, name) for name in read} == read
    assert len(set(LOG_LEVELS)) == 8


@given(
    st.sampled_from(sorted(METHODS)),
    st.dictionaries(
        st.sampled_from(["name", "uri", "cursor", "arguments", "level", "notifications"]),
        st.none() | st.integers() | st.text() | st.dictionaries(st.text(), st.integers()),
    ),
)
def test_any_params_are_read_or_refused_with_a_protocol_error(method, params):
    try:
        parse_params(method, params)
    except ProtocolError as error:
        code = error.code
    else:
        code = INVALID_PARAMS

    assert code == INVALID_PARAMS
