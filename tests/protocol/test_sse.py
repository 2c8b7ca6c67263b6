from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.protocol.errors import INVALID_REQUEST, ProtocolError
from mcp_django.protocol.jsonrpc import encode_result
from mcp_django.protocol.sse import (
    KEEP_ALIVE,
    OPEN,
    encode_event,
    encode_priming,
    encode_retry,
    event_id,
    parse_event_id,
)
from tests.spec import requirement

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
STREAM = "s-0123456789abcdef"
streams = st.text(LETTERS, min_size=16, max_size=64)
numbers = st.integers(0, 10**18 - 1)


@requirement(
    "envelope:stream-headers",
    "resumption:event-ids",
    "resumption:priming-event",
    "resumption:retry",
)
@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (encode_event(b'{"a":1}'), b'event: message\ndata: {"a":1}\n\n'),
        (encode_event(b"{}", event_id="a.1"), b"id: a.1\nevent: message\ndata: {}\n\n"),
        (encode_event(b"/mcp", event="endpoint"), b"event: endpoint\ndata: /mcp\n\n"),
        (encode_priming("a.0"), b"id: a.0\ndata: \n\n"),
        (encode_retry(2500), b"retry: 2500\n\n"),
    ],
)
def test_a_frame_is_an_event_as_clients_read_it(frame, expected):
    assert frame == expected


@given(st.text())
def test_any_text_in_a_message_leaves_the_frame_whole(text):
    frame = encode_event(encode_result(text, {"text": text}), event_id="a.1")

    assert frame.count(b"\n") == 4
    assert b"\r" not in frame


@pytest.mark.parametrize("data", [b"a\nb", b"a\rb", b"\n"])
def test_data_with_a_line_break_is_refused_and_a_sign_of_life_is_a_comment(data):
    with pytest.raises(ValueError, match="one line"):
        encode_event(data)
    for sign in (KEEP_ALIVE, OPEN):
        assert (sign[:1], sign[-2:]) == (b":", b"\n\n")


# Ids of events


@requirement("resumption:event-ids")
@given(streams, numbers)
def test_an_id_names_the_stream_and_the_number(stream, number):
    assert parse_event_id(event_id(stream, number)) == (stream, number)


@given(st.text() | st.from_regex(r"[\w.-]{10,70}\.[-+ 0-9]{1,20}\n?"))
def test_any_text_is_an_id_of_ours_or_refused(text):
    try:
        found = event_id(*parse_event_id(text))
    except ProtocolError as error:
        code, found = error.code, text
    else:
        code = INVALID_REQUEST

    assert (code, found) == (INVALID_REQUEST, text)


@pytest.mark.parametrize(
    "text",
    [
        "", STREAM, f"{STREAM}.01", f"{STREAM}.1\n", f"{STREAM}.\u0661", f"{STREAM}.{10**18}",
        f"{STREAM[:15]}.1", f"{'a' * 65}.1", f"{STREAM}/../.1", f"{STREAM}.{'9' * 100_000}",
    ],
    ids=lambda text: repr(text[:30]),
)  # fmt: skip
def test_what_is_no_id_of_ours_is_refused_and_not_repeated(text):
    with pytest.raises(ProtocolError) as caught:
        parse_event_id(text)

    assert (caught.value.code, caught.value.status) == (INVALID_REQUEST, 400)
    assert len(caught.value.message) < 80
