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


def is_served(method, revision):
    try:
        served(method, revision)
    except ProtocolError:
        return False
    return True


@requirement("discovery:capabilities-served", "lifecycle:capabilities-served", "tools:capability")
def test_what_is_served_is_announced_and_nothing_else(revision):
    expected = {name for name, method in METHOD_OF.items() if is_served(method, revision)}
    if not revision.features.completions_capability:
        expected.discard("completions")

    assert "tools" in expected
    assert announced(revision) == expected


@requirement("discovery:same-features")
def test_discovery_and_the_newest_handshake_announce_the_same():
    assert announced(Revision.V2026_07_28) == announced(LATEST_LEGACY)
