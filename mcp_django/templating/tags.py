"""The tags: some of Django's, and ours for loops, names and resources."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from django.template import Library, Node, TemplateSyntaxError, defaulttags
from django.template.base import NodeList

from mcp_django.templating.budget import Budget
from mcp_django.templating.filters import add_filters, text_of
from mcp_django.templating.lookups import BUDGET, Expression

SCHEME = "django://"


class Loop(Node):
    child_nodelists = ("body", "empty")

    def __init__(
        self, name: str, values: Expression, *, backwards: bool, body: NodeList, empty: NodeList
    ) -> None:
        self.name = name
        self.values = values
        self.backwards = backwards
        self.body = body
        self.empty = empty

    def render(self, context: Any) -> str:
        budget: Budget = context.render_context[BUDGET]
        values = self.values.resolve(context, ignore_failures=True)
        items = list(values) if isinstance(values, (list, tuple, dict)) else []
        if not items:
            return self.empty.render(context)
        if self.backwards:
            items.reverse()
        written = []
        with context.push():
            for number, item in enumerate(items):
                budget.step()
                context["forloop"] = place(number, of=len(items))
                context[self.name] = item
                written.append(self.body.render(context))
        return "".join(written)


def place(number: int, *, of: int) -> dict[str, Any]:
    return {
        "counter": number + 1,
        "counter0": number,
        "revcounter": of - number,
        "revcounter0": of - number - 1,
        "first": number == 0,
        "last": number == of - 1,
    }


def do_for(parser: Any, token: Any) -> Loop:
    _, *words = token.split_contents()
    backwards = words[-1:] == ["reversed"]
    if backwards:
        words.pop()
    if len(words) != 3 or words[1] != "in":
        raise TemplateSyntaxError("write {% for x in list %}")
    values = parser.compile_filter(words[2])
    empty = NodeList()
    with parser.naming({words[0]: values.is_data}):
        body = parser.parse(("empty", "endfor"))
    if parser.next_token().contents == "empty":
        empty = parser.parse(("endfor",))
        parser.delete_first_token()
    return Loop(words[0], values, backwards=backwards, body=body, empty=empty)


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
    for word in token.split_contents()[1:]:
        name, equals, expression = word.partition("=")
        if not equals or name in values:
            raise TemplateSyntaxError("write {% with name=value %}")
        values[name] = parser.compile_filter(expression)
    if not values:
        raise TemplateSyntaxError("write {% with name=value %}")
    with parser.naming({name: value.is_data for name, value in values.items()}):
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
    if not isinstance(address, str) or not address.startswith(SCHEME):
        raise TemplateSyntaxError("write {% resource 'django://objects/shop.order' number %}")
    parts = expressions[1:]
    if "?" in address and len(parts) != address.endswith("="):
        raise TemplateSyntaxError(
            "after a ? write {% resource 'django://objects/shop.order?status=' status %}"
        )
    return ResourceMark(str.__str__(address), parts)


class Verbatim(Node):
    """Django's own renders while it parses, when nothing counts yet."""

    child_nodelists = ("body",)

    def __init__(self, body: NodeList) -> None:
        self.body = body

    def render(self, context: Any) -> str:
        return self.body.render(context)


def do_verbatim(parser: Any, token: Any) -> Verbatim:
    body = parser.parse(("endverbatim",))
    parser.delete_first_token()
    return Verbatim(body)


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
add_filters(LIBRARY)
