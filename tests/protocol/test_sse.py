from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.protocol.jsonrpc import encode_result
from mcp_django.protocol.sse import KEEP_ALIVE, encode_event
from tests.spec import requirement


@requirement("envelope:stream-headers")
def test_a_message_is_one_event_without_an_id():
    assert encode_event(b'{"a":1}') == b'event: message\ndata: {"a":1}\n\n'


@given(st.text())
def test_any_text_in_a_message_leaves_the_frame_whole(text):
    frame = encode_event(encode_result(text, {"text": text}))

    assert frame.count(b"\n") == 3
    assert b"\r" not in frame


@pytest.mark.parametrize("data", [b"a\nb", b"a\rb", b"\n"])
def test_data_with_a_line_break_is_refused(data):
    with pytest.raises(ValueError, match="one line"):
        encode_event(data)


def test_a_keep_alive_is_a_comment():
    assert KEEP_ALIVE.startswith(b":")
    assert KEEP_ALIVE.endswith(b"\n\n")
