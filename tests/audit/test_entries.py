from __future__ import annotations

import enum
import json
from datetime import date
from decimal import Decimal

import pytest
from django.utils.translation import gettext_lazy
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.audit.entries import OF_LOGS, OF_RECORDS, line, log_data, redacted
from mcp_django.protocol.jsonrpc import encoder

TOKEN = "mcp_" + "a1B2" * 11 + "zzzzz"
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=12,
)


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_any_text_becomes_one_printable_line_of_that_length(text, most):
    found = line(text, most)

    assert found.isprintable()
    assert len(found) <= most
    if text.isprintable() and len(text) <= most:
        assert found == text


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_any_arguments_become_json_that_every_database_takes(arguments):
    text = json.dumps(redacted(arguments), ensure_ascii=False, allow_nan=False)

    assert len(text) <= 2 * OF_RECORDS.whole
    assert "\\u0000" not in text
    text.encode()


SECRET_NAMES = (
    *("password", "new_password", "password__startswith", "apiKey", "api-key", "accessToken"),
    *("token", "client_secret", "Authorization", "confirmation", "PIN"),
)


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_values_whose_names_look_secret_are_not_kept_however_deep(name):
    hidden = {"deep": [{"er": {name: "hunter2"}}], name: ["hunter2"]}
    hidden["as text"] = json.dumps({"values": json.dumps({name: "hunter2"})})
    assert redacted({"text": '["a", 1]'}) == {"text": '["a", 1]'}

    assert "hunter2" not in json.dumps(redacted({"arguments": hidden, name: {"x": "hunter2"}}))


def test_credentials_are_found_in_texts_even_where_they_are_cut():
    found = redacted({"note": f"Use {TOKEN}.", "late": "x" * 180 + f" Bearer {TOKEN}"})

    for name in ("keyboard", "monkey", "number", "tokens_left_of_it"):
        assert redacted({name: "kept"}) == {name: "kept"}
    assert TOKEN[:20] not in json.dumps(found)
    assert found["note"] == "Use [redacted]."


def test_what_is_large_is_cut():
    found = redacted(
        {
            "text": "x" * 1_000_000,
            "rows": list(range(10_000)),
            "number": 10**400,
            "deep": {"a": {"b": {"c": {"d": {"e": {"f": 1}}}}}},
            **{f"filler {at}": at for at in range(60)},
        }
    )

    assert len(found["text"]) == 200
    assert found["rows"] == [*range(50), {"…": 9950}]
    assert found["number"] == "1" + "0" * 198 + "…"
    assert found["deep"] == {"a": {"b": {"c": {"d": {"e": "…"}}}}}
    assert found["…"] == 14


@pytest.mark.parametrize(("cut", "limits"), [(redacted, OF_RECORDS), (log_data, OF_LOGS)])
def test_all_together_are_no_longer_than_a_row_and_a_model_can_bear(cut, limits):
    found = cut({f"name {at}": ["y" * 300] * 20 for at in range(20)})

    assert found.startswith('{"name 0": ["yyy')
    assert len(found) == limits.whole + 1


# What a client may read of the data in log messages


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


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
        max_leaves=20,
    )
)
def test_anything_can_be_encoded(data):
    encoder.encode(log_data(data))
