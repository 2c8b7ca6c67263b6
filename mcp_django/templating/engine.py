"""Compiles templates, and renders them to pieces of text and places of resources."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, cast

from django.template import Context, Engine, Template, TemplateSyntaxError
from django.template.base import Lexer, Node, Parser, TextNode, Variable, VariableNode
from django.template.base import render_value_in_context as shown

from mcp_django.templating.library import CONTAINERS, LIBRARY, Literal
from mcp_django.templating.lookups import (
    AUTHORS,
    BUDGET,
    CALLERS,
    DATA,
    Budget,
    Expression,
    TemplateError,
)

MAX_SOURCE = 32_768
#: The lexer takes time by the square of what looks like a tag in one line.
MAX_LINE = 4_000
MAX_TOKENS = 1_000
MAX_DEPTH = 12
LONGEST_REASON = 200
#: Names that every template has.
BUILT_IN = dict.fromkeys(("True", "False", "None", "forloop"), AUTHORS)


@dataclass(frozen=True)
class Embedded:
    """The place of a resource. It is read afterwards, with the rights of the caller."""

    uri: str


Piece: TypeAlias = str | Embedded


class Shown(Node):
    """A value in the text: counted, and fenced where it is not the author's own."""

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    def render(self, context: Any) -> str:
        budget: Budget = context.render_context[BUDGET]
        value = self.expression.resolve(context)
        if value is None or isinstance(value, CONTAINERS):
            return ""
        try:
            text = str.__str__(shown(value, context))
        except (TypeError, ValueError):  # infinite, or longer than Python writes out
            return ""
        return budget.write(budget.shown(text, value, self.expression.writer) if text else "")


class SafeParser(Parser):
    """Django's parser with our expressions. Every tag uses `compile_filter`."""

    def __init__(self, tokens: Any, *, names: Mapping[str, int], origin: Any) -> None:
        super().__init__(tokens, {}, [LIBRARY], origin)
        self.names = dict(names)
        #: Names that a tag gave to other values.
        self.renamed: frozenset[str] = frozenset()
        #: The line of each use of an argument, and its lookups.
        self.uses: list[tuple[int, tuple[str, ...]]] = []
        self.line = 1
        self.arguments = sorted(names)
        self.depth = 0

    def next_token(self) -> Any:
        token = super().next_token()
        self.line = token.lineno or self.line
        return token

    def parse(self, parse_until: Any = None) -> Any:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TemplateSyntaxError(f"nested deeper than {MAX_DEPTH}")
        try:
            return super().parse(parse_until)
        finally:
            self.depth -= 1

    def invalid_block_tag(self, token: Any, command: str, parse_until: Any = None) -> NoReturn:
        """Django's own sentence asks for `{% load %}`, which does not exist here."""
        tags = ", ".join(sorted({*self.tags, *(parse_until or ())}))
        raise self.error(token, f"there is no tag {command[:40]!a}; there are: {tags}")

    def compile_filter(self, token: str) -> Expression:
        return Expression(token, self)

    def extend_nodelist(self, nodelist: Any, node: Any, token: Any) -> None:
        if isinstance(node, VariableNode):
            node = Shown(cast(Expression, node.filter_expression))
        elif isinstance(node, TextNode):
            node = Literal(node.s)
        super().extend_nodelist(nodelist, node, token)

    def writer_of(self, variable: Variable) -> int:
        """Who wrote what the variable holds. Raises for unknown names."""
        if not variable.lookups:
            return AUTHORS
        name = variable.lookups[0]
        known = {**BUILT_IN, **self.names}
        if name not in known:
            hint = f"the arguments are: {', '.join(self.arguments)}" if self.arguments else ""
            raise TemplateSyntaxError(f"unknown name {name!a}; {hint or 'there are no arguments'}")
        if name not in self.renamed:
            self.uses.append((self.line, tuple(variable.lookups)))
        return known[name]

    @contextmanager
    def naming(self, names: Mapping[str, int]) -> Iterator[None]:
        """Add the names that a tag gives to values, until its end, and who wrote each."""
        for name in names:
            if not name.isidentifier() or name.startswith("_"):
                raise TemplateSyntaxError(f"{name[:40]!a} cannot be a name")
        before = self.names, self.renamed
        self.names, self.renamed = {**self.names, **names}, self.renamed | names.keys()
        try:
            yield
        finally:
            self.names, self.renamed = before


ENGINE = Engine(autoescape=False, loaders=[])


class RestrictedTemplate(Template):
    """A compiled template, shared by threads."""

    #: The line of each use of a name, and what follows it after dots.
    uses: list[tuple[int, tuple[str, ...]]]

    def __init__(self, source: str, *, names: Mapping[str, int]) -> None:
        self.names = names
        super().__init__(source, engine=ENGINE)

    def compile_nodelist(self) -> Any:
        tokens = Lexer(self.source).tokenize()
        if len(tokens) > MAX_TOKENS:
            raise TemplateSyntaxError(f"more than {MAX_TOKENS} tags and pieces of text")
        parser = SafeParser(tokens, names=self.names, origin=self.origin)
        self.uses = parser.uses
        return parser.parse()


def compile_template(
    source: str,
    *,
    names: Collection[str],
    plain: Collection[str] = (),
    typed: Collection[str] = (),
) -> RestrictedTemplate:
    """A template that may use these names. Raises TemplateError with the line.

    The values of the names are data: they are fenced where they are printed, so that a model can
    tell them from the template's own words. Those in `plain` are not, nor are numbers, dates and
    codes, nor short texts of those in `typed`, which the caller typed.
    """
    if len(source) > MAX_SOURCE:
        raise TemplateError(f"longer than {MAX_SOURCE} characters")
    if "\x00" in source:
        raise TemplateError("a NUL character")
    for number, line in enumerate(source.split("\n"), start=1):
        if len(line) > MAX_LINE:
            raise TemplateError(f"a line longer than {MAX_LINE} characters", line=number)
    try:
        writers = {
            name: AUTHORS if name in plain else CALLERS if name in typed else DATA
            for name in names
        }
        return RestrictedTemplate(source, names=writers)
    except RecursionError:
        raise TemplateError("nested too deeply") from None
    except Exception as error:  # Django's parser lets ValueError and others through
        at = getattr(getattr(error, "token", None), "lineno", None)
        raise TemplateError(str(error)[:LONGEST_REASON], line=at) from None


def render_template(
    template: RestrictedTemplate, values: Mapping[str, Any], *, budget: Budget | None = None
) -> list[Piece]:
    """Text, and the places of resources in it. Raises TemplateError over a limit."""
    budget = budget or Budget()
    context = Context(dict(values), autoescape=False)
    with context.render_context.push_state(template), context.bind_template(template):
        context.render_context[BUDGET] = budget
        text = str.__str__(template.nodelist.render(context))
    first, *others = text.split(budget.mark)
    pieces: list[Piece] = [first]
    for one in others:
        number, _, rest = one.partition("\x00")
        pieces += [Embedded(budget.resources[int(number)]), rest]
    return [one for one in pieces if isinstance(one, Embedded) or one.strip()]
