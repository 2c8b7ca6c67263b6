"""What a client may read of the data in log messages."""

from __future__ import annotations

import enum
import json
from datetime import date
from decimal import Decimal

import pytest
from django.utils.translation import gettext_lazy
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.audit.entries import OF_LOGS, log_data
from mcp_django.protocol.jsonrpc import encoder
from tests.spec import requirement


class Level(enum.IntEnum):
    HIGH = 4


class Silent:
    def __str__(self):
        raise ValueError


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("text", "text"),
        (None, None),
        (True, True),
        (3, 3),
        (Level.HIGH, 4),
        (2**60, str(2**60)),
        (0.5, 0.5),
        (float("nan"), "nan"),
        (Decimal("1.50"), "1.50"),
        (date(2026, 1, 2), "2026-01-02"),
        (gettext_lazy("Yes"), "Yes"),
        ((1, {2}), [1, [2]]),
        ({1: {"a": [None]}}, {"1": {"a": [None]}}),
        ("\ud800", "?"),
        (Silent(), "Silent"),
        ("x" * 3000, "x" * 1999 + "…"),
        (list(range(60)), [*range(50), {"…": 10}]),
        ({str(n): n for n in range(51)}, {**{str(n): n for n in range(50)}, "…": 1}),
        ([[[[[[["deep"]]]]]]], [[[[[["…"]]]]]]),
    ],
)
def test_data_is_told_as_json_can_say_it(data, shown):
    assert log_data(data) == shown


@requirement("logging:secrets")
@pytest.mark.parametrize(
    "data",
    [
        {"password": "hunter2"},
        {"user": [{"apiKey": "hunter2"}]},
        "Authorization: Basic hunter2",
        ["Bearer hunter2"],
        {"Authorization": "Basic hunter2"},
        {"a": {"Bearer hunter2": 1}},
    ],
)
def test_credentials_are_not_told(data):
    found = json.dumps(log_data(data))

    assert "hunter2" not in found
    assert "[redacted]" in found


def test_all_of_it_has_a_limit():
    found = log_data({str(n): "x" * 1000 for n in range(40)})

    assert found.startswith('{"0": "xxx')
    assert len(found) == OF_LOGS.whole + 1


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
        max_leaves=20,
    )
)
def test_anything_can_be_encoded(data):
    encoder.encode(log_data(data))
