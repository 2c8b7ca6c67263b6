"""`@mcp.prompt`: a function of the site as a prompt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, get_args, get_origin, overload
from uuid import UUID

import msgspec
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest

from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.fields import quoted
from mcp_django.exposure.functions.arguments import check_names
from mcp_django.exposure.functions.json_schemas import without_none
from mcp_django.exposure.functions.results import messages_of, refusals_in_words
from mcp_django.exposure.functions.signatures import SiteOptions
from mcp_django.exposure.primitives import PendingCall
from mcp_django.exposure.registry import Registry, check_name
from mcp_django.exposure.registry import registry as default_registry
from mcp_django.exposure.site_functions import Function, SiteFunction, registering
from mcp_django.protocol.results import PromptArgument, PromptDefinition, PromptResult

if TYPE_CHECKING:
    from mcp_django.exposure.permissions import Rights


# Reading arguments: MCP sends those of prompts as texts.

DECIMALS = re.compile(r"[-+0-9.eE]{1,40}")
#: Python refuses to read thousands of digits.
NUMERALS = {int: re.compile(r"[+-]?[0-9]{1,30}"), float: DECIMALS, Decimal: DECIMALS}
#: What people and programs write for yes and no.
BOOLEANS = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}
WANTED = {
    int: "a whole number such as 7",
    float: "a number such as 2.5",
    Decimal: "a number such as 2.50",
    date: "a date such as 2026-11-18",
    datetime: "a time such as 2026-11-18T12:00:00Z",
    time: "a time of day such as 12:00:00",
    UUID: "a UUID",
    str: "a text",
}


def texts_of(kind: Any) -> dict[str, Any]:
    """Return every text that a type takes, with its value, if these can be listed."""
    if kind is bool:
        return {"true": True, "false": False}
    if get_origin(kind) is Literal:
        return {str(value): value for value in get_args(kind) if value is not None}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {str(member.value): member for member in kind}
    return {}


def notes_of(annotation: Any) -> list[Any]:
    """Return the notes of an annotation, such as msgspec.Meta."""
    parts = (annotation, *get_args(annotation))
    return [note for part in parts for note in getattr(part, "__metadata__", ())]


# The arguments of a prompt.

#: Gets the request and what was typed, and returns values to choose from.
Complete: TypeAlias = Callable[[HttpRequest, str], Iterable[Any]]

LONGEST_TEXT = 16_384
# decimal.InvalidOperation is an ArithmeticError, and choices are looked up in a dictionary.
UNREADABLE = (ValueError, KeyError, ArithmeticError)


@dataclass(frozen=True, kw_only=True)
class Argument:
    #: What clients get in lists.
    definition: PromptArgument
    annotation: Any
    #: Whether an empty text is a value of it.
    takes_empty: bool
    complete: Complete | None = None

    @property
    def name(self) -> str:
        return self.definition.name

    @cached_property
    def kind(self) -> Any:
        return without_none(self.annotation)

    @cached_property
    def texts(self) -> dict[str, Any]:
        return texts_of(self.kind)

    @property
    def wanted(self) -> str:
        if self.kind in WANTED:
            return WANTED[self.kind] + (" within its limits" if notes_of(self.annotation) else "")
        return "true or false" if self.kind is bool else f"one of: {', '.join(self.texts)}"

    def read(self, text: str) -> Any:
        """Raises ToolError that says what it takes."""
        if len(text) > LONGEST_TEXT:
            raise ToolError(f"Argument {self.name}: longer than {LONGEST_TEXT} characters.")
        try:
            if self.kind is bool:
                return BOOLEANS[text.strip().lower()]
            if self.texts:
                return self.texts[text]
            value: Any = text if self.kind is str else text.strip()
            if self.kind in NUMERALS:
                if not NUMERALS[self.kind].fullmatch(value) or not isfinite(float(value)):
                    raise ValueError
                value = self.kind(value)
            return msgspec.convert(value, self.annotation)
        except UNREADABLE:
            sentence = f"Argument {self.name}: {quoted(text)} is not {self.wanted}."
            raise ToolError(sentence) from None


class PromptArguments:
    """All arguments of one prompt, in their order."""

    def __init__(self, arguments: Sequence[Argument] = ()) -> None:
        self.by_name = {argument.name: argument for argument in arguments}
        self.definitions = [argument.definition for argument in arguments]

    def read(self, given: Mapping[str, str]) -> dict[str, Any]:
        """The values by name. Raises ToolError for what is unknown, missing or unreadable."""
        required = [one.name for one in self.definitions if one.required]
        check_names(given, self.by_name, required=required, of="prompt")
        # Clients send an empty text for what their user did not fill in.
        return {
            name: argument.read(given[name])
            for name, argument in self.by_name.items()
            if given.get(name) or (name in given and (argument.takes_empty or name in required))
        }

    def complete(self, request: HttpRequest, name: str, value: str) -> list[str] | None:
        """Values that match what was typed, best first. None: no such argument."""
        # Late: it imports the query compiler, which registering a prompt does not need.
        from mcp_django.exposure.resources.completion import ranked

        argument = self.by_name.get(name)
        if argument is None:
            return None
        if argument.complete is None:
            return ranked(value, argument.texts)
        try:
            with refusals_in_words():
                return ranked(value, [str(one) for one in argument.complete(request, value)])
        except ToolError:
            return []  # refused: there is nothing for this caller


class PromptOptions(SiteOptions, total=False):
    name: str | None
    completions: Mapping[str, Complete] | None


class CodePrompt(SiteFunction):
    """A function as a prompt."""

    kind = "prompt"
    decorator = "@mcp.prompt"
    options = PromptOptions
    no_generators = "A prompt returns its messages: a text, or a list."
    method = "prompts/get"
    type_of_untyped = str

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        completions: Mapping[str, Complete] | None = None,
        **options: Any,
    ) -> None:
        self.name = check_name(name or function.__name__, kind="prompt")
        super().__init__(function, key=self.name, **options)
        self.arguments = PromptArguments([*self._arguments(completions or {})])

    @property
    def definition(self) -> PromptDefinition:
        """What clients get in lists, lazy texts in the language of the moment."""
        return PromptDefinition(
            name=self.name,
            title=str(self.title),
            description=str(self.description),
            arguments=self.arguments.definitions,
        )

    def get(
        self, context: CallContext, rights: Rights, arguments: Mapping[str, str]
    ) -> PromptResult | PendingCall:
        """Run the function. Raises ToolError for arguments that do not fit and for what the
        function refuses; other exceptions of the function pass.
        """

        def finish(value: Any) -> PromptResult:
            messages = messages_of(value, prompt=self.name)
            return PromptResult(messages=messages, description=str(self.description))

        read = self.arguments.read(arguments)
        return self.run(context, rights, read, finish=finish, sent=arguments)

    def complete(self, rights: Rights, argument: str, value: str) -> list[str] | None:
        return self.arguments.complete(rights.request, argument, value)

    def _arguments(self, completions: Mapping[str, Complete]) -> Iterator[Argument]:
        annotations = self.signature.annotations
        if unknown := sorted(completions.keys() - annotations.keys()):
            raise ImproperlyConfigured(
                f"The prompt {self.name!r} has no argument {unknown[0]!r} to complete. "
                f"It has: {', '.join(annotations) or 'none'}."
            )
        for name, annotation in annotations.items():
            kind = without_none(annotation)
            if kind not in WANTED and not texts_of(kind):
                raise ImproperlyConfigured(
                    f"The argument {name} of the prompt {self.name!r}: {annotation!r} cannot be "
                    "read from a text. Arguments of prompts are texts: take a str, int, date, "
                    "bool, Literal or Enum, such as the key of a record, and look the record up "
                    "yourself."
                )
            notes = [getattr(note, "description", None) for note in notes_of(annotation)]
            yield Argument(
                definition=PromptArgument(
                    name=name,
                    description=self.parameters.get(name) or next(filter(None, notes), ""),
                    required=name not in self.signature.defaults,
                ),
                annotation=annotation,
                takes_empty=kind is str,
                complete=completions.get(name),
            )


@overload
def prompt(function: Function, /) -> Function: ...


@overload
def prompt(
    *, registry: Registry | None = None, **options: Unpack[PromptOptions]
) -> Callable[[Function], Function]: ...


def prompt(function: Any = None, /, *, registry: Registry | None = None, **options: Any) -> Any:
    """Offer a function as a prompt. Returns the function itself.

        @mcp.prompt(permission="shop.view_order")
        def reply(request: HttpRequest, number: str, tone: Literal["formal", "warm"]) -> str:
            "Draft a reply to the customer of an order."

    It returns a text, a content block, `mcp.PromptMessage`, or a list of these. Arguments come as
    texts and are read as their annotation says: str where there is none. A parameter annotated
    HttpRequest (or just called `request`) and one annotated `mcp.Context` are filled in by us.
    Without `permission`, which is "app.codename" or a function of the request, every active
    member of the staff may get the prompt. `completions` has functions of the request and of what
    was typed, which return values for an argument. With `asks` the function may ask with
    `mcp.Context.ask` and its like.

    Raises AlreadyRegistered when the name is taken, ImproperlyConfigured when the function
    cannot be a prompt.
    """
    decorate = registering(CodePrompt, (registry or default_registry).add_prompt, options)
    return decorate if function is None else decorate(function)
