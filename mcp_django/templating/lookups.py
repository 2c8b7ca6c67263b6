"""The values that templates see, and the budget of rendering. No lookup gets an attribute or calls
anything, whatever a template says.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from time import thread_time
from typing import Any

from django.template import TemplateSyntaxError
from django.template.base import FilterExpression, Variable, VariableDoesNotExist
from django.utils.functional import Promise

from mcp_django.templating.fences import fenced, new_mark

MAX_FILTERS = 8
MAX_OUTPUT = 65_536
MAX_STEPS = 10_000
#: Processor time of this thread: a busy machine is not the fault of the template.
MAX_SECONDS = 0.5
#: Characters of one value.
MAX_VALUE = 16_384
MAX_RESOURCES = 8
MAX_URI = 500


class TemplateError(Exception):
    """A template that cannot be used, or a rendering that went over a limit."""

    def __init__(self, reason: str, *, line: int | None = None) -> None:
        super().__init__(reason if line is None else f"line {line}: {reason}")
        self.reason = reason
        self.line = line


@dataclass
class Budget:
    """What is left for one prompt. It may span several templates."""

    steps: int = MAX_STEPS
    output: int = MAX_OUTPUT
    until: float = field(default_factory=lambda: thread_time() + MAX_SECONDS)
    resources: list[str] = field(default_factory=list)
    #: Marks the place of a resource in the text. Nobody can guess it, so no value contains it.
    mark: str = field(default_factory=lambda: f"\x00{secrets.token_hex(16)}:")
    #: Ends the names of fences, for the same reason.
    fence: str = field(default_factory=new_mark)

    def step(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise TemplateError("Rendering took too many steps.")
        if thread_time() > self.until:
            raise TemplateError("Rendering took too long.")

    def write(self, text: str) -> str:
        self.output -= len(text)
        if self.output < 0:
            raise TemplateError("The text would be too long.")
        return text

    def embed(self, uri: str) -> str:
        """The mark that stands for a resource in the text."""
        if len(self.resources) == MAX_RESOURCES:
            raise TemplateError(f"More than {MAX_RESOURCES} resources.")
        if len(uri) > MAX_URI:
            raise TemplateError(f"The address of a resource is longer than {MAX_URI} characters.")
        self.resources.append(uri)
        return f"{self.mark}{len(self.resources) - 1}\x00"

    def shown(self, text: str, value: Any, writer: int) -> str:
        """The text of a value: fenced where somebody may have written instructions in it."""
        if writer == AUTHORS or type(value) in WORDLESS or type(value) is Code:
            return text
        is_short = len(text) <= LONGEST_TYPED and text.isprintable()
        if writer == CALLERS and is_short and not set("<>{}") & set(text):
            return text
        return fenced(text, self.fence)


BUDGET = "mcp_django.budget"
#: Exactly these types: a subclass could override how it is shown.
LEAVES = frozenset(
    {bool, int, float, Decimal, date, datetime, time, timedelta, type(None), list, tuple, dict}
)
#: Filters that write only numbers and their own words.
CLEAN = frozenset(
    {
        "date", "time", "timesince", "timeuntil", "length", "pluralize", "filesizeformat",
        "floatformat",
    }
)  # fmt: skip


#: Who wrote the text of a value: the author of the template, the caller, or anybody at all.
AUTHORS, CALLERS, DATA = range(3)
#: Characters of what a caller typed. Beyond that somebody may have pasted it.
LONGEST_TYPED = 100
#: Types that hold no words.
WORDLESS = frozenset({bool, int, float, Decimal, date, datetime, time, timedelta})


class Code(str):
    """A text of a record that is not free text, such as a choice or a key."""

    __slots__ = ()


class Record:
    """What a caller may read of an object. Templates get the named values, and nothing else."""

    __slots__ = ("text", "values")

    def __init__(self, values: dict[str, Any], text: str) -> None:
        self.values = values
        self.text = text

    def __str__(self) -> str:
        return self.text


def plain(text: str) -> str:
    """Exactly a str, cut to the length of a value. SafeString calls itself a str, too."""
    return str.__str__(text)[:MAX_VALUE]


def value_in(value: Any, bit: str) -> Any:
    """Raises KeyError or IndexError."""
    if type(value) is Record:
        return value.values[bit]
    if type(value) is dict:
        return value[bit]
    if type(value) in (list, tuple) and bit.isdecimal() and len(bit) < 6:
        return value[int(bit)]
    raise KeyError(bit)


class SafeVariable(Variable):
    def _resolve_lookup(self, context: Any) -> Any:
        name, *bits = self.lookups or ()
        try:
            value = context[name]
            for bit in bits:
                value = value_in(value, bit)
        except (KeyError, IndexError):
            raise VariableDoesNotExist("There is no such value.") from None
        if type(value) is Code:
            return value
        if isinstance(value, str):
            return plain(value)
        if type(value) in LEAVES or type(value) is Record:
            return value
        raise VariableDoesNotExist("That is not a value.")


class SilentVariable(SafeVariable):
    """An argument of a filter: one that does not exist is an empty text, not an exception."""

    def resolve(self, context: Any) -> Any:
        try:
            return super().resolve(context)
        except VariableDoesNotExist:
            return ""


class Expression(FilterExpression):
    """Every tag and variable gets its values from one of these."""

    def __init__(self, token: str, parser: Any) -> None:
        super().__init__(token, parser)
        if len(self.filters) > MAX_FILTERS:
            raise TemplateSyntaxError(f"more than {MAX_FILTERS} filters")
        #: Whose text may come out: AUTHORS, CALLERS or DATA.
        self.writer = AUTHORS
        refuse_translation(self.var)
        if isinstance(self.var, Variable):
            self.writer = parser.writer_of(self.var)
            self.var = SafeVariable(self.var.var)
        filters = []
        for function, arguments in self.filters:
            safe = [(lookup, self._argument(lookup, one)) for lookup, one in arguments]
            writers = [parser.writer_of(one) for lookup, one in safe if lookup]
            if function._filter_name in CLEAN:
                self.writer = AUTHORS
            self.writer = max([self.writer, *writers])
            filters.append((function, safe))
        self.filters = filters

    def _argument(self, lookup: bool, argument: Any) -> Any:  # noqa: FBT001  Django's pair
        refuse_translation(argument)
        return SilentVariable(argument.var) if lookup else argument

    def resolve(self, context: Any, ignore_failures: bool = False) -> Any:  # noqa: FBT001, FBT002
        budget: Budget = context.render_context[BUDGET]
        budget.step()
        return super().resolve(context, ignore_failures)


def refuse_translation(value: Any) -> None:
    """Django would look the text up in the language of whoever asks first."""
    if isinstance(value, Promise) or (isinstance(value, Variable) and value.translate):
        raise TemplateSyntaxError("texts cannot be translated here")
