from __future__ import annotations

import time

import pytest

from mcp_django.audit.entries import CallEnd
from mcp_django.audit.records import Writer
from mcp_django.models import CallRecord


@pytest.fixture
def make_end():
    def make(target="echo", **changes):
        end = CallEnd(
            server="default",
            at=time.time(),
            key="default/user:1/test",
            user_id=None,
            name="test",
            version=None,
            method="tools/call",
            target=target,
            outcome=CallRecord.Outcome.DONE,
            seconds=0.001,
            rows=None,
            bytes=10,
            correlation_id="",
            arguments=None,
        )
        return end._replace(**changes)

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
