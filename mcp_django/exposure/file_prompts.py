"""A prompt in a file: front matter in TOML, and messages in the restricted template language."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec
from django.core.exceptions import ImproperlyConfigured

from mcp_django.context import CallContext
from mcp_django.exposure.code_prompts import check_permission
from mcp_django.exposure.function_rights import may_reach
from mcp_django.exposure.names import check_name
from mcp_django.exposure.prompt_arguments import Argument, PromptArguments
from mcp_django.exposure.prompt_parts import Part, Values, rendered
from mcp_django.exposure.prompt_types import reader_of, reader_of_choices
from mcp_django.principal import READ
from mcp_django.protocol.results import PromptDefinition, PromptResult
from mcp_django.templating import TemplateError, compile_template

if TYPE_CHECKING:
    from mcp_django.exposure.permissions import Rights

FENCE = "+++"
HEADING = re.compile(r"## (user|assistant)\s*")
ARGUMENT_NAME = re.compile(r"[a-z][a-z0-9_]*")
#: What these names mean in every template.
TAKEN = frozenset({"forloop"})


class BrokenPrompt(Exception):
    """A file that is no prompt. The sentence is for its author."""


class ArgumentHeader(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    name: str
    title: str = ""
    description: str = ""
    required: bool = False
    choices: list[str] = []


class Header(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    title: str = ""
    description: str = ""
    permission: str | None = None
    arguments: list[ArgumentHeader] = []


class FilePrompt:
    """A prompt that a file describes."""

    def __init__(self, name: str, source: str) -> None:
        """Raises BrokenPrompt."""
        try:
            self.name = check_name(name, kind="prompt")
        except ImproperlyConfigured:
            raise BrokenPrompt(
                "a file of a prompt is called like a function: a-z, 0-9 and single underscores, "
                "a letter first, at most 40 characters, and .md"
            ) from None
        header, body, line = split_header(source)
        try:
            self.permission = check_permission(header.permission, prompt=name)
        except ImproperlyConfigured as error:
            raise BrokenPrompt(str(error)) from None
        self.arguments = PromptArguments([argument_of(one) for one in header.arguments])
        if len(self.arguments.by_name) < len(header.arguments):
            raise BrokenPrompt("two arguments have the same name")
        self.parts = parts_of(body, header.arguments, line=line)
        self.definition = PromptDefinition(
            name=name,
            title=header.title,
            description=header.description,
            arguments=self.arguments.definitions,
        )

    def __repr__(self) -> str:
        return f"<FilePrompt {self.name}>"

    def exists_for(self, rights: Rights) -> bool:
        is_reader = rights.has_scopes(frozenset({READ}))
        return is_reader and may_reach(rights, self.permission, name=f"the prompt {self.name}")

    def get(
        self, context: CallContext, rights: Rights, arguments: Mapping[str, str]
    ) -> PromptResult:
        """Its messages, resources read with the rights of the caller. Raises ToolError."""
        given = {**dict.fromkeys(self.arguments.by_name, ""), **self.arguments.read(arguments)}
        values = Values(names=given, texts=given)
        checked = rendered(context, rights, self.parts, values, prompt=self.name)
        return PromptResult(messages=checked, description=self.definition.description)

    def complete(
        self, rights: Rights, argument: str, value: str, *, given: Mapping[str, str]
    ) -> list[str] | None:
        return self.arguments.complete(rights.request, argument, value)


def split_header(source: str) -> tuple[Header, str, int]:
    """The front matter, the text after it and the number of its first line."""
    lines = source.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != FENCE:
        return Header(), "\n".join(lines), 1
    ends = [number for number, line in enumerate(lines[1:], start=1) if line.rstrip() == FENCE]
    if not ends:
        raise BrokenPrompt(f"line 1: there is no second line {FENCE} to end the front matter")
    try:
        # An empty line for the fence, so that errors name the lines of the file.
        found = tomllib.loads("\n".join(["", *lines[1 : ends[0]]]))
        header = msgspec.convert(found, Header)
    except tomllib.TOMLDecodeError as error:
        raise BrokenPrompt(f"the front matter is not TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise BrokenPrompt(f"the front matter: {error}") from None
    return header, "\n".join(lines[ends[0] + 1 :]), ends[0] + 2


def argument_of(header: ArgumentHeader) -> Argument:
    if not ARGUMENT_NAME.fullmatch(header.name) or header.name in TAKEN:
        raise BrokenPrompt(f"{header.name!a} cannot be the name of an argument")
    choices = {one: one for one in header.choices}
    return Argument(
        name=header.name,
        title=header.title,
        description=header.description,
        required=header.required,
        reader=reader_of_choices(choices) if choices else reader_of(str),
    )


def parts_of(body: str, arguments: list[ArgumentHeader], *, line: int) -> list[Part]:
    """The messages between headings; what stands before the first one is the user's."""
    found: list[tuple[str, int, list[str]]] = [("user", line, [])]
    for number, text in enumerate(body.split("\n"), start=line):
        if heading := HEADING.fullmatch(text):
            found.append((heading[1], number + 1, []))
        else:
            found[-1][2].append(text)
    names = [one.name for one in arguments]
    # An argument with choices can only be one of the author's own words.
    plain = [one.name for one in arguments if one.choices]
    parts = []
    for role, first, lines in found:
        text = "\n".join(lines)
        if not text.strip():
            continue
        try:
            template = compile_template(text, names=names, plain=plain)
        except TemplateError as error:
            at = first + (error.line or 1) - 1
            raise BrokenPrompt(f"line {at}: {error.reason}") from None
        parts.append(Part(role=role, content=template))
    if not parts:
        raise BrokenPrompt("there is no text in it")
    return parts
