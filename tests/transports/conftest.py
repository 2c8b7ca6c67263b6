from __future__ import annotations

from functools import partial

import pytest

import mcp_django as mcp
from mcp_django.audit.records import Gathered, records
from mcp_django.auth import resource
from mcp_django.transports.calls.lanes import lanes
from tests.transports.session_client import SessionClient
from tests.transports.wire import Gate


@pytest.fixture(autouse=True)
def where_the_endpoint_is(no_application_says_where_the_endpoint_is):
    resource.routed_to("/mcp")


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.open()


@pytest.fixture
def configure(settings):
    def set_some(**changes):
        settings.MCP_DJANGO = {**settings.MCP_DJANGO, **changes}

    return set_some


@pytest.fixture
def fresh_lanes():
    """Lanes of a size that the test sets, ended behind it."""
    lanes.close()
    yield lanes
    lanes.close()


@pytest.fixture
def patient(add_tool, gate):
    """A tool that waits at the gate, and what it found when it went on."""
    found = []

    def patient(ctx: mcp.Context) -> str:
        """Wait."""
        gate.wait()
        found.append(ctx.cancelled.is_set())
        return "done"

    add_tool(patient)
    return found


@pytest.fixture
def party(client):
    """Begin a session of the client, in any legacy revision."""
    return partial(SessionClient.begin, client)


@pytest.fixture
def gathered():
    """The records of calls, in place of the table."""
    gathered = Gathered()
    with records.using(gathered):
        yield gathered
