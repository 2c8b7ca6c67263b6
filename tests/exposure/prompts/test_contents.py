from __future__ import annotations

import pytest

from mcp_django.exposure.prompts.contents import (
    BrokenContents,
    parse_contents,
)
from tests.exposure.stored import ORDER, body_of


def problems(arguments, *messages):
    """What is wrong, each with its place."""
    with pytest.raises(BrokenContents) as broken:
        body_of(*messages, arguments=arguments)
    return [str(one) for one in broken.value.problems]


@pytest.mark.parametrize(
    ("arguments", "messages", "sentences"),
    [
        (None, [], ["arguments: this is no list"]),
        ([], "Hi", ["messages: this is no list"]),
        ([{"name": "a", "kind": ""}], [], ["Argument 1: Object contains unknown field `kind`"]),
        ([{}], [], ["Argument 1: Object missing required field `name`"]),
        (["a"], [], ["Argument 1: Expected `object`, got `str`"]),
        ([{"name": "a", "type": "x"}], [], ["Argument 1: Invalid enum value 'x' - at `$.type`"]),
        ([], [{"text": "a"}, {"text": 1}], ["Message 2: Expected `str`, got `int` - at `$.text`"]),
        ([], [{"role": "system"}], ["Message 1: Invalid enum value 'system' - at `$.role`"]),
    ],
)  # fmt: skip
def test_what_has_another_shape_is_refused_with_its_place(arguments, messages, sentences):
    with pytest.raises(BrokenContents) as broken:
        parse_contents(arguments, messages)

    assert [str(one) for one in broken.value.problems] == sentences


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ({"name": "a b"}, "name: use a-z, 0-9 and underscores"),
        ({"name": "x" * 41}, "name: use a-z"),
        ({"name": "settings"}, "name: 'settings' cannot be the name of an argument"),
        ({"name": "not"}, "name: 'not' cannot be"),
        ({"name": "a", "title": "x" * 101}, "title: longer than 100"),
        ({"name": "a", "choices": ["x"]}, "choices: only an argument of the type choice"),
        ({"name": "a", "type": "choice"}, "choices: write the choices"),
        ({"name": "a", "type": "choice", "choices": ["x", "x"]}, "choices: a choice is there tw"),
        ({"name": "a", "type": "choice", "choices": ["x" * 101]}, "choices: a choice is empty or"),
        ({"name": "a", "type": "choice", "choices": [*"x" * 101]}, "choices: more than 100"),
        ({"name": "a", "type": "object"}, "model: choose the model"),
        ({"name": "a", "model": "shop.order"}, "model: only an argument of the type object"),
    ],
)  # fmt: skip
def test_an_argument_that_cannot_be_is_refused_with_its_place(argument, sentence):
    (found,) = problems([argument], "Hi")

    assert found.startswith(f"Argument 1, {sentence}")


def test_every_mistake_is_told_at_once():
    found = problems([{"name": "a"}, {"name": "a"}, {"name": "1"}], "{{ b }}", "{{ a }}", "")
    many = problems([{"name": f"a{number}"} for number in range(21)], "Hi")

    assert many == ["arguments: more than 20"]
    assert found == [
        "Argument 2, name: another argument has this name",
        "Argument 3, name: use a-z, 0-9 and underscores, a letter first, at most 40 characters",
        "Message 1, line 1: unknown name 'b'; the arguments are: 1, a",
        "Message 3, text: write a text, or the address of a resource",
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Hi\n{% load static %}", "line 2: there is no tag 'load'; there are: comment, for, if, "),
        ("\n\n{{ settings.SECRET_KEY }}", "line 3: unknown name 'settings'; the arguments are: a"),
        ("{{ a|add:a }}", "line 1: Invalid filter: 'add'"),
        ("x" * 32_769, "text: longer than 32768 characters"),
        ("{% if a %}" * 13, "line 1: nested deeper than 12"),
        ("{{ _('a') }}", "line 1: texts cannot be translated here"),
        ("a\x00b", "text: a NUL character"),
    ],
)  # fmt: skip
def test_a_template_that_does_not_parse_says_where(text, sentence):
    (found,) = problems([{"name": "a"}], "Fine.", text)

    assert found.startswith(f"Message 2, {sentence}")


@pytest.mark.parametrize(
    ("messages", "sentence"),
    [
        ([], "messages: write at least one"),
        (["Hi"] * 21, "messages: more than 20"),
        (
            [{"text": "Hi", "resource": "django://site"}],
            "Message 1, resource: a text or the address of a resource: put both into two messages",
        ),
        (
            [{"resource": "django://a/{a}"}],
            "Message 1, resource: unknown name 'a'; there are no arguments",
        ),
    ],
)
def test_messages_are_some_and_each_is_a_text_or_a_resource(messages, sentence):
    assert problems([], *messages) == [sentence]


@pytest.mark.parametrize(
    ("uri", "sentence"),
    [
        ("shop.order/1", "write an address such as django://objects/shop.order/{order}"),
        ("{order}://x", "write an address"),
        ("django://{order}", "write an address"),
        ("django://objects/shop.order{?status}", "write an address"),
        ("django://objects/{+order}", "write an address"),
        ("django://objects/a b", "write an address"),
        ("django://objects/shop.order/{other}", "unknown name 'other'; the arguments are: order"),
        ("django://" + "x" * 500, "an address longer than 500 characters"),
    ],
)
def test_an_address_that_cannot_be_is_refused(uri, sentence):
    (found,) = problems([ORDER], {"resource": uri})

    assert found.startswith(f"Message 1, resource: {sentence}")
