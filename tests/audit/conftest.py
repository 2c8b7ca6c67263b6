from __future__ import annotations

import time

import pytest
from django.utils import timezone

from mcp_django.audit.ends import End
from mcp_django.audit.entries import Entry
from mcp_django.audit.writer import Writer
from mcp_django.models import CallRecord


@pytest.fixture
def make_entry():
    def make(target="echo", **changes):
        entry = Entry(
            server="default",
            at=timezone.now(),
            kind="tool",
            principal="default/user:1/test",
            user_id=None,
            client="test",
            method="tools/call",
            target=target,
            outcome="done",
            milliseconds=1,
            rows=None,
            bytes=10,
            correlation_id="",
            arguments=None,
        )
        return entry._replace(**changes)

    return make


@pytest.fixture
def make_end():
    def make(target="echo", **changes):
        end = End(
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
