from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import mcp_param_headers

from mcp_django.protocol.errors import HEADER_MISMATCH, ProtocolError
from mcp_django.protocol.headers import (
    GREATEST_INTEGER,
    Headers,
    check_params,
    encode_params,
    sent_params,
)
from tests.spec import requirement

EXPECTED = {("region",): "Region", ("page", "size"): "Size", ("dry",): "Dry-Run"}


def encoded(text):
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def headers(*pairs):
    return sent_params(Headers((name.encode(), value.encode("latin-1")) for name, value in pairs))


def refused(arguments, *pairs):
    """The sentence of the refusal, or None."""
    try:
        check_params(headers(*pairs), arguments, EXPECTED)
    except ProtocolError as caught:
        error = caught
    else:
        return None
    assert (error.code, error.status) == (HEADER_MISMATCH, 400)
    return error.message


@requirement("envelope:encoded-values", "parameter-headers:numbers")
@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        ({"region": "eu"}, "Mcp-Param-Region", "eu"),
        ({"region": "eu"}, "MCP-PARAM-REGION", " eu\t"),
        ({"region": "eu"}, "mcp-param-region", encoded("eu")),
        ({"region": "Zürich"}, "Mcp-Param-Region", encoded("Zürich")),
        ({"region": " eu"}, "Mcp-Param-Region", encoded(" eu")),
        ({"region": ""}, "Mcp-Param-Region", ""),
        ({"region": "=?base64?eu"}, "Mcp-Param-Region", "=?base64?eu"),
        ({"region": "eu?="}, "Mcp-Param-Region", "eu?="),
        ({"page": {"size": 42}}, "Mcp-Param-Size", "42"),
        ({"page": {"size": 42}}, "Mcp-Param-Size", "42.0"),
        ({"page": {"size": 42.0}}, "Mcp-Param-Size", "42"),
        ({"page": {"size": -7}}, "Mcp-Param-Size", "-7"),
        ({"page": {"size": GREATEST_INTEGER}}, "Mcp-Param-Size", str(GREATEST_INTEGER)),
        ({"page": {"size": 42}}, "Mcp-Param-Size", encoded("42")),
        ({"dry": True}, "Mcp-Param-Dry-Run", "true"),
        ({"dry": False}, "Mcp-Param-Dry-Run", "false"),
    ],
)
def test_a_header_that_repeats_its_argument_is_accepted(arguments, name, value):
    assert refused(arguments, (name, value)) is None


@requirement("parameter-headers:equal")
@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        ({"region": "eu"}, "Mcp-Param-Region", "us"),
        ({"region": "eu"}, "Mcp-Param-Region", "EU"),
        ({"region": "eu"}, "Mcp-Param-Region", ""),
        ({"region": "eu"}, "Mcp-Param-Other", "eu"),
        ({"region": "eu"}, "Mcp-Param-Region", "=?base64?ZX!1?="),
        ({"region": "eu"}, "Mcp-Param-Region", "=?base64?ZXV=?="),
        ({"region": "\xff"}, "Mcp-Param-Region", "\xff"),
        ({"region": "e\x01u"}, "Mcp-Param-Region", "e\x01u"),
        *(
            ({"page": {"size": 42}}, "Mcp-Param-Size", value)
            for value in (
                "43", "42.5", "4.2e1", "0x2a", "\u0664\u0662".encode().decode("latin-1"),
                encoded("\u0664\u0662"), "NaN", "1" * 5000,
            )
        ),
        ({"page": {"size": 2**53}}, "Mcp-Param-Size", str(2**53)),
        ({"page": {"size": 1e300}}, "Mcp-Param-Size", "1e300"),
        ({"page": {"size": 1}}, "Mcp-Param-Size", "true"),
        ({"dry": True}, "Mcp-Param-Dry-Run", "True"),
        ({"dry": True}, "Mcp-Param-Dry-Run", "1"),
        ({"dry": False}, "Mcp-Param-Dry-Run", "0"),
    ],
)  # fmt: skip
def test_a_header_that_says_something_else_is_refused(arguments, name, value):
    assert refused(arguments, (name, value))


@requirement("parameter-headers:required")
@pytest.mark.parametrize(
    "arguments", [{"region": "eu"}, {"region": ""}, {"page": {"size": 0}}, {"dry": False}]
)
def test_an_argument_that_is_given_needs_its_header(arguments):
    assert refused(arguments)


@requirement("parameter-headers:absent")
@pytest.mark.parametrize(
    "arguments",
    [{}, {"region": None}, {"page": None}, {"page": {}}, {"page": "x"}, {"page": {"size": None}}],
)
def test_an_absent_or_null_argument_needs_no_header_and_has_none(arguments):
    assert refused(arguments) is None

    for name, value in (("Region", "eu"), ("Region", ""), ("Size", "0")):
        assert refused(arguments, (f"Mcp-Param-{name}", value))


def test_what_no_header_can_say_is_left_to_the_schema():
    assert refused({"region": ["eu"], "page": {"size": {}}}) is None
    assert refused({"region": ["eu"]}, ("Mcp-Param-Region", "eu"))


def test_a_header_that_stands_twice_is_refused_even_if_both_agree_unless_no_tool_knows_it():
    pair, unknown = ("Mcp-Param-Region", "eu"), ("Mcp-Param-Tenant", "=?base64?broken?=")

    assert "more than once" in refused({"region": "eu"}, pair, pair)
    assert "more than once" in refused({}, pair, pair)
    assert refused({}, unknown, unknown) is None
    assert headers(("Authorization", "Bearer x"), ("Mcp-Name", "y"), unknown) == {
        "mcp-param-tenant": [unknown[1]]
    }


def test_the_sentence_names_header_and_argument_and_no_value():
    sentence = refused({"page": {"size": 5}}, ("Mcp-Param-Size", "6"))

    assert sentence == "Mcp-Param-Size must repeat the argument page.size."


SCALARS = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text()


@given(region=SCALARS, size=SCALARS, dry=SCALARS)
def test_what_a_client_encodes_is_what_the_server_accepts(region, size, dry):
    arguments = {"region": region, "page": {"size": size}, "dry": dry}
    ours = encode_params(arguments, EXPECTED)

    assert ours == mcp_param_headers(EXPECTED, arguments)
    assert refused(arguments, *ours.items()) is None


@given(st.dictionaries(st.sampled_from(["region", "page", "dry"]), SCALARS), st.text())
def test_any_header_agrees_or_raises_protocol_error(arguments, text):
    value = text.encode()[:200].decode("latin-1")

    assert refused(arguments, ("Mcp-Param-Region", value)) != ""
