from __future__ import annotations

import json

import pytest

from mcp_django.exposure.prompts.documents import (
    LARGEST,
    BrokenDocuments,
    carry_out,
    parse_documents,
    plan,
)
from mcp_django.models import ExposedModel, PromptTemplate
from tests.exposure.stored import make_prompt

HELLO = {"name": "hello", "messages": [{"role": "user", "text": "Hi."}]}


def take_over(*documents):
    # As Windows begins files.
    encoded = b"\xef\xbb\xbf" + json.dumps(list(documents)).encode()
    steps = plan(parse_documents(encoded), server="default")
    carry_out(steps)
    return [str(one) for one in steps]


def refusal(data, *, server="default"):
    encoded = data if isinstance(data, bytes) else json.dumps(data).encode()
    with pytest.raises(BrokenDocuments) as broken:
        plan(parse_documents(encoded), server=server)
    return broken.value.sentences


@pytest.mark.django_db
def test_what_differs_is_replaced_and_the_version_before_stays():
    template = make_prompt("hello", "Hi.")
    make_prompt("hello", "There.", server="other")

    assert take_over({**HELLO, "title": "New"}) == ["hello: changed"]
    assert template.versions.count() == 1
    assert take_over({**HELLO, "messages": [{"text": "Ho."}]}) == ["hello: changed"]

    template.refresh_from_db()
    assert template.title == ""
    assert [one.messages[0]["text"] for one in template.versions.all()] == ["Ho.", "Hi."]
    # That of the other server stays as well.
    assert PromptTemplate.objects.filter(name="hello").count() == 2


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"{", "This is not JSON: "),
        (b"[" * 100_000, "This is not JSON: "),
        (b" " * (LARGEST + 1), "This is longer than 262144 bytes."),
        ([HELLO] * 201, "These are more than 200 prompts."),
        (7, "Prompt 1: Expected `object`, got `int`"),
        ({**HELLO, "server": "x"}, "Prompt 1: Object contains unknown field `server`"),
        ({"name": "a"}, "Prompt 1: Object missing required field `messages`"),
        ({**HELLO, "enabled": "yes"}, "Prompt 1: Expected `bool`, got `str` - at `$.enabled`"),
        ({**HELLO, "title": "a\x00b"}, "There is a NUL character in a text."),
        ([HELLO, HELLO], "hello: two prompts have this name"),
        ({**HELLO, "name": "Hello"}, "'Hello': Use a-z, 0-9 and single underscores"),
        ({**HELLO, "title": "x" * 101}, "'hello': title: Ensure this value has at most 100"),
        ({**HELLO, "groups": ["Nobody"]}, "'hello': there is no group 'Nobody'"),
        (
            {**HELLO, "messages": [{"text": "a"}, {"text": "\n{% load a %}"}]},
            "'hello': Message 2, line 2: there is no tag 'load'",
        ),
        (
            {**HELLO, "arguments": [{"name": "a", "type": "object", "model": "shop.memo"}]},
            "'hello': Argument 1, model: this site exposes no model 'shop.memo'",
        ),
    ],
    ids=lambda value: str(value)[-40:],
)
def test_a_file_with_a_mistake_changes_nothing_and_says_where_it_is(data, sentence):
    ExposedModel.objects.create(label="shop.memo", level=0)

    found = refusal(data)

    assert any(one.startswith(sentence) for one in found), found
    assert not PromptTemplate.objects.exists()
