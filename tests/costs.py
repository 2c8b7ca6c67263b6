"""The cost of a call, whatever else the machine does: its SQL, and calls of our functions."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

import mcp_django
from mcp_django.auth import authenticate
from mcp_django.stores.cache_version import generations
from tests.clock import Clock

PACKAGE = f"{Path(mcp_django.__file__).parent}/"


def cost_of(client, tool, arguments):
    """The SQL of a call that was made before, and how often it calls functions of ours.

    What is remembered for a second is remembered in both.
    """
    with pytest.MonkeyPatch.context() as patch:
        for memory in (authenticate.cache, generations):
            patch.setattr(memory, "clock", Clock())
        client.call_tool(tool, **arguments)
        return measured(client, tool, arguments)


def measured(client, tool, arguments):
    calls = 0

    def count(frame, event, _):
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename.startswith(PACKAGE)

    earlier = sys.getprofile()
    with CaptureQueriesContext(connection) as queries:
        sys.setprofile(count)
        try:
            client.call_tool(tool, **arguments)
        finally:
            sys.setprofile(earlier)
    return [one["sql"] for one in queries], calls
