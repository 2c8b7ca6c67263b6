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


@requirement("progress:token")
def test_progress_is_a_number_that_rises_whatever_the_tool_counts_with(make_context, sent):
    context = make_context(progress_token="t")

    context.progress(Decimal("0.5"), total=float("inf"), message=gettext_lazy("Half") + "\ud800")
    context.progress(2**70, total=2**70)
    for value in (2**70, 1, float("nan"), float("inf"), 10**400):
        context.progress(value)

    assert [one.params for one in sent] == [
        {"progressToken": "t", "progress": 0.5, "message": "Half?"},
        {"progressToken": "t", "progress": float(2**70), "total": float(2**70)},
    ]


def test_a_log_message_has_a_level_that_there_is_and_is_for_whoever_waits(make_context, sent):
    context = make_context(log_level="debug")
    context.cancelled.set()

    context.log("error", "x")

    assert sent == []
    with pytest.raises(KeyError):
        make_context().log("loud", "Fire")
