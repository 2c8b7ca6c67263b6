from __future__ import annotations

import base64
from itertools import chain

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mcp.shared.inbound import mcp_param_headers

from mcp_django.protocol.errors import HEADER_MISMATCH, ProtocolError
from mcp_django.protocol.headers import (
    GREATEST_INTEGER,
    LONGEST_VALUE,
    Headers,
    check_params,
    decode_value,
    encode_params,
    encode_value,
    media_type,
    sent_params,
)
from tests.spec import requirement

JSON, SSE = "application/json", "text/event-stream"


@given(st.text())
@example(" a")
@example("a ")
@example("a\tb")
@example("\x7f")
@example("=?base64?YQ==?=")
@example("=?base64??=")
def test_any_text_survives_the_codec_as_printable_ascii_without_blanks_at_its_ends(text):
    value = encode_value(text)

    assert decode_value(value) == text
    assert value.isascii()
    assert value == "" or value.isprintable()
    assert value == value.strip()
    assert value in (text, f"=?base64?{base64.b64encode(text.encode()).decode()}?=")


@given(st.text(alphabet="=?base64QUJD/+ \t", max_size=24))
def test_any_value_decodes_or_raises_protocol_error(value):
    refused = set()
    try:
        decode_value(value)
    except ProtocolError as error:
        refused.add((error.code, error.status))

    assert refused <= {(HEADER_MISMATCH, 400)}


#: Each of these is what it says, and HTTP carries it.
LITERAL = ["get_record", "shop.order", "a b", "", "django://site?a=%20", "YQ==?="]
LITERAL += ["=?base64?YQ==", "=?BASE64?YQ==?=", "=?utf-8?b?YQ==?=", "x=?base64?YQ==?="]


@requirement("envelope:malformed-names")
@pytest.mark.parametrize("text", LITERAL)
def test_plain_text_and_half_of_the_markers_travel_as_they_are(text):
    assert encode_value(text) == decode_value(text) == text
    # Nothing stands between these.
    assert decode_value("=?base64?=") == "=?base64?="


@requirement("envelope:malformed-names")
@pytest.mark.parametrize(
    "value",
    [
        "caf\xe9",
        *(
            f"=?base64?{payload}?="
            for payload in ("YQ", "YQ=", "Y", "YR==", "YQ==YQ==", "Y Q==", "Y-_=", "####", "/w==")
        ),
        *(f"=?base64?{payload}?=" for payload in ("7aCA", "=", "YQ==\n", "caf\xe9")),
    ],
)
def test_what_is_neither_ascii_nor_canonical_base64_of_utf8_is_refused(value):
    with pytest.raises(ProtocolError) as caught:
        decode_value(value)

    assert (caught.value.code, caught.value.status) == (HEADER_MISMATCH, 400)


@requirement("http:header-case", "envelope:header-whitespace")
def test_names_are_matched_without_case_and_values_trimmed_and_each_line_counts():
    accepted = [(b"Accept", b"a/b"), (b"ACCEPT", b"c/d")]
    headers = Headers([(b"MCP-Method", b" \tTools/List \t"), *accepted, (b"x", b"")])

    assert headers.get("mcp-method") == "Tools/List"
    assert headers.count("accept") == 2
    assert headers.get("accept") == "a/b"
    assert headers.joined("accept") == "a/b, c/d"
    # An absent header is None, and an empty one is not.
    assert (headers.get("x"), headers.joined("x"), headers.count("x")) == ("", "", 1)
    assert (headers.get("y"), headers.joined("y"), headers.count("y")) == (None, None, 0)


@given(st.lists(st.tuples(st.binary(), st.binary())))
def test_any_bytes_are_headers(pairs):
    headers = Headers(pairs)

    for name, _ in pairs:
        assert headers.count(name.decode("latin-1").lower()) > 0


@pytest.mark.parametrize(
    "too_long",
    [[(b"x", b"y" * (LONGEST_VALUE + 1))], [(b"x", b"y" * LONGEST_VALUE)] * 8],
    ids=["value", "together"],
)
def test_nothing_is_read_behind_headers_that_are_too_long(too_long):
    behind = iter([(b"x", b"y")] * 3)

    headers = Headers(chain(too_long, behind))

    assert headers.are_too_long
    assert len(list(behind)) == 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("application/json", JSON),
        ("Application/JSON; charset=utf-8", JSON),
        (" application/json ;a=b;c", JSON),
        ("application/jsonp", "application/jsonp"),
        ("text/plain, application/json", "text/plain, application/json"),
        ("", ""),
    ],
)
def test_a_media_type_is_told_without_its_parameters(value, expected):
    assert media_type(value) == expected


# Headers that repeat arguments

EXPECTED = {("region",): "Region", ("page", "size"): "Size", ("dry",): "Dry-Run"}


def encoded(text):
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def sent(*pairs):
    return sent_params(Headers((name.encode(), value.encode("latin-1")) for name, value in pairs))


def refused(arguments, *pairs):
    """The sentence of the refusal, or None."""
    try:
        check_params(sent(*pairs), arguments, EXPECTED)
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
        ({"region": "eu?="}, "Mcp-Param-Region", "eu?="),
        ({"page": {"size": 42}}, "Mcp-Param-Size", "42.0"),
        ({"page": {"size": 42.0}}, "Mcp-Param-Size", "42"),
        ({"page": {"size": GREATEST_INTEGER}}, "Mcp-Param-Size", str(GREATEST_INTEGER)),
        ({"page": {"size": 42}}, "Mcp-Param-Size", encoded("42")),
        ({"dry": True}, "Mcp-Param-Dry-Run", "true"),
    ],
)
def test_a_header_that_repeats_its_argument_is_accepted(arguments, name, value):
    assert refused(arguments, (name, value)) is None


@requirement("parameter-headers:equal")
@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        *(
            ({"region": "eu"}, "Mcp-Param-Region", value)
            for value in ("us", "EU", "", "=?base64?ZX!1?=", "=?base64?ZXV=?=")
        ),
        ({"region": "eu"}, "Mcp-Param-Other", "eu"),
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


def test_what_no_header_can_say_is_left_to_the_schema_and_a_refusal_names_no_value():
    assert refused({"region": ["eu"], "page": {"size": {}}}) is None
    assert refused({"region": ["eu"]}, ("Mcp-Param-Region", "eu"))
    sentence = refused({"page": {"size": 5}}, ("Mcp-Param-Size", "6"))
    assert sentence == "Mcp-Param-Size must repeat the argument page.size."


def test_a_header_that_stands_twice_is_refused_even_if_both_agree_unless_no_tool_knows_it():
    pair, unknown = ("Mcp-Param-Region", "eu"), ("Mcp-Param-Tenant", "=?base64?broken?=")

    assert "more than once" in refused({"region": "eu"}, pair, pair)
    assert "more than once" in refused({}, pair, pair)
    assert refused({}, unknown, unknown) is None
    assert sent(("Authorization", "Bearer x"), ("Mcp-Name", "y"), unknown) == {
        "mcp-param-tenant": [unknown[1]]
    }


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
