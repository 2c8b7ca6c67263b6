"""`@mcp.prompt`: a function of the site as a prompt."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, overload

from asgiref.sync import iscoroutinefunction
from django.core.exceptions import ImproperlyConfigured
from django.utils.functional import Promise

from mcp_django.context import CallContext
from mcp_django.exposure.docstrings import parse_docstring
from mcp_django.exposure.function_checks import Permission
from mcp_django.exposure.function_rights import may_reach
from mcp_django.exposure.names import check_name
from mcp_django.exposure.prompt_arguments import Argument, Complete, PromptArguments
from mcp_django.exposure.prompt_messages import messages_of
from mcp_django.exposure.prompt_types import description_of, reader_of
from mcp_django.exposure.questions import Conversation, awaited, begin
from mcp_django.exposure.refusals import refusals_in_words
from mcp_django.exposure.registry import Registry
from mcp_django.exposure.registry import registry as default_registry
from mcp_django.exposure.signatures import Signature, read_signature
from mcp_django.exposure.tools import PendingCall
from mcp_django.principal import READ
from mcp_django.protocol.results import PromptDefinition, PromptResult

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise

    from mcp_django.exposure.permissions import Rights

Function = TypeVar("Function", bound=Callable[..., Any])


class CodePrompt:
    """A function as a prompt: its definition is made once, when it is registered."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str,
        title: _StrOrPromise,
        description: _StrOrPromise | None,
        permission: Permission | None,
        completions: Mapping[str, Complete],
        asks: bool = False,
    ) -> None:
        self.asks = asks
        self.name = check_name(name, kind="prompt")
        self.function = function
        self.is_async = iscoroutinefunction(function)
        self.permission = check_permission(permission, prompt=name)
        self.signature = read_signature(function, type_of_untyped=str)
        documented = parse_docstring(function.__doc__ or "")
        self.arguments = PromptArguments(
            arguments_of(
                name,
                self.signature,
                descriptions=documented.parameters,
                completions=completions,
            )
        )
        self.title = title
        self.description = description or documented.text
        self._definition = PromptDefinition(
            name=name,
            title="" if isinstance(title, Promise) else title,
            description="" if isinstance(self.description, Promise) else self.description,
            arguments=self.arguments.definitions,
        )

    def __repr__(self) -> str:
        return f"<CodePrompt {self.name}>"

    @property
    def definition(self) -> PromptDefinition:
        """What clients are told, lazy texts in the language of the moment."""
        if isinstance(self.title, Promise) or isinstance(self.description, Promise):
            return replace(
                self._definition, title=str(self.title), description=str(self.description)
            )
        return self._definition

    def exists_for(self, rights: Rights) -> bool:
        is_reader = rights.has_scopes(frozenset({READ}))
        return is_reader and may_reach(rights, self.permission, name=f"the prompt {self.name}")

    def get(
        self, context: CallContext, rights: Rights, arguments: Mapping[str, str]
    ) -> PromptResult | PendingCall:
        """Run the function. Raises ToolError for arguments that do not fit and for what the
        function refuses; other exceptions of the function pass.
        """
        bound = {**self.arguments.read(arguments), **self.signature.fill(context)}
        call = {"method": "prompts/get", "name": self.name, "arguments": arguments}
        conversation = begin(context, rights, **call) if self.asks else None
        if self.is_async:
            return PendingCall(awaitable=self._run_async(bound, conversation), finish=self._result)
        with refusals_in_words():
            value = self.function(**bound)
            if conversation is not None:
                conversation.settle()
            return self._result(value)

    async def _run_async(self, bound: dict[str, Any], conversation: Conversation | None) -> Any:
        with refusals_in_words():
            returned = self.function(**bound)
            return await (awaited(conversation, returned) if conversation else returned)

    def _result(self, value: Any) -> PromptResult:
        messages = messages_of(value, prompt=self.name)
        return PromptResult(messages=messages, description=str(self.description))

    def complete(
        self, rights: Rights, argument: str, value: str, *, given: Mapping[str, str]
    ) -> list[str] | None:
        return self.arguments.complete(rights.request, argument, value)


def arguments_of(
    prompt: str,
    signature: Signature,
    *,
    descriptions: Mapping[str, str],
    completions: Mapping[str, Complete],
) -> list[Argument]:
    if unknown := sorted(completions.keys() - signature.annotations.keys()):
        raise ImproperlyConfigured(
            f"The prompt {prompt!r} has no argument {unknown[0]!r} to complete. "
            f"It has: {', '.join(signature.annotations) or 'none'}."
        )
    found = []
    for name, annotation in signature.annotations.items():
        try:
            reader = reader_of(annotation)
        except TypeError as error:
            raise ImproperlyConfigured(
                f"The argument {name} of the prompt {prompt!r}: {error}. Arguments of prompts "
                "are texts: take a str, int, date, bool, Literal or Enum, such as the key of a "
                "record, and look the record up yourself."
            ) from error
        found.append(
            Argument(
                name=name,
                reader=reader,
                required=name not in signature.defaults,
                description=descriptions.get(name, "") or description_of(annotation),
                complete=completions.get(name),
            )
        )
    return found


def check_permission(permission: Permission | None, *, prompt: str) -> Permission | None:
    """Raise ImproperlyConfigured for a text that is no "app.codename"."""
    if permission is None or callable(permission):
        return permission
    app, _, codename = permission.partition(".")
    if app and codename:
        return permission
    raise ImproperlyConfigured(
        f"{permission!r} is not a permission for the prompt {prompt!r}. Write the label of the "
        'app, a dot and the codename: permission="shop.view_order".'
    )


def check_function(function: Any) -> None:
    if not inspect.isfunction(function):
        raise ImproperlyConfigured(f"@mcp.prompt decorates functions, not {function!r}.")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ImproperlyConfigured(
            f"{function.__qualname__}() yields. A prompt returns its messages: a text, or a list."
        )


@overload
def prompt(function: Function, /) -> Function: ...


@overload
def prompt(
    *,
    name: str | None = None,
    title: _StrOrPromise | None = None,
    description: _StrOrPromise | None = None,
    permission: Permission | None = None,
    completions: Mapping[str, Complete] | None = None,
    asks: bool = False,
    registry: Registry | None = None,
) -> Callable[[Function], Function]: ...


def prompt(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    title: _StrOrPromise | None = None,
    description: _StrOrPromise | None = None,
    permission: Permission | None = None,
    completions: Mapping[str, Complete] | None = None,
    asks: bool = False,
    registry: Registry | None = None,
) -> Any:
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

    def decorate(decorated: Function) -> Function:
        check_function(decorated)
        made = CodePrompt(
            decorated,
            name=name or decorated.__name__,
            title=title or "",
            description=description,
            permission=permission,
            completions=completions or {},
            asks=asks,
        )
        (registry or default_registry).add_prompt(made)
        return decorated

    return decorate if function is None else decorate(function)
