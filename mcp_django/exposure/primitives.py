"""What every tool is, whether we wrote it or the site did."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.functions.signatures import Permission
from mcp_django.exposure.limits import raise_lost_database
from mcp_django.exposure.uris import REST_OBJECTS, SCHEME
from mcp_django.protocol.results import (
    PromptDefinition,
    PromptResult,
    Result,
    ToolDefinition,
    ToolResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_django.exposure.permissions import Rights


#: The generic tools that change records.
WRITES = frozenset(
    {"create_record", "update_record", "update_records", "undo_change", "delete_record"}
)
#: All generic tools. Their number does not grow with the number of models.
BUILT_IN = WRITES | frozenset(
    {
        "list_models",
        "describe_model",
        "find_records",
        "get_record",
        "get_history",
        "aggregate_records",
        "export_records",
        "list_resources",
        "read_resource",
    }
)


@dataclass(frozen=True, kw_only=True)
class PendingCall:
    """Async code of the site, arguments bound: the loop awaits it, a thread makes the result.

    `refuse` makes the answer of a ToolError that it raised, or raises another error. What a tool
    refuses, the model reads.
    """

    awaitable: Awaitable[Any]
    finish: Callable[[Any], Any]
    refuse: Callable[[ToolError], Result] = ToolResult.of_error

    def then(self, make: Callable[[Any], Any], **changes: Any) -> PendingCall:
        """The same with `make` of its result."""
        return replace(self, finish=lambda value: make(self.finish(value)), **changes)


Outcome: TypeAlias = ToolResult | PendingCall


def code_uri(uri: object) -> bool:
    """Whether a URI leads to code of the site, which may be slow, and not to records."""
    return isinstance(uri, str) and (not uri.startswith(SCHEME) or uri.startswith(REST_OBJECTS))


class Tool(Protocol):
    """One tool. Registered once, shared by all threads, without state of a call."""

    @property
    def name(self) -> str: ...

    @property
    def definition(self) -> ToolDefinition: ...

    @property
    def asks(self) -> bool:
        """Whether it may end a call with questions of its own."""
        ...

    @property
    def confirms_itself(self) -> bool:
        """Whether it shows what it would do and asks, so that nobody is to be asked twice."""
        ...

    def exists_for(self, rights: Rights) -> bool:
        """Whether this caller may know of the tool at all: rights, switches and scopes."""
        ...

    def check(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> None:
        """Raise ToolError for arguments that `call` would refuse before it does anything."""
        ...

    def call(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> Outcome:
        """Run it. Raises ToolError for what the model can fix; anything else is a bug."""
        ...


# What every prompt is, whether code, a file or a row made it.


class Prompt(Protocol):
    """One prompt. Registered once, shared by all threads, without state of a call."""

    @property
    def name(self) -> str: ...

    @property
    def definition(self) -> PromptDefinition: ...

    def exists_for(self, rights: Rights) -> bool:
        """Whether this caller may know of the prompt at all."""
        ...

    def get(
        self, context: CallContext, rights: Rights, arguments: Mapping[str, str]
    ) -> PromptResult | PendingCall:
        """Its messages. Raises ToolError for arguments that do not fit."""
        ...

    def complete(self, rights: Rights, argument: str, value: str) -> list[str] | None:
        """Values of an argument that go on from `value`, best first. None: no such argument."""
        ...


# Who may reach a function of the site, be it a tool, a resource or a prompt.

logger = logging.getLogger("mcp_django")


def may_reach(rights: Rights, permission: Permission | None, *, name: str) -> bool:
    """Whether the permission lets this caller in. None: every active member of the staff."""
    restriction = rights.principal.restriction
    if restriction.models is not None:
        # Only its permission says what a function is about: without one it may touch anything.
        if not isinstance(permission, str):
            return False
        app, _, codename = permission.partition(".")
        _, _, model = codename.partition("_")
        if not restriction.allows_model(f"{app}.{model}".lower()):
            return False
    if callable(permission):
        try:
            return bool(permission(rights.request))
        except Exception as error:
            raise_lost_database(error)
            # Code of the site: this function is not there, and all the others are.
            logger.exception("The permission of %s failed.", name)
            return False
    if permission is not None:
        return bool(rights.request.user.has_perm(permission))
    user = rights.request.user
    return user.is_active and user.is_staff
