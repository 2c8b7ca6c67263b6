"""The base of what a site makes of functions: tools, prompts and resources."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from asgiref.sync import iscoroutinefunction
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.utils.functional import Promise

from mcp_django.context import CallContext, running
from mcp_django.exposure.functions.results import refusals_in_words
from mcp_django.exposure.functions.signatures import (
    Permission,
    check_permission,
    parse_docstring,
    read_signature,
)
from mcp_django.exposure.primitives import PendingCall, may_reach
from mcp_django.exposure.questions.conversation import Elicitation, awaited
from mcp_django.exposure.registry import check_options
from mcp_django.principal import READ
from mcp_django.protocol.results import ToolDefinition

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise

    from mcp_django.exposure.permissions import Rights

Function = TypeVar("Function", bound=Callable[..., Any])
T = TypeVar("T")


class SiteFunction:
    """A function of the site, checked when it is registered, and shared by all threads."""

    #: What it becomes: "tool", "prompt" or "resource".
    kind: ClassVar[str]
    #: The decorator as people write it, and what a function returns that does not yield.
    decorator: ClassVar[str]
    #: A TypedDict of the options of the decorator.
    options: ClassVar[type]
    no_generators: ClassVar[str]
    #: What a model needs a description for. Empty where it does without.
    described_for: ClassVar[str] = ""
    #: The method of the calls that run it.
    method: ClassVar[str]
    #: The type of a parameter that has no annotation. None: each needs one.
    type_of_untyped: ClassVar[type | None] = None
    #: Turns the ways of Django to refuse into errors of ours.
    refusals: Callable[[], AbstractContextManager[None]] = staticmethod(refusals_in_words)
    #: The scope that a credential needs.
    scope = READ

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        key: str,
        title: _StrOrPromise | None = None,
        description: _StrOrPromise | None = None,
        permission: Permission | None = None,
        asks: bool = False,
    ) -> None:
        """`key` is its name, or its URI. Raises ImproperlyConfigured."""
        self.key = key
        self.function = function
        self.is_async = iscoroutinefunction(function)
        self.asks = asks
        self.permission = check_permission(permission, of=f"{self.kind} {key!r}")
        self.signature = read_signature(function, type_of_untyped=self.type_of_untyped)
        text, self.parameters = parse_docstring(function.__doc__ or "")
        self.title = title or ""
        self.description = description or text
        if self.described_for and not self.description:
            raise ImproperlyConfigured(
                f"The {self.kind} {key!r} has no description, so no model could know when to "
                f"{self.described_for}. Give the function a docstring."
            )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.key}>"

    def exists_for(self, rights: Rights) -> bool:
        """Whether this caller may know of it at all."""
        has_scope = rights.has_scopes(frozenset({self.scope}))
        return has_scope and may_reach(rights, self.permission, name=f"the {self.kind} {self.key}")

    def localized(self, definition: ToolDefinition) -> ToolDefinition:
        """The definition with its lazy texts in the language of the moment."""
        if isinstance(self.title, Promise) or isinstance(self.description, Promise):
            return replace(definition, title=str(self.title), description=str(self.description))
        return definition

    def run(
        self,
        context: CallContext,
        rights: Rights,
        arguments: Mapping[str, Any],
        *,
        finish: Callable[[Any], T],
        sent: Mapping[str, Any],
        key: str | None = None,
        is_single_use: bool = False,
    ) -> T | PendingCall:
        """What `finish` makes of the value, or of an async function what is pending.

        Answers to questions are good for the arguments as the client `sent` them. Raises what
        `refusals` does, and ProtocolError as `Elicitation` does; other exceptions of the function
        pass.
        """
        conversation = None
        if self.asks:
            context.interview = conversation = Elicitation(
                context,
                rights,
                method=self.method,
                name=key or self.key,
                arguments=sent,
                is_single_use=is_single_use,
            )
        called = partial(self.function, **arguments, **self.signature.fill(context))
        if self.is_async:
            awaitable = self._run_async(context, called, conversation)
            return PendingCall(awaitable=awaitable, finish=finish)
        with self.refusals(), running(context), ExitStack() as stack:
            for alias in self.databases():
                stack.enter_context(transaction.atomic(using=alias))
            if conversation is not None:
                conversation.agree_first()
            # Inside the transaction: what cannot be answered must not be done either, or the
            # model does it twice.
            value = called()
            if conversation is not None:
                conversation.settle()
            return finish(value)

    async def _run_async(
        self, context: CallContext, called: Callable[[], Any], conversation: Elicitation | None
    ) -> Any:
        with self.refusals(), running(context):
            return await (awaited(conversation, called) if conversation else called())

    def databases(self) -> Iterable[str]:
        """The databases that a transaction around a sync function spans."""
        return ()


def registering(
    kind: type[SiteFunction], add: Callable[[Any], None], options: Mapping[str, Any], **given: Any
) -> Callable[[Function], Function]:
    """A decorator that registers functions as one kind, and returns them. `given` is what it is
    made of besides. Raises ImproperlyConfigured for an option that there is not, and decorating
    what is no function, or yields.
    """
    check_options(kind.decorator, options, kind.options)

    def decorate(function: Function) -> Function:
        if not inspect.isfunction(function):
            raise ImproperlyConfigured(f"{kind.decorator} decorates functions, not {function!r}.")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ImproperlyConfigured(f"{function.__qualname__}() yields. {kind.no_generators}")
        add(kind(function, **given, **options))
        return function

    return decorate


def known_now(text: _StrOrPromise) -> str:
    """A text as it can be said at any time: nothing for one that is lazy."""
    return "" if isinstance(text, Promise) else text
