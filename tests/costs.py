"""The cost of a call, whatever else the machine does: its SQL, and calls of our functions."""

from __future__ import annotations

import sys
from pathlib import Path

from django.db import connection
from django.test.utils import CaptureQueriesContext

import mcp_django

PACKAGE = f"{Path(mcp_django.__file__).parent}/"


def cost_of(client, tool, arguments):
    """The SQL of a call that was made before, and how often it calls functions of ours."""
    client.call_tool(tool, **arguments)
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
