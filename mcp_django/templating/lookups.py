"""Values by name: no attribute is got and nothing is called, whatever a template says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from django.template import TemplateSyntaxError
from django.template.base import FilterExpression, Variable, VariableDoesNotExist
from django.utils.functional import Promise

from mcp_django.templating.budget import MAX_FILTERS, MAX_VALUE, Budget

BUDGET = "mcp_django.budget"
#: Exactly these types: a subclass could have ideas of its own about being shown.
LEAVES = frozenset(
    {bool, int, float, Decimal, date, datetime, time, timedelta, type(None), list, tuple, dict}
)
#: What these filters write is made of numbers and of words of their own.
CLEAN = frozenset(
    {
        "date",
        "time",
        "timesince",
        "timeuntil",
        "length",
        "pluralize",
        "filesizeformat",
        "floatformat",
    }
)


class Record:
    """What a caller may read of an object. Templates get the named values, and nothing else."""

    __slots__ = ("_names", "_read", "_text")

    def __init__(self, names: Iterable[str], read: Callable[[str], Any], text: str) -> None:
        self._names = frozenset(names)
        self._read = read
        self._text = text

    def __str__(self) -> str:
        return self._text

    def read(self, name: str) -> Any:
        """Raises KeyError for a name that this record does not have."""
        if name not in self._names:
            raise KeyError(name)
        return self._read(name)


def plain(text: str) -> str:
    """Exactly a str, cut to the length of a value. SafeString calls itself a str, too."""
    return str.__str__(text)[:MAX_VALUE]


def value_in(value: Any, bit: str) -> Any:
    """Raises KeyError or IndexError."""
    if type(value) is Record:
        return value.read(bit)
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
        #: Whether text that the author of the template did not write may come out.
        self.is_data = False
        refuse_translation(self.var)
        if isinstance(self.var, Variable):
            self.is_data = parser.is_data(self.var)
            self.var = SafeVariable(self.var.var)
        filters = []
        for function, arguments in self.filters:
            safe = [(lookup, self._argument(lookup, one)) for lookup, one in arguments]
            is_data = any(lookup and parser.is_data(one) for lookup, one in safe)
            self.is_data = is_data or (self.is_data and self._passes(function))
            filters.append((function, safe))
        self.filters = filters

    def _argument(self, lookup: bool, argument: Any) -> Any:  # noqa: FBT001  Django's pair
        refuse_translation(argument)
        return SilentVariable(argument.var) if lookup else argument

    def _passes(self, function: Any) -> bool:
        return function._filter_name not in CLEAN

    def resolve(self, context: Any, ignore_failures: bool = False) -> Any:  # noqa: FBT001, FBT002
        budget: Budget = context.render_context[BUDGET]
        budget.step()
        return super().resolve(context, ignore_failures)


def refuse_translation(value: Any) -> None:
    """Django would look the text up in the language of whoever asks first."""
    if isinstance(value, Promise) or (isinstance(value, Variable) and value.translate):
        raise TemplateSyntaxError("texts cannot be translated here")
