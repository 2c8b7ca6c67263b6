from __future__ import annotations

import pytest

from mcp_django.audit.records import COLUMNS, Writer
from mcp_django.models import CallRecord


@pytest.fixture
def make_end():
    """The columns of records that nobody has saved."""

    def make(target="echo", **changes):
        columns = {
            "kind": "tool",
            "principal": "default/user:1/test",
            "client": "test",
            "method": "tools/call",
            "outcome": "done",
            "bytes": 10,
        }
        record = CallRecord(target=target, **{**columns, **changes})
        return {name: getattr(record, name) for name in COLUMNS}

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
