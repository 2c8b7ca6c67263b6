from __future__ import annotations

from decimal import Decimal

import pytest
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

import mcp_django as mcp
from mcp_django.principal import Principal
from mcp_django.protocol.revisions import Revision
from tests.spec import requirement


@pytest.fixture
def sent():
    return []


@pytest.fixture
def make_context(sent):
    def make(**attributes):
        return mcp.Context(
            request=HttpRequest(),
            principal=Principal(user=None, scopes=frozenset(), method="test"),
            revision=Revision.V2026_07_28,
            notify=sent.append,
            **attributes,
        )

    return make


def test_progress_reaches_the_client_that_gave_a_token(make_context, sent):
    make_context(progress_token="t").progress(1, total=3, message="first")

    assert [one.params for one in sent] == [
        {"progressToken": "t", "progress": 1, "total": 3, "message": "first"}
    ]
    assert sent[0].method == "notifications/progress"
    make_context().progress(1)
    assert len(sent) == 1


@requirement("progress:token")
def test_progress_that_does_not_rise_is_dropped(make_context, sent):
    context = make_context(progress_token=0)

    for value in (1, 1, 0.5, 2):
        context.progress(value)

    assert [one.params["progress"] for one in sent] == [1, 2]


def test_a_cancelled_call_ends_where_it_looks(make_context, sent):
    context = make_context(progress_token="t", log_level="debug")
    context.cancelled.set()

    with pytest.raises(mcp.Cancelled):
        context.progress(1)
    with pytest.raises(mcp.Cancelled):
        context.check()
    context.log("error", "x")
    assert sent == []


def test_progress_is_a_number_whatever_the_tool_counts_with(make_context, sent):
    context = make_context(progress_token="t")

    context.progress(Decimal("0.5"), total=float("inf"), message=gettext_lazy("Half") + "\ud800")
    context.progress(2**70, total=2**70)
    for value in (float("nan"), float("inf"), 10**400):
        context.progress(value)

    assert [one.params for one in sent] == [
        {"progressToken": "t", "progress": 0.5, "message": "Half?"},
        {"progressToken": "t", "progress": float(2**70), "total": float(2**70)},
    ]


# Log messages


@requirement("logging:levels")
def test_log_messages_reach_a_client_that_wants_their_level(make_context, sent):
    context = make_context(log_level="warning")

    for level in ("debug", "notice", "warning", "emergency"):
        context.log(level, level)
    context.log("error", "x", logger="shop" * 50)

    assert [one.params for one in sent] == [
        {"level": "warning", "data": "warning"},
        {"level": "emergency", "data": "emergency"},
        {"level": "error", "data": "x", "logger": ("shop" * 50)[:80]},
    ]
    assert sent[0].method == "notifications/message"


@requirement("logging:opt-in")
def test_a_client_that_wants_no_log_messages_gets_none(make_context, sent):
    make_context().log("emergency", "Fire")

    assert sent == []


def test_a_level_that_there_is_not_is_a_mistake_also_where_nobody_listens(make_context):
    with pytest.raises(KeyError):
        make_context().log("loud", "Fire")
