"""Prompts in the template language: arguments and messages, read from plain data and checked."""

from __future__ import annotations

import keyword
import re
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

import msgspec

from mcp_django.context import CallContext
from mcp_django.exceptions import NotFound, ToolError
from mcp_django.exposure.functions.results import messages_of
from mcp_django.exposure.primitives import PendingCall
from mcp_django.exposure.prompts.functions import Argument, PromptArguments
from mcp_django.exposure.resources.models import read
from mcp_django.protocol.content import Content, EmbeddedResource, TextContent
from mcp_django.protocol.results import (
    PromptArgument,
    PromptDefinition,
    PromptMessage,
    PromptResult,
)
from mcp_django.protocol.uri_templates import URITemplate
from mcp_django.templating.engine import (
    Embedded,
    Piece,
    RestrictedTemplate,
    compile_template,
    render_template,
)
from mcp_django.templating.lookups import Budget, TemplateError

if TYPE_CHECKING:
    from mcp_django.exposure.permissions import Rights


# The messages of a prompt, and how they are rendered.

LONGEST_URI_SHOWN = 500


#: One message: its role, and a text or the address of a resource.
Part: TypeAlias = tuple[str, RestrictedTemplate | URITemplate]


def embedded(context: CallContext, rights: Rights, uri: str) -> list[Content]:
    """Raises ToolError, in the same words for what is missing and what is forbidden."""
    shown = uri[:LONGEST_URI_SHOWN]
    try:
        found = read(context, rights, uri)
    except NotFound:
        raise ToolError(f"The prompt needs {shown}, and there is no such resource.") from None
    if isinstance(found, PendingCall):
        # A coroutine of the site: only the event loop could await it.
        cast("Coroutine[Any, Any, Any]", found.awaitable).close()
        raise ToolError(f"{shown} cannot stand in a prompt: its function is async.")
    return [EmbeddedResource(contents=one) for one in found.contents]


TEXT, NUMBER, DATE, CHOICE, OBJECT = "text", "number", "date", "choice", "object"
#: Types that hold no words of a caller, so that templates need not fence them.
PLAIN_TYPES = frozenset({NUMBER, DATE, CHOICE})

MOST_ARGUMENTS = MOST_MESSAGES = 20
MOST_CHOICES = 100
LONGEST_CHOICE = LONGEST_TITLE = 100
LONGEST_DESCRIPTION = 1000
LONGEST_ADDRESS = 500
ARGUMENT_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
#: Names that have a meaning in templates, or promise more than an argument.
RESERVED = frozenset({"forloop", "settings", "request", "reversed"})
#: A literal scheme and beginning, so that no value chooses what kind of thing is read.
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^{}\s]+(\{[a-z0-9_]+\}[^{}\s]*)*")


class ArgumentContent(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    name: str
    type: Literal["text", "number", "date", "choice", "object"] = "text"
    title: str = ""
    description: str = ""
    required: bool = False
    choices: list[str] = []
    #: The label of an exposed model, such as "shop.order".
    model: str = ""


class MessageContent(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    """A text in the template language, or the address of a resource."""

    role: Literal["user", "assistant"] = "user"
    text: str = ""
    resource: str = ""


#: What a person calls a member of each part.
NAMES = {"arguments": "Argument", "messages": "Message"}

AnyContent = TypeVar("AnyContent", ArgumentContent, MessageContent)
Plain: TypeAlias = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A mistake, and where: `part` is arguments or messages, `at` counts from 0."""

    sentence: str
    part: str
    at: int | None = None
    field: str = ""
    line: int | None = None

    def __str__(self) -> str:
        where = self.part if self.at is None else f"{NAMES[self.part]} {self.at + 1}"
        if self.line is not None:
            where += f", line {self.line}"
        elif self.field:
            where += f", {self.field}"
        return f"{where}: {self.sentence}"


class BrokenContents(Exception):
    """Contents that are not a prompt."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(" ".join(map(str, problems)))
        self.problems = list(problems)


@dataclass(frozen=True, kw_only=True)
class Contents:
    """Arguments and messages as they are stored, shown, compared and exported."""

    arguments: Sequence[ArgumentContent] = ()
    messages: Sequence[MessageContent] = ()

    def as_plain(self) -> dict[str, list[Plain]]:
        return {
            "arguments": [without_defaults(one) for one in self.arguments],
            "messages": [without_defaults(one) for one in self.messages],
        }

    @property
    def models(self) -> dict[str, str]:
        """The label of the model of each argument that takes an object."""
        return {one.name: one.model for one in self.arguments if one.type == OBJECT}


@dataclass(frozen=True, kw_only=True)
class Body:
    """Compiled contents, shared by all calls."""

    contents: Contents = Contents()
    parts: Sequence[Part] = ()

    @cached_property
    def arguments(self) -> PromptArguments:
        return PromptArguments([argument_of(one) for one in self.contents.arguments])


class TemplatePrompt:
    """A prompt whose messages are written in the template language."""

    def __init__(self, name: str, body: Body, *, title: str, description: str) -> None:
        self.name = name
        self.body = body
        self.definition = PromptDefinition(
            name=name, title=title, description=description, arguments=body.arguments.definitions
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def get(
        self, context: CallContext, rights: Rights, arguments: Mapping[str, str]
    ) -> PromptResult:
        """Its messages; objects and resources read with the rights of the caller.

        Raises ToolError.
        """
        read = self.body.arguments.read(arguments)
        # Arguments that were left out.
        names: dict[str, Any] = {
            argument.name: "" if argument.type in (TEXT, CHOICE) else None
            for argument in self.body.contents.arguments
        } | read
        texts = {name: arguments[name] for name in read}
        self.add_objects(rights, names, texts)
        messages: list[PromptMessage] = []
        budget = Budget()
        for role, content in self.body.parts:
            if isinstance(content, URITemplate):
                pieces: list[Piece] = [Embedded(content.expand(texts))]
            else:
                try:
                    pieces = render_template(content, names, budget=budget)
                except TemplateError as error:
                    sentence = f"The prompt cannot be made of these values. {error}"
                    raise ToolError(sentence) from None
            for piece in pieces:
                contents: list[Content] = (
                    embedded(context, rights, piece.uri)
                    if isinstance(piece, Embedded)
                    else [TextContent(piece.strip())]
                )
                messages += [PromptMessage(content=one, role=role) for one in contents]
        if not messages:
            raise ToolError("With these arguments the prompt says nothing.")
        return PromptResult(
            messages=messages_of(messages, prompt=self.name),
            description=self.definition.description,
        )

    def add_objects(self, rights: Rights, names: dict[str, Any], texts: dict[str, str]) -> None:
        """Replace keys of objects, by the names of their arguments."""

    def complete(self, rights: Rights, argument: str, value: str) -> list[str] | None:
        return self.body.arguments.complete(rights.request, argument, value)


def without_defaults(content: ArgumentContent | MessageContent) -> Plain:
    """As a person would write it: without what is empty, except for the name."""
    members: Plain = msgspec.to_builtins(content)
    return {name: value for name, value in members.items() if value or name == "name"}


def parse_contents(arguments: Any, messages: Any) -> Contents:
    """Contents from plain data. Raises BrokenContents for data of another shape."""
    problems: list[Problem] = []
    made = Contents(
        arguments=list(converted("arguments", arguments, ArgumentContent, problems)),
        messages=list(converted("messages", messages, MessageContent, problems)),
    )
    if problems:
        raise BrokenContents(problems)
    return made


def converted(
    part: str, given: Any, kind: type[AnyContent], problems: list[Problem]
) -> Iterator[AnyContent]:
    if not isinstance(given, list):
        problems.append(Problem(part=part, sentence="this is no list"))
        return
    for at, one in enumerate(given):
        try:
            yield msgspec.convert(one, kind)
        except msgspec.ValidationError as error:
            problems.append(Problem(part=part, at=at, sentence=str(error)))


def compile_contents(contents: Contents) -> Body:
    """Raises BrokenContents that names every mistake and its place."""
    problems = list(argument_problems(contents))
    parts = list(compiled_parts(contents, problems))
    if problems:
        raise BrokenContents(problems)
    return Body(contents=contents, parts=parts)


# Arguments


def argument_of(content: ArgumentContent) -> Argument:
    is_choice = content.type == CHOICE
    return Argument(
        definition=PromptArgument(
            name=content.name,
            title=content.title,
            description=content.description,
            required=content.required,
        ),
        annotation=Literal[tuple(content.choices)] if is_choice else PYTHON_TYPES[content.type],
        takes_empty=content.type == TEXT,
    )


#: The key of an object is looked up afterwards, with the rights of the caller.
PYTHON_TYPES: dict[str, type] = {TEXT: str, NUMBER: Decimal, DATE: date, OBJECT: str}


def argument_problems(contents: Contents) -> Iterator[Problem]:
    problem = partial(Problem, part="arguments")
    if len(contents.arguments) > MOST_ARGUMENTS:
        yield problem(sentence=f"more than {MOST_ARGUMENTS}")
    seen: set[str] = set()
    for at, one in enumerate(contents.arguments):
        for name, sentence in mistakes_of(one):
            yield problem(at=at, field=name, sentence=sentence)
        if one.name in seen:
            yield problem(at=at, field="name", sentence="another argument has this name")
        seen.add(one.name)


def mistakes_of(one: ArgumentContent) -> Iterator[tuple[str, str]]:
    if not ARGUMENT_NAME.fullmatch(one.name):
        yield "name", "use a-z, 0-9 and underscores, a letter first, at most 40 characters"
    elif one.name in RESERVED or keyword.iskeyword(one.name):
        yield "name", f"{one.name!r} cannot be the name of an argument"
    if len(one.title) > LONGEST_TITLE:
        yield "title", f"longer than {LONGEST_TITLE} characters"
    if len(one.description) > LONGEST_DESCRIPTION:
        yield "description", f"longer than {LONGEST_DESCRIPTION} characters"
    yield from mistakes_of_choices(one)
    if one.type == OBJECT and not one.model:
        yield "model", "choose the model of the object"
    elif one.type != OBJECT and one.model:
        yield "model", "only an argument of the type object has a model"


def mistakes_of_choices(one: ArgumentContent) -> Iterator[tuple[str, str]]:
    if one.type != CHOICE:
        if one.choices:
            yield "choices", "only an argument of the type choice has choices"
    elif not one.choices:
        yield "choices", "write the choices, one in each line"
    elif len(one.choices) > MOST_CHOICES:
        yield "choices", f"more than {MOST_CHOICES}"
    elif not all(choice.strip() and len(choice) <= LONGEST_CHOICE for choice in one.choices):
        yield "choices", f"a choice is empty or longer than {LONGEST_CHOICE} characters"
    elif len(set(one.choices)) < len(one.choices):
        yield "choices", "a choice is there twice"


# Messages


def compiled_parts(contents: Contents, problems: list[Problem]) -> Iterator[Part]:
    problem = partial(Problem, part="messages")
    if not contents.messages:
        problems.append(problem(sentence="write at least one"))
    if len(contents.messages) > MOST_MESSAGES:
        problems.append(problem(sentence=f"more than {MOST_MESSAGES}"))
        return
    for at, message in enumerate(contents.messages):
        name = "resource" if message.resource else "text"
        try:
            yield part_of(contents, message)
        except TemplateError as error:
            problems.append(problem(at=at, field=name, line=error.line, sentence=error.reason))


def part_of(contents: Contents, message: MessageContent) -> Part:
    """Raises TemplateError with the line."""
    if message.resource and message.text.strip():
        raise TemplateError("a text or the address of a resource: put both into two messages")
    names = [one.name for one in contents.arguments]
    if message.resource:
        return message.role, address_of(message.resource, names)
    if not message.text.strip():
        raise TemplateError("write a text, or the address of a resource")
    plain = [one.name for one in contents.arguments if one.type in PLAIN_TYPES]
    typed = [one.name for one in contents.arguments if one.type == TEXT]
    source = normal(message.text)
    return message.role, compile_template(source, names=names, plain=plain, typed=typed)


def normal(text: str) -> str:
    """Browsers send lines with CR LF."""
    return text.replace("\r\n", "\n")


def address_of(uri: str, names: Sequence[str]) -> URITemplate:
    if len(uri) > LONGEST_ADDRESS:
        raise TemplateError(f"an address longer than {LONGEST_ADDRESS} characters")
    if not ADDRESS.fullmatch(uri):
        raise TemplateError("write an address such as django://objects/shop.order/{order}")
    template = URITemplate(uri)
    for name in template.variables:
        if name not in names:
            hint = f"the arguments are: {', '.join(names)}" if names else "there are no arguments"
            raise TemplateError(f"unknown name {name!r}; {hint}")
    return template
