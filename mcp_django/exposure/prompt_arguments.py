"""The arguments of a prompt: told to clients, completed, and read from texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeAlias

import msgspec
from django.http import HttpRequest

from mcp_django.exceptions import ToolError
from mcp_django.exposure.function_arguments import shown
from mcp_django.exposure.prompt_types import Reader
from mcp_django.exposure.refusals import refusals_in_words
from mcp_django.protocol.results import PromptArgument

#: Values that go on from what was typed, given the request and that.
Complete: TypeAlias = Callable[[HttpRequest, str], Iterable[Any]]

LONGEST_TEXT = 16_384
# decimal.InvalidOperation is an ArithmeticError, and choices are looked up in a dictionary.
UNREADABLE = (ValueError, KeyError, ArithmeticError, msgspec.ValidationError)


@dataclass(frozen=True, kw_only=True)
class Argument:
    name: str
    reader: Reader
    required: bool
    title: str = ""
    description: str = ""
    complete: Complete | None = None

    @property
    def definition(self) -> PromptArgument:
        return PromptArgument(
            name=self.name,
            title=self.title,
            description=self.description,
            required=self.required,
        )

    def is_left_out(self, given: Mapping[str, str]) -> bool:
        """Clients send an empty text for what their user did not fill in."""
        if self.name not in given:
            return True
        return given[self.name] == "" and not self.required and not self.reader.is_text

    def read(self, text: str) -> Any:
        """Raises ToolError that says what it takes."""
        if len(text) > LONGEST_TEXT:
            raise ToolError(f"Argument {self.name}: longer than {LONGEST_TEXT} characters.")
        try:
            return self.reader.read(text)
        except UNREADABLE:
            raise ToolError(
                f"Argument {self.name}: {shown(text)} is not {self.reader.wanted}."
            ) from None


class PromptArguments:
    """All arguments of one prompt, in their order."""

    def __init__(self, arguments: Sequence[Argument]) -> None:
        self.by_name = {one.name: one for one in arguments}
        self.definitions = [one.definition for one in arguments]

    def read(self, given: Mapping[str, str]) -> dict[str, Any]:
        """What was given, by name. Raises ToolError for what is unknown, missing or unreadable."""
        if unknown := sorted(given.keys() - self.by_name.keys()):
            raise ToolError(f"Unknown argument {shown(unknown[0])}. {self._hint(unknown[0])}")
        arguments = self.by_name.values()
        if missing := [one.name for one in arguments if one.required and one.name not in given]:
            raise ToolError(f"Missing argument: {', '.join(missing)}.")
        return {
            one.name: one.read(given[one.name]) for one in arguments if not one.is_left_out(given)
        }

    def complete(self, request: HttpRequest, name: str, value: str) -> list[str] | None:
        """What goes on from a value, best first. None: no such argument."""
        # Late: it brings the query compiler along, which nobody needs to register a prompt.
        from mcp_django.exposure.completion import ranked

        argument = self.by_name.get(name)
        if argument is None:
            return None
        if argument.complete is None:
            return ranked(value, argument.reader.choices)
        try:
            with refusals_in_words():
                return ranked(value, [str(one) for one in argument.complete(request, value)])
        except ToolError:
            return []  # refused: there is nothing for this caller

    def _hint(self, unknown: str) -> str:
        if close := get_close_matches(unknown[:60], self.by_name, n=1):
            return f"Did you mean {close[0]}?"
        if self.by_name:
            return f"This prompt takes: {', '.join(self.by_name)}."
        return "This prompt takes no arguments."
