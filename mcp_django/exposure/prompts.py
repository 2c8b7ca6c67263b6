"""What every prompt is, whether code, a file or a row made it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from mcp_django.context import CallContext
from mcp_django.exposure.tools import PendingCall
from mcp_django.protocol.results import PromptDefinition, PromptResult

if TYPE_CHECKING:
    from mcp_django.exposure.permissions import Rights


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

    def complete(
        self, rights: Rights, argument: str, value: str, *, given: Mapping[str, str]
    ) -> list[str] | None:
        """Values of an argument that go on from `value`, best first. None: no such argument."""
        ...
