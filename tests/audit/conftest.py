from __future__ import annotations

import pytest

from mcp_django.audit.records import Writer
from mcp_django.models import CallRecord


@pytest.fixture
def make_end():
    """Records that nobody has saved."""

    def make(target="echo", **changes):
        columns = {
            "kind": "tool",
            "principal": "default/user:1/test",
            "client": "test",
            "method": "tools/call",
            "outcome": "done",
            "bytes": 10,
        }
        return CallRecord(target=target, **{**columns, **changes})

    return make


@pytest.fixture
def make_writer():
    made = []

    def make(**options):
        writer = Writer(**{"gather": 0.01, "pauses": (0.01,), **options})
        made.append(writer)
        return writer

    yield make
    for writer in made:
        writer.close()
