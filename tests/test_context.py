from __future__ import annotations

import pytest
from django.http import HttpRequest

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


def test_progress_without_a_token_is_not_sent(make_context, sent):
    make_context().progress(1)

    assert sent == []


@requirement("progress:token")
def test_progress_that_does_not_rise_is_dropped(make_context, sent):
    context = make_context(progress_token=0)

    for value in (1, 1, 0.5, 2):
        context.progress(value)

    assert [one.params["progress"] for one in sent] == [1, 2]


def test_a_cancelled_call_ends_where_it_looks(make_context, sent):
    context = make_context(progress_token="t")
    context.cancelled.set()

    with pytest.raises(mcp.Cancelled):
        context.progress(1)
    with pytest.raises(mcp.Cancelled):
        context.check()
    assert sent == []
