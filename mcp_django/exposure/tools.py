"""What every tool is, whether we wrote it or the site did."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.protocol.results import Result, ToolDefinition, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_django.exposure.permissions import Rights

#: The generic tools that change records.
WRITES = frozenset({"create_record", "update_record", "delete_record"})
#: All generic tools. Their number does not grow with the number of models.
BUILT_IN = WRITES | frozenset(
    {
        "list_models",
        "describe_model",
        "find_records",
        "get_record",
        "aggregate_records",
        "list_resources",
        "read_resource",
    }
)


class Lane(enum.Enum):
    """Which threads run a call: few and quick, or many and slow."""

    QUERY = "query"
    WORK = "work"
    #: For what sessions and streams keep. On SQLite it waits while a tool of the project writes,
    #: and no call that only reads waits with it.
    STORE = "store"


def in_band(error: ToolError) -> ToolResult:
    """What a tool refuses, the model reads."""
    return ToolResult.error(str(error))


@dataclass(frozen=True, kw_only=True)
class PendingCall:
    """Async code of the site, arguments bound: the loop awaits it, a thread makes the result.

    `refuse` makes the answer of a ToolError that it raised, or raises another error.
    """

    awaitable: Awaitable[Any]
    finish: Callable[[Any], Result]
    refuse: Callable[[ToolError], Result] = in_band


Outcome: TypeAlias = ToolResult | PendingCall


def code_uri(uri: object) -> bool:
    """Whether a URI leads to code of the site, which may be slow, and not to records."""
    return isinstance(uri, str) and not uri.startswith("django://")


class Tool(Protocol):
    """One tool. Registered once, shared by all threads, without state of a call."""

    @property
    def name(self) -> str: ...

    @property
    def definition(self) -> ToolDefinition: ...

    @property
    def lane(self) -> Lane: ...

    def exists_for(self, rights: Rights) -> bool:
        """Whether this caller may know of the tool at all: rights, switches and scopes."""
        ...

    def check(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> None:
        """Raise ToolError for arguments that `call` would refuse before it does anything."""
        ...

    def call(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> Outcome:
        """Run it. Raises ToolError for what the model can mend; anything else is a bug."""
        ...
