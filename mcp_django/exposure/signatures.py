"""What a function asks for: the parameters that callers fill in, and those that we do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, get_type_hints

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest

from mcp_django.context import CallContext
from mcp_django.exposure.schemas import without_none

#: The return annotation of a function that has none.
MISSING = inspect.Signature.empty
#: Names that without an annotation mean something else than an argument.
NO_ARGUMENTS = frozenset({"self", "cls", "ctx", "context"})
UNRESOLVED = (NameError, AttributeError, TypeError, SyntaxError, ImportError)


class Given(Enum):
    """What we pass to a function ourselves."""

    REQUEST = "request"
    CONTEXT = "context"


@dataclass(frozen=True, kw_only=True)
class Signature:
    given: Mapping[str, Given]
    #: The types of the arguments, in the order of the function.
    annotations: Mapping[str, Any]
    defaults: Mapping[str, Any]
    returns: Any

    def fill(self, context: CallContext) -> dict[str, Any]:
        """The parameters that we pass for this call."""
        values = {Given.REQUEST: context.request, Given.CONTEXT: context}
        return {name: values[one] for name, one in self.given.items()}


def read_signature(
    function: Callable[..., Any], *, type_of_untyped: type | None = None
) -> Signature:
    """Raises ImproperlyConfigured for anything that a JSON object cannot call.

    A parameter without an annotation is refused, unless there is a type for those.
    """
    where = f"{function.__module__}.{function.__qualname__}()"
    hints = resolve_hints(function, where=where)
    given: dict[str, Given] = {}
    annotations: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        check_kind(parameter, where=where)
        if passed := given_for(name, hints):
            given[name] = passed
            continue
        if name not in hints and (type_of_untyped is None or name in NO_ARGUMENTS):
            raise ImproperlyConfigured(unannotated(name, where=where))
        annotations[name] = hints.get(name, type_of_untyped)
        if parameter.default is not parameter.empty:
            defaults[name] = parameter.default
    return Signature(
        given=given,
        annotations=annotations,
        defaults=defaults,
        returns=hints.get("return", MISSING),
    )


def resolve_hints(function: Callable[..., Any], *, where: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except UNRESOLVED as error:
        raise ImproperlyConfigured(unresolved(error, where=where)) from error


def unresolved(error: Exception, *, where: str) -> str:
    return (
        f"The annotations of {where} cannot be read: {error}. Import or define what they name at "
        "the top of the module, not inside a function and not under `if TYPE_CHECKING:`."
    )


def check_kind(parameter: inspect.Parameter, *, where: str) -> None:
    if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        return
    raise ImproperlyConfigured(
        f"{where} takes {parameter}, which is {parameter.kind.description}. Arguments arrive by "
        "name, so write out each parameter, without * and /."
    )


def given_for(name: str, hints: Mapping[str, Any]) -> Given | None:
    if name not in hints:
        return Given.REQUEST if name == "request" else None
    annotation = without_none(hints[name])
    if isinstance(annotation, type) and issubclass(annotation, HttpRequest):
        return Given.REQUEST
    return Given.CONTEXT if annotation is CallContext else None


def unannotated(name: str, *, where: str) -> str:
    if name in ("self", "cls"):
        return f"{where} is a method. A tool is a plain function: move it out of its class."
    if name in ("ctx", "context"):
        return f"{name} of {where} has no type. Annotate it: {name}: mcp.Context."
    return (
        f"{name} of {where} has no type, so callers could not know what to send. "
        f"Annotate it, for example {name}: str."
    )
