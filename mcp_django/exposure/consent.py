"""Writes that staff want a person to agree to: tried first, and done with a confirmation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_django.exposure import confirmations
from mcp_django.exposure.permissions import Rights

NEXT = (
    "Nothing was changed. Show this to the person; if they agree, repeat the call with this "
    "confirmation."
)


def needs_consent(rights: Rights, tool: str) -> bool:
    decision = rights.exposed.decisions.tools.get(tool)
    return decision is not None and decision.needs_confirmation


class Consent:
    """Of a person to one call. Where staff ask for none, everything here does nothing."""

    def __init__(
        self,
        rights: Rights,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        token: str | None,
        dry_run: bool,
    ) -> None:
        self.rights = rights
        self.tool = tool
        self.arguments = arguments
        self.token = token
        self.is_needed = needs_consent(rights, tool) and not dry_run
        #: Whether to take it all back.
        self.is_tried = dry_run or (self.is_needed and not token)
        self._digest = ""

    def check(self, digest: str) -> None:
        """Raise ToolError for a confirmation of something else, or remember what is shown.

        `digest` is that of what the call starts from. To be called in its transaction.
        """
        self._digest = digest
        if self.is_needed and not self.is_tried:
            confirmations.redeem(
                self.rights, self.token, tool=self.tool, arguments=self.arguments, digest=digest
            )

    def with_token(self, answer: dict[str, Any]) -> dict[str, Any]:
        if not (self.is_needed and self.is_tried):
            return answer
        token = confirmations.issue(
            self.rights, tool=self.tool, arguments=self.arguments, digest=self._digest
        )
        return {**answer, "confirmation": token, "next": NEXT}
