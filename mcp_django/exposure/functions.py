"""`@mcp.tool`: a function of the site as a tool."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, overload

from asgiref.sync import iscoroutinefunction
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.http import HttpRequest
from django.utils.functional import Promise

from mcp_django.context import CallContext
from mcp_django.exposure.docstrings import parse_docstring
from mcp_django.exposure.function_arguments import Arguments
from mcp_django.exposure.function_checks import (
    Permission,
    check_atomic,
    check_function,
    check_permission,
)
from mcp_django.exposure.function_results import Results
from mcp_django.exposure.names import check_tool_name
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

logger = logging.getLogger("mcp_django")


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
    ) -> None:
        self.name = check_tool_name(name)
        self.function = function
        self.is_async = iscoroutinefunction(function)
        self.scope = scope
        self.permission = check_permission(permission, tool=name)
        self.atomic = atomic and check_atomic(function, tool=name)
        self.signature = read_signature(function)
        documented = parse_docstring(function.__doc__ or "")
        self.arguments = Arguments(name, self.signature, descriptions=documented.parameters)
        self.results = Results(name, self.signature.returns)
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
            input_schema=self.arguments.schema,
            output_schema=self.results.schema,
            annotations=annotations,
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
        return self._is_within(rights) and self._is_permitted(rights.request)

    def _is_within(self, rights: Rights) -> bool:
        """Whether a credential that is held to some models reaches a function at all.

        Only the permission says what a function is about. Without one that names an allowed
        model it may touch anything, so it does not exist for such a credential.
        """
        restriction = rights.principal.restriction
        if restriction.models is None:
            return True
        if not isinstance(self.permission, str):
            return False
        app, _, codename = self.permission.partition(".")
        _, _, model = codename.partition("_")
        return restriction.allows_model(f"{app}.{model}".lower())

    def _is_permitted(self, request: HttpRequest) -> bool:
        if callable(self.permission):
            try:
                return bool(self.permission(request))
            except Exception:
                # Code of the site: this tool is not there, and all the others are.
                logger.exception("The permission of the tool %s failed.", self.name)
                return False
        if self.permission is not None:
            return request.user.has_perm(self.permission)
        return request.user.is_active and request.user.is_staff

    def call(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> Outcome:
        """Run the function. Raises ToolError for arguments that do not fit and for what the
        function refuses; other exceptions of the function pass.
        """
        bound = {**self.arguments.read(arguments), **self.signature.fill(context)}
        if self.is_async:
            return PendingCall(awaitable=self._run_async(bound), finish=self.results.make)
        return self._run(bound)

    def _run(self, bound: dict[str, Any]) -> ToolResult:
        with refusals_in_words(), ExitStack() as stack:
            for alias in self._databases():
                stack.enter_context(transaction.atomic(using=alias))
            # Inside the transaction: what cannot be answered must not be done either, or the
            # model does it twice.
            return self.results.make(self.function(**bound))

    async def _run_async(self, bound: dict[str, Any]) -> Any:
        with refusals_in_words():
            return await self.function(**bound)

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
        )
        (registry or default_registry).add_tool(made)
        return decorated

    return decorate if function is None else decorate(function)
