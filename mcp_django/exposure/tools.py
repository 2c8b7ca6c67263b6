"""What every tool is, whether we wrote it or the site did."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from mcp_django.context import CallContext
from mcp_django.protocol.results import ToolDefinition, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_django.exposure.permissions import Rights

#: The generic tools. Their number does not grow with the number of models.
BUILT_IN = frozenset(
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


@dataclass(frozen=True, kw_only=True)
class PendingCall:
    """An async tool, arguments bound: the loop awaits it, a thread makes the result of it."""

    awaitable: Awaitable[Any]
    finish: Callable[[Any], ToolResult]


Outcome: TypeAlias = ToolResult | PendingCall


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

    def call(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> Outcome:
        """Run it. Raises ToolError for what the model can mend; anything else is a bug."""
        ...
