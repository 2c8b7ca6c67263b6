from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.protocol.content import TextContent
from mcp_django.protocol.errors import ProtocolError
from mcp_django.protocol.questions import (
    ELICITATION,
    NEEDED,
    ROOTS,
    SAMPLING,
    URL,
    Question,
    missing_capability,
    parse_input,
    read_form,
    read_roots,
    read_sampled,
    takes,
)
from tests.spec import requirement

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


@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
def test_what_a_person_did_with_a_form(action):
    found = read_form({"action": action, "content": {"a": [1]}, "_meta": {}})

    assert (found.action, found.content) == (action, {"a": [1]})
    assert read_form({"action": action}).content is None


def test_what_the_client_has_read_for_a_tool_is_folders_or_blocks_of_a_model():
    text = {"type": "text", "text": "a"}
    message = {"role": "assistant", "model": "m"}

    roots = read_roots({"roots": [{"uri": "file:///a", "name": "A"}, {"uri": "file:///b"}]})
    one = read_sampled({**message, "content": text})
    two = read_sampled({**message, "content": [text, text], "stopReason": "endTurn"})

    assert [(root.uri, root.name) for root in roots] == [("file:///a", "A"), ("file:///b", None)]
    assert one.content == [TextContent("a")]
    assert (one.text, one.model, one.stop_reason) == ("a", "m", "")
    assert (two.text, two.stop_reason) == ("a\na", "endTurn")


@requirement("input:declared")
@pytest.mark.parametrize(
    ("capabilities", "taken"),
    [
        ({}, set()),
        ({"elicitation": {}}, {ELICITATION}),
        ({"elicitation": {"form": {}, "url": {}}}, {ELICITATION, URL}),
        ({"elicitation": {"url": {}}}, {URL}),
        ({"sampling": {}, "roots": {"listChanged": True}}, {SAMPLING, ROOTS}),
        ({"sampling": True, "roots": None, "elicitation": []}, set()),
    ],
)
def test_what_a_client_declares_is_what_it_can_be_asked(capabilities, taken):
    assert {needed for needed in NEEDED if takes(capabilities, needed)} == taken


@requirement("envelope:capability-required")
def test_what_is_missing_is_told_as_capabilities():
    form = Question(method=ELICITATION, params={"mode": "form"})
    page = Question(method=ELICITATION, params={"mode": "url"})

    error = missing_capability([form.needs, page.needs, SAMPLING])

    assert (form.needs, page.needs) == (ELICITATION, URL)
    assert (error.code, error.status) == (-32021, 400)
    assert error.data == {
        "requiredCapabilities": {"elicitation": {"form": {}, "url": {}}, "sampling": {}}
    }
    assert error.message.startswith("This request needs a client that declares: ")


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
