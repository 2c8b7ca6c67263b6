"""The tags and filters that templates may use. Each is bounded; filters that grow a text, get
attributes or write HTML are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import quote

from django.template import Library, Node, TemplateSyntaxError, defaultfilters, defaulttags
from django.template.base import NodeList

from mcp_django.templating.lookups import (
    BUDGET,
    LEAVES,
    MAX_VALUE,
    Budget,
    Expression,
    Record,
    TemplateError,
    plain,
)

MAX_ARGUMENT = 100
MAX_NUMBER_ARGUMENT = 10_000
MAX_NUMBER = 10**30
MAX_DIGITS = 12
MAX_JOINED = 1_000
MAX_JOINED_ITEM = 500
LONGEST_NUMBER = 40
CONTAINERS = (list, tuple, dict)

NAMES = (
    "date", "time", "timesince", "timeuntil", "default", "default_if_none", "lower", "upper",
    "title", "capfirst", "length", "pluralize", "yesno", "truncatechars", "truncatewords", "first",
    "last", "filesizeformat",
)  # fmt: skip


def bounded(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def filtered(value: Any, *args: Any) -> Any:
        for argument in args:
            if isinstance(argument, str) and len(argument) > MAX_ARGUMENT:
                raise TemplateError("The argument of a filter is too long.")
            if isinstance(argument, (int, float)) and abs(argument) > MAX_NUMBER_ARGUMENT:
                raise TemplateError("The argument of a filter is too large.")
        if isinstance(value, int) and abs(value) > MAX_NUMBER:
            raise TemplateError("A number is too large.")
        try:
            result = function(value, *args)
        except (TypeError, ValueError, AttributeError, KeyError, IndexError, OverflowError):
            return ""  # as Django's own filters answer values that are not theirs
        if isinstance(result, str):
            return plain(result)
        # A container may hold values that were not checked.
        return result if type(result) in LEAVES or type(result) is Record else ""

    return filtered


def floatformat(value: Any, digits: Any = -1) -> Any:
    number = int(str(digits).rstrip("gu"))
    if abs(number) > MAX_DIGITS:
        raise TemplateError(f"At most {MAX_DIGITS} digits.")
    if len(str(value)[: LONGEST_NUMBER + 1]) > LONGEST_NUMBER:
        return ""
    return defaultfilters.floatformat(value, number)


def join(value: Any, separator: str) -> str:
    if not isinstance(value, (list, tuple)) or len(value) > MAX_JOINED:
        return ""
    texts = (text_of(one)[:MAX_JOINED_ITEM] for one in value)
    return str(separator).join(texts)[:MAX_VALUE]


def text_of(value: Any) -> str:
    """The text of a value. A container has none: it may hold values that were not checked."""
    if isinstance(value, str):
        return plain(value)
    is_shown = type(value) is Record or (
        type(value) in LEAVES and type(value) not in CONTAINERS and value is not None
    )
    return str(value) if is_shown else ""


class LoopItems:
    """The expression of a loop. A text has no items: each letter would pass as a short text."""

    def __init__(self, values: Expression) -> None:
        self.values = values

    def resolve(self, context: Any, ignore_failures: bool = False) -> Any:  # noqa: FBT001, FBT002
        values = self.values.resolve(context, ignore_failures)
        return values if isinstance(values, CONTAINERS) else ()


class LoopStep(Node):
    """Stands first in the body of a loop, and counts its turns."""

    def render(self, context: Any) -> str:
        budget: Budget = context.render_context[BUDGET]
        budget.step()
        return ""


def do_for(parser: Any, token: Any) -> defaulttags.ForNode:
    _, *words = token.split_contents()
    backwards = words[-1:] == ["reversed"]
    if backwards:
        words.pop()
    if len(words) != 3 or words[1] != "in":
        raise TemplateSyntaxError("write {% for x in list %}")
    values = parser.compile_filter(words[2])
    empty = NodeList()
    with parser.naming({words[0]: values.writer}):
        body = parser.parse(("empty", "endfor"))
    if parser.next_token().contents == "empty":
        empty = parser.parse(("endfor",))
        parser.delete_first_token()
    body.insert(0, LoopStep())
    items: Any = LoopItems(values)
    return defaulttags.ForNode([words[0]], items, backwards, body, empty)


class Names(Node):
    child_nodelists = ("body",)

    def __init__(self, values: dict[str, Expression], body: NodeList) -> None:
        self.values = values
        self.body = body

    def render(self, context: Any) -> str:
        found = {name: value.resolve(context) for name, value in self.values.items()}
        with context.update(found):
            return self.body.render(context)


def do_with(parser: Any, token: Any) -> Names:
    values = {}
    for word in token.split_contents()[1:] or [""]:
        name, equals, expression = word.partition("=")
        if not equals or name in values:
            raise TemplateSyntaxError("write {% with name=value %}")
        values[name] = parser.compile_filter(expression)
    with parser.naming({name: value.writer for name, value in values.items()}):
        body = parser.parse(("endwith",))
    parser.delete_first_token()
    return Names(values, body)


class ResourceMark(Node):
    def __init__(self, address: str, parts: list[Expression]) -> None:
        self.address = address
        self.parts = parts

    def render(self, context: Any) -> str:
        budget: Budget = context.render_context[BUDGET]
        texts = [quote(text_of(part.resolve(context)), safe="") for part in self.parts]
        if self.address.endswith("="):
            return budget.embed(self.address + "".join(texts))
        return budget.embed("/".join([self.address, *texts]))


def do_resource(parser: Any, token: Any) -> ResourceMark:
    expressions = [parser.compile_filter(word) for word in token.split_contents()[1:]]
    # The author chooses the kind and the model; values fill segments, and cannot leave them.
    address = expressions[0].var if expressions and not expressions[0].filters else None
    if not isinstance(address, str) or not address.startswith("django://"):
        raise TemplateSyntaxError("write {% resource 'django://objects/shop.order' number %}")
    parts = expressions[1:]
    if "?" in address and len(parts) != address.endswith("="):
        raise TemplateSyntaxError(
            "after a ? write {% resource 'django://objects/shop.order?status=' status %}"
        )
    return ResourceMark(str.__str__(address), parts)


def do_verbatim(parser: Any, token: Any) -> Names:
    # Django's own renders while it parses, when there is no budget yet.
    body = parser.parse(("endverbatim",))
    parser.delete_first_token()
    return Names({}, body)


class Literal(Node):
    def __init__(self, text: str) -> None:
        self.text = text

    def render(self, context: Any) -> str:
        budget: Budget = context.render_context[BUDGET]
        return budget.write(self.text)


def do_templatetag(parser: Any, token: Any) -> Literal:
    _, *words = token.split_contents()
    mapping = defaulttags.TemplateTagNode.mapping
    if len(words) != 1 or words[0] not in mapping:
        raise TemplateSyntaxError(f"write one of: {', '.join(mapping)}")
    return Literal(mapping[words[0]])


LIBRARY = Library()
for _name in ("if", "comment"):
    LIBRARY.tag(_name, defaulttags.register.tags[_name])
LIBRARY.tag("for", do_for)
LIBRARY.tag("with", do_with)
LIBRARY.tag("resource", do_resource)
LIBRARY.tag("templatetag", do_templatetag)
LIBRARY.tag("verbatim", do_verbatim)
_functions = {name: defaultfilters.register.filters[name] for name in NAMES}
for _name, _function in {**_functions, "floatformat": floatformat, "join": join}.items():
    LIBRARY.filter(_name, bounded(_function))
