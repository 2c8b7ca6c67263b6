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
from mcp_django.protocol.render import ServerInfo, render
from mcp_django.protocol.results import InputRequired
from mcp_django.protocol.revisions import Revision
from tests.oracle import assert_valid_result
from tests.spec import requirement

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
MEMBERS = st.sampled_from(
    ["action", "content", "role", "model", "stopReason", "roots", "uri", "name", "type", "text"]
)


@requirement("input:members")
def test_questions_are_a_result_of_the_newest_revision():
    form = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
    said = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}]}
    result = InputRequired(
        questions={
            "who": Question(method=ELICITATION, params=form),
            "word": Question(method=SAMPLING, params={**said, "maxTokens": 5}),
            "roots": Question(method=ROOTS),
        },
        state="abc",
    )

    wire = render(result, Revision.V2026_07_28, ServerInfo(name="x", version="1"))

    assert_valid_result(Revision.V2026_07_28, "tools/call", wire)
    assert wire["resultType"] == "input_required"
    assert wire["requestState"] == "abc"
    assert wire["inputRequests"]["roots"] == {"method": "roots/list", "params": {}}
    assert "ttlMs" not in wire


@pytest.mark.parametrize("read", [read_form, read_roots, read_sampled])
@given(answer=JSON | st.dictionaries(MEMBERS, JSON, max_size=6))
def test_any_answer_is_read_or_is_none(read, answer):
    read(answer)


@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
def test_what_a_person_did_with_a_form(action):
    found = read_form({"action": action, "content": {"a": [1]}, "_meta": {}})

    assert (found.action, found.content) == (action, {"a": [1]})
    assert read_form({"action": action}).content is None


def test_folders_have_addresses_and_maybe_names():
    found = read_roots({"roots": [{"uri": "file:///a", "name": "A"}, {"uri": "file:///b"}]})

    assert [(one.uri, one.name) for one in found] == [("file:///a", "A"), ("file:///b", None)]


def test_what_a_model_wrote_is_one_block_or_several():
    text = {"type": "text", "text": "a"}
    message = {"role": "assistant", "model": "m"}

    one = read_sampled({**message, "content": text})
    two = read_sampled({**message, "content": [text, text], "stopReason": "endTurn"})

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


def test_a_page_needs_another_declaration_than_a_form():
    form = Question(method=ELICITATION, params={"mode": "form"})
    page = Question(method=ELICITATION, params={"mode": "url"})

    error = missing_capability([form.needs, page.needs])

    assert (form.needs, page.needs) == (ELICITATION, URL)
    assert error.data == {"requiredCapabilities": {"elicitation": {"form": {}, "url": {}}}}


@requirement("envelope:capability-required")
def test_what_is_missing_is_told_as_capabilities():
    error = missing_capability([SAMPLING, ROOTS])

    assert (error.code, error.status) == (-32021, 400)
    assert error.data == {"requiredCapabilities": {"sampling": {}, "roots": {}}}
    assert error.message == "This request needs a client that declares: sampling, roots."


def test_a_request_that_is_sent_again_brings_answers_and_a_state():
    found = parse_input({"name": "x", "inputResponses": {"a": 1}, "requestState": "s"})

    assert (found.answers, found.state) == ({"a": 1}, "s")
    assert (parse_input({}).answers, parse_input({}).state) == ({}, None)


@given(params=st.dictionaries(st.sampled_from(["inputResponses", "requestState"]), JSON))
def test_any_members_are_parsed_or_refused(params):
    is_valid = isinstance(params.get("inputResponses", {}), dict) and isinstance(
        params.get("requestState", ""), str
    )

    if is_valid:
        assert parse_input(params).answers == params.get("inputResponses", {})
    else:
        with pytest.raises(ProtocolError, match="Invalid params"):
            parse_input(params)


def test_answers_keep_what_they_do_not_understand():
    assert msgspec.to_builtins(parse_input({"inputResponses": {"a": {"b": [1]}}}).answers) == {
        "a": {"b": [1]}
    }
