"""What is announced against what is served."""

from __future__ import annotations

from mcp_django.protocol.errors import ProtocolError
from mcp_django.protocol.methods import served
from mcp_django.protocol.render import ServerInfo, render
from mcp_django.protocol.results import DiscoverResult, InitializeResult
from mcp_django.protocol.revisions import LATEST_LEGACY, Era, Revision
from tests.spec import requirement

SERVER = ServerInfo(name="Shop", version="1")
#: The method without which a capability would be an empty word.
METHOD_OF = {
    "completions": "completion/complete",
    "logging": "logging/setLevel",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "tools": "tools/list",
}


def announced(revision):
    """The names of the capabilities that a client of this revision is told of."""
    is_modern = revision.era is Era.MODERN
    result = DiscoverResult() if is_modern else InitializeResult(protocol_version=revision.value)
    return set(render(result, revision, SERVER)["capabilities"])


def told_of_changes(revision, *, streams):
    """The lists and the resources whose changes a client is told that it can hear of."""
    server = ServerInfo(name="Shop", version="1", streams=streams)
    found = server.capabilities(revision.features)
    lists = {name for name, one in found.items() if one.get("listChanged")}
    return lists | ({"one resource"} if found["resources"].get("subscribe") else set())


def is_served(method, revision, *, streams=True):
    try:
        served(method, revision, streams=streams)
    except ProtocolError:
        return False
    return True


@requirement(
    "discovery:capabilities-served",
    "lifecycle:capabilities-served",
    "lifecycle:completions-capability",
    "tools:capability",
)
def test_what_is_served_is_announced_and_nothing_else(revision):
    expected = {name for name, method in METHOD_OF.items() if is_served(method, revision)}
    if revision.era is Era.MODERN:
        # A level comes with each request, so that no method sets one.
        expected.add("logging")
    if not revision.features.completions_capability:
        expected.discard("completions")

    assert "tools" in expected
    assert announced(revision) == expected


def test_changes_are_announced_where_a_method_asks_for_them_and_a_stream_tells_of_them(revision):
    method = "subscriptions/listen" if revision.era is Era.MODERN else "resources/subscribe"

    assert is_served(method, revision)
    assert not is_served(method, revision, streams=False)
    everything = {"tools", "resources", "prompts", "one resource"}
    assert told_of_changes(revision, streams=True) == everything
    assert told_of_changes(revision, streams=False) == set()


@requirement("discovery:same-features")
def test_discovery_and_the_newest_handshake_announce_the_same():
    assert announced(Revision.V2026_07_28) == announced(LATEST_LEGACY)
