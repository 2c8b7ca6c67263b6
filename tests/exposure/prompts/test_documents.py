from __future__ import annotations

import json

import pytest

from mcp_django.exposure.prompts.documents import LARGEST, BrokenDocuments, parse_documents, plan
from mcp_django.models import ExposedModel, PromptTemplate
from tests.exposure.stored import ORDER

HELLO = {"name": "hello", "messages": [{"role": "user", "text": "Hi."}]}


def refusal(data):
    encoded = data if isinstance(data, bytes) else json.dumps(data).encode()
    with pytest.raises(BrokenDocuments) as broken:
        plan(parse_documents(encoded), server="default")
    return broken.value.sentences


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


A, CHOICE = {"name": "a"}, {"name": "a", "type": "choice"}
HI = [{"text": "Hi"}]
#: Arguments, messages, and what is wrong with them.
BROKEN = [
    # Of another shape
    ([{"name": "a", "kind": ""}], HI, "Argument 1: Object contains unknown field `kind`"),
    ([{}], HI, "Argument 1: Object missing required field `name`"),
    (["a"], HI, "Argument 1: Expected `object`, got `str`"),
    ([{"name": "a", "type": "x"}], HI, "Argument 1: Invalid enum value 'x' - at `$.type`"),
    ([], [*HI, {"text": 1}], "Message 2: Expected `str`, got `int` - at `$.text`"),
    ([], [{"role": "system"}], "Message 1: Invalid enum value 'system' - at `$.role`"),
    # Arguments
    ([{"name": "a b"}], HI, "Argument 1, name: use a-z, 0-9 and underscores"),
    ([{"name": "x" * 41}], HI, "Argument 1, name: use a-z"),
    ([{"name": "settings"}], HI, "Argument 1, name: 'settings' cannot be the name of an argument"),
    ([{"name": "not"}], HI, "Argument 1, name: 'not' cannot be"),
    ([{**A, "title": "x" * 101}], HI, "Argument 1, title: longer than 100"),
    ([{**A, "choices": ["x"]}], HI, "Argument 1, choices: only an argument of the type choice"),
    ([CHOICE], HI, "Argument 1, choices: write the choices"),
    ([{**CHOICE, "choices": ["x", "x"]}], HI, "Argument 1, choices: a choice is there twice"),
    ([{**CHOICE, "choices": ["x" * 101]}], HI, "Argument 1, choices: a choice is empty or"),
    ([{**CHOICE, "choices": [*"x" * 101]}], HI, "Argument 1, choices: more than 100"),
    ([{**A, "type": "object"}], HI, "Argument 1, model: choose the model"),
    ([{**A, "model": "shop.order"}], HI, "Argument 1, model: only an argument of the type object"),
    ([{"name": f"a{number}"} for number in range(21)], HI, "arguments: more than 20"),
    # Messages
    ([], [], "messages: write at least one"),
    ([], HI * 21, "messages: more than 20"),
    ([], [{"text": "{{ x }}"}], "Message 1, line 1: unknown name 'x'; there are no arguments"),
    (
        [],
        [{"text": "Hi", "resource": "django://site"}],
        "Message 1, resource: a text or the address of a resource: put both into two messages",
    ),
    *(
        ([A], [*HI, {"text": text}], f"Message 2, {sentence}")
        for text, sentence in {
            "Hi\n{% load static %}": "line 2: there is no tag 'load'; there are: comment, for, ",
            "\n\n{{ settings.KEY }}": "line 3: unknown name 'settings'; the arguments are: a",
            "{{ a|add:a }}": "line 1: Invalid filter: 'add'",
            "x" * 32_769: "text: longer than 32768 characters",
            "{% if a %}" * 13: "line 1: nested deeper than 12",
            "{{ _('a') }}": "line 1: texts cannot be translated here",
        }.items()
    ),
    # Addresses
    *(
        ([ORDER], [{"resource": uri}], f"Message 1, resource: {sentence}")
        for uri, sentence in {
            "a/1": "write an address such as django://objects/shop.order/{order}",
            "{order}://x": "write an address",
            "django://{order}": "write an address",
            "django://objects/shop.order{?status}": "write an address",
            "django://objects/{+order}": "write an address",
            "django://objects/a b": "write an address",
            "django://a/{other}": "unknown name 'other'; the arguments are: order",
            "django://" + "x" * 500: "an address longer than 500 characters",
        }.items()
    ),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("arguments", "messages", "sentence"), BROKEN, ids=range(len(BROKEN)))
def test_contents_that_cannot_be_are_refused_with_the_place(arguments, messages, sentence):
    (found,) = refusal({**HELLO, "arguments": arguments, "messages": messages})

    assert found.startswith(f"'hello': {sentence}")


@pytest.mark.django_db
def test_every_mistake_is_told_at_once():
    arguments = [A, A, {"name": "1"}]
    messages = [{"text": "{{ b }}"}, {"text": "{{ a }}"}, {"text": ""}]

    assert refusal({**HELLO, "arguments": arguments, "messages": messages}) == [
        "'hello': Argument 2, name: another argument has this name",
        "'hello': Argument 3, name: use a-z, 0-9 and underscores, a letter first, at most 40 "
        "characters",
        "'hello': Message 1, line 1: unknown name 'b'; the arguments are: 1, a",
        "'hello': Message 3, text: write a text, or the address of a resource",
    ]
