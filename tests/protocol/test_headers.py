from __future__ import annotations

import base64
from itertools import chain

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_django.protocol.errors import HEADER_MISMATCH, ProtocolError
from mcp_django.protocol.headers import (
    LONGEST_VALUE,
    Headers,
    accepts,
    decode_value,
    encode_value,
    media_type,
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
LITERAL += [
    "=?base64?YQ==",
    "=?BASE64?YQ==?=",
    "=?utf-8?b?YQ==?=",
    "x=?base64?YQ==?=",
]


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
    headers = Headers(
        [
            (b"MCP-Method", b" \tTools/List \t"),
            (b"Accept", b"a/b"),
            (b"ACCEPT", b"c/d"),
            (b"x", b""),
        ]
    )

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


@requirement("http:accept-absent")
@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, True),
        ("*/*", True),
        (f"{JSON}, {SSE}", True),
        (f"{SSE},{JSON}", True),
        (f"{JSON.upper()};q=0.5, {SSE} ; q=0.001", True),
        ("application/*, text/*", True),
        (f"text/html, */*;q=0.1, {JSON};q=1.0", True),
        (f"{JSON}, {SSE}, */*;q=0", True),
        (f"{JSON};charset=utf-8, {SSE};q=1", True),
        ("", False),
        (JSON, False),
        (SSE, False),
        ("text/*", False),
        ("text/html", False),
        ("application/*", False),
        (f"{JSON}, {SSE};q=0", False),
        (f"{JSON}, {SSE}; Q = 0.000", False),
        (f"*/*, {JSON};q=0", False),
        (f"*/*, text/*;q=0, {JSON}", False),
        ("*/*;q=0", False),
        ("application/json+x, text/event-stream+x", False),
    ],
)
def test_accept_must_allow_every_wanted_type(header, expected):
    assert accepts(header, JSON, SSE) is expected


@given(st.text())
def test_any_accept_is_answered(header):
    assert accepts(header, JSON) in (True, False)
