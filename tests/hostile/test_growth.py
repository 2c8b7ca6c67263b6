"""What it costs to say no: a refusal reads no more of what was sent than it needs."""

from __future__ import annotations

import pytest

import mcp_django as mcp
from mcp_django.audit.reasons import LONGEST_SENTENCE, reason_of
from mcp_django.exceptions import InvalidArguments, ToolError
from mcp_django.exposure.functions.arguments import Arguments
from mcp_django.exposure.functions.signatures import Signature
from mcp_django.protocol.jsonrpc import MAX_VALUES
from mcp_django.testing import Client


def test_the_reason_of_a_refusal_is_found_in_its_beginning():
    # To cut a sentence again for each name took time that grows with its square.
    sentence = f"a: wrong\n{'x' * LONGEST_SENTENCE}\nb: wrong"

    reason = reason_of(ToolError(sentence), {"name": "settle", "arguments": {"a": 1, "b": 2}})

    assert reason == "The tool refused the call: a"


@pytest.mark.parametrize(("values", "is_read"), [(MAX_VALUES, True), (MAX_VALUES + 1, False)])
def test_a_text_of_json_has_no_more_values_than_a_body(values, is_read):
    signature = Signature(annotations={"lines": list[int]}, defaults={})
    reader = Arguments("order", signature, descriptions={})
    # The list itself is one of them.
    text = "[" + "1," * (values - 1) + "1]"

    try:
        lines = reader.decode({"lines": text}).lines
    except InvalidArguments:
        lines = None

    assert (lines is not None) == is_read


@pytest.mark.django_db
def test_a_refusal_with_half_a_character_is_still_a_refusal(staff, add_tool):
    def name() -> str:
        """Raise the name of a file that no encoding has."""
        raise mcp.ToolError("There is no file \udcff.txt.")

    add_tool(name)

    answer = Client(user=staff).call_tool("name")

    assert answer.is_error
    assert answer.text == "There is no file ?.txt."
