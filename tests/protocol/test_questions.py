from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.protocol.errors import ProtocolError
from mcp_django.protocol.questions import parse_input, read_form, read_roots, read_sampled

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
MEMBERS = st.sampled_from(
    ["action", "content", "role", "model", "stopReason", "roots", "uri", "name", "type", "text"]
)


@pytest.mark.parametrize("read", [read_form, read_roots, read_sampled])
@given(answer=JSON | st.dictionaries(MEMBERS, JSON, max_size=6))
def test_any_answer_is_read_or_is_none(read, answer):
    read(answer)


@given(params=st.dictionaries(st.sampled_from(["inputResponses", "requestState"]), JSON))
def test_any_members_are_parsed_as_they_are_or_refused(params):
    is_valid = isinstance(params.get("inputResponses", {}), dict) and isinstance(
        params.get("requestState", ""), str
    )

    if is_valid:
        parsed = parse_input({"name": "x", **params})
        assert msgspec.to_builtins(parsed.answers) == params.get("inputResponses", {})
        assert parsed.state == params.get("requestState")
    else:
        with pytest.raises(ProtocolError, match="Invalid params"):
            parse_input(params)
