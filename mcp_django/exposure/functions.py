"""`@mcp.tool`: a function of the site as a tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from asgiref.sync import iscoroutinefunction
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.utils.functional import Promise

from mcp_django.context import CallContext
from mcp_django.exposure.confirmations import with_token, without_token
from mcp_django.exposure.contracts import Contract
from mcp_django.exposure.docstrings import parse_docstring
from mcp_django.exposure.function_checks import (
    Permission,
    check_atomic,
    check_function,
    check_permission,
)
from mcp_django.exposure.function_rights import may_reach
from mcp_django.exposure.names import check_tool_name
from mcp_django.exposure.param_headers import param_headers
from mcp_django.exposure.questions import Conversation, awaited, begin
from mcp_django.exposure.refusals import refusals_in_words
from mcp_django.exposure.registry import Registry
from mcp_django.exposure.registry import registry as default_registry
from mcp_django.exposure.signatures import read_signature
from mcp_django.exposure.tools import Lane, Outcome, PendingCall
from mcp_django.principal import ACTION, DELETE, READ, WRITE
from mcp_django.protocol.results import ToolAnnotations, ToolDefinition, ToolResult

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise

    from mcp_django.exposure.permissions import Rights

Function = TypeVar("Function", bound=Callable[..., Any])


class FunctionTool:
    """A function as a tool: its definition is made once, when it is registered."""

    lane = Lane.WORK

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str,
        title: _StrOrPromise,
        description: _StrOrPromise | None,
        annotations: ToolAnnotations,
        scope: str,
        permission: Permission | None,
        atomic: bool,
        contract: Contract,
        asks: bool = False,
    ) -> None:
        self.name = check_tool_name(name)
        self.function = function
        self.is_async = iscoroutinefunction(function)
        self.scope = scope
        self.permission = check_permission(permission, tool=name)
        self.asks = asks
        # What stands before a question runs again with the answer.
        self.atomic = (asks and not self.is_async) or (
            atomic and check_atomic(function, tool=name)
        )
        self.signature = read_signature(function)
        documented = parse_docstring(function.__doc__ or "")
        self.arguments = contract.reader(name, self.signature, descriptions=documented.parameters)
        self.results = contract.maker(name, self.signature)
        self.title = title
        self.description = description or documented.text
        if not self.description:
            raise ImproperlyConfigured(
                f"The tool {name!r} has no description, so no model could know when to call it. "
                "Give the function a docstring."
            )
        self._definition = ToolDefinition(
            name=name,
            title="" if isinstance(title, Promise) else title,
            description="" if isinstance(self.description, Promise) else self.description,
            input_schema=with_token(self.arguments.schema, tool=name)
            if asks
            else self.arguments.schema,
            output_schema=self.results.schema,
            annotations=annotations,
            param_headers=param_headers(self.arguments.schema, tool=name),
        )

    def __repr__(self) -> str:
        return f"<FunctionTool {self.name}>"

    @property
    def definition(self) -> ToolDefinition:
        """What clients are told, lazy texts in the language of the moment."""
        if isinstance(self.title, Promise) or isinstance(self.description, Promise):
            return replace(
                self._definition, title=str(self.title), description=str(self.description)
            )
        return self._definition

    def exists_for(self, rights: Rights) -> bool:
        if not rights.has_scopes(frozenset({self.scope})):
            return False
        if rights.is_read_only and not self._definition.annotations.read_only:
            return False
        return may_reach(rights, self.permission, name=f"the tool {self.name}")

    def check(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> None:
        self.arguments.read_for(context, without_token(arguments) if self.asks else arguments)

    def call(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> Outcome:
        """Run the function. Raises ToolError for arguments that do not fit and for what the
        function refuses; other exceptions of the function pass.
        """
        conversation: Conversation | None = None
        if self.asks:
            conversation = self._converse(context, rights, arguments)
            arguments = without_token(arguments)
        bound = {
            **self.arguments.read_for(context, arguments),
            **self.signature.fill(context),
        }
        make = partial(self.results.make_for, context)
        if self.is_async:
            return PendingCall(awaitable=self._run_async(bound, conversation), finish=make)
        return self._run(bound, make, conversation)

    def _converse(
        self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]
    ) -> Conversation:
        return begin(
            context,
            rights,
            method="tools/call",
            name=self.name,
            arguments=arguments,
            # What changes nothing more the second time may be answered twice.
            is_single_use=not self._definition.annotations.idempotent,
        )

    def _run(
        self,
        bound: dict[str, Any],
        make: Callable[[Any], ToolResult],
        conversation: Conversation | None,
    ) -> ToolResult:
        with refusals_in_words(), ExitStack() as stack:
            for alias in self._databases():
                stack.enter_context(transaction.atomic(using=alias))
            # Inside the transaction: what cannot be answered must not be done either, or the
            # model does it twice.
            value = self.function(**bound)
            if conversation is not None:
                conversation.settle()
            return make(value)

    async def _run_async(self, bound: dict[str, Any], conversation: Conversation | None) -> Any:
        with refusals_in_words():
            returned = self.function(**bound)
            return await (awaited(conversation, returned) if conversation else returned)

    def _databases(self) -> list[str]:
        """The databases that one transaction spans, as Django chooses them for a view."""
        return [
            alias
            for alias in connections
            if connections.settings[alias]["ATOMIC_REQUESTS"]
            or (self.atomic and alias == DEFAULT_DB_ALIAS)
        ]


def scope_of(*, read_only: bool, destructive: bool | None) -> str:
    """The scope that a credential needs for a tool of this kind."""
    if read_only:
        return READ
    if destructive is None:
        return ACTION
    return DELETE if destructive else WRITE


@overload
def tool(function: Function, /) -> Function: ...


@overload
def tool(
    *,
    name: str | None = None,
    title: _StrOrPromise | None = None,
    description: _StrOrPromise | None = None,
    read_only: bool = False,
    destructive: bool | None = None,
    idempotent: bool = False,
    open_world: bool = False,
    permission: Permission | None = None,
    atomic: bool = False,
    input_schema: Mapping[str, Any] | None = None,
    output_schema: Mapping[str, Any] | None = None,
    serializer: Any = None,
    output_serializer: Any = None,
    asks: bool = False,
    registry: Registry | None = None,
) -> Callable[[Function], Function]: ...


def tool(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    title: _StrOrPromise | None = None,
    description: _StrOrPromise | None = None,
    read_only: bool = False,
    destructive: bool | None = None,
    idempotent: bool = False,
    open_world: bool = False,
    permission: Permission | None = None,
    atomic: bool = False,
    input_schema: Mapping[str, Any] | None = None,
    output_schema: Mapping[str, Any] | None = None,
    serializer: Any = None,
    output_serializer: Any = None,
    asks: bool = False,
    registry: Registry | None = None,
) -> Any:
    """Offer a function as a tool. Returns the function itself.

        @mcp.tool(read_only=True, permission="shop.view_order")
        def revenue(request: HttpRequest, since: date, until: date) -> Revenue:
            "What was sold between two days."

    The annotations become the schema of the arguments, the docstring becomes the description.
    A parameter annotated HttpRequest (or just called `request`) and one annotated `mcp.Context`
    are filled in by us. Without `permission`, which is "app.codename" or a function of the
    request, every active member of the staff may call the tool. `destructive` is assumed of a
    tool that is not `read_only`, unless you say otherwise. With `atomic`, or ATOMIC_REQUESTS, a
    sync function runs in a transaction that any exception rolls back.

    With `input_schema`, which is JSON Schema, or `serializer`, a Serializer of Django REST
    framework, the function has one parameter for all arguments: `arguments: dict[str, Any]`.
    `output_schema` and `output_serializer` take the place of the return annotation.

    With `asks` the function may ask with `mcp.Context.ask` and its like. A sync one runs in a
    transaction, as with `atomic`: what it did before a question without an answer is undone.

    Raises AlreadyRegistered when the name is taken, ImproperlyConfigured when the function
    cannot be a tool.
    """
    if read_only and destructive:
        raise ImproperlyConfigured("A tool is read_only or destructive, not both.")
    annotations = ToolAnnotations(
        read_only=read_only,
        destructive=not read_only if destructive is None else destructive,
        # What changes nothing changes nothing the second time.
        idempotent=idempotent or read_only,
        open_world=open_world,
    )

    contract = Contract(
        input_schema=input_schema,
        output_schema=output_schema,
        serializer=serializer,
        output_serializer=output_serializer,
    )

    def decorate(decorated: Function) -> Function:
        check_function(decorated)
        made = FunctionTool(
            decorated,
            name=name or decorated.__name__,
            title=title or "",
            description=description,
            annotations=annotations,
            scope=scope_of(read_only=read_only, destructive=destructive),
            permission=permission,
            atomic=atomic,
            contract=contract,
            asks=asks,
        )
        (registry or default_registry).add_tool(made)
        return decorated

    return decorate if function is None else decorate(function)
