"""What a call of an action's tool is told: what was done, or what would be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec

from mcp_django.exposure import confirmations
from mcp_django.exposure.action_selections import Selection
from mcp_django.exposure.admin_action_answers import AdminAnswer
from mcp_django.exposure.admin_action_pages import ActionPage
from mcp_django.exposure.generic_tools import result_of
from mcp_django.exposure.permissions import Rights
from mcp_django.protocol.results import ToolResult

NOT_YET = "Nothing was done yet. If this is wanted, call again with"
ONCE_MORE = "The admin asks again. Mend the answer and call again with"


@dataclass(frozen=True, kw_only=True, eq=False)
class Replies:
    """Makes the results of one call, and the confirmations in them."""

    rights: Rights
    tool: str
    #: Where files are from: they cannot be read a second time.
    uri: str
    selection: Selection
    #: Nothing of it has to be confirmed.
    is_free: bool

    def redeem(self, token: Any, *, shown: str) -> None:
        """Spend a confirmation of what was shown. Raises ToolError."""
        arguments = self._bound()
        confirmations.redeem(self.rights, token, tool=self.tool, arguments=arguments, digest=shown)

    def question(self, title: str, page: ActionPage | None, answer: Any) -> str:
        """What a person is asked to agree to."""
        records = msgspec.json.decode(self.selection.samples)
        shown = "; ".join(", ".join(f"{one}" for one in record.values()) for record in records)
        more = ", ..." if len(self.selection.keys) > len(records) else ""
        parts = [f"{title}: {len(self.selection.keys)} records ({shown}{more})."]
        if page is not None:
            parts.append(page.text)
        if answer:
            parts.append(msgspec.json.format(msgspec.json.encode(answer)).decode())
        return "\n\n".join(parts)

    def done(self, answer: AdminAnswer, page: ActionPage | None = None) -> ToolResult:
        self.rights.returned = len(self.selection.keys)
        members: dict[str, Any] = {"messages": messages_of(answer), "link": answer.link}
        if page is not None:
            members["page"] = {"title": page.title, "text": page.text}
        told = self._told(answer.kind.value, members)
        beside = [] if answer.file is None else [answer.file.embedded(self.uri)]
        return replace(told, content=[*told.content, *beside], is_error=answer.is_error)

    def tried(
        self, answer: AdminAnswer, page: ActionPage | None, difference: dict[str, Any]
    ) -> ToolResult:
        """What would come of it, all of which was taken back."""
        members: dict[str, Any] = {"would_be": answer.kind.value, "messages": messages_of(answer)}
        if page is not None:
            members["page"] = {"title": page.title, "text": page.text}
            members["errors"] = page.errors(self.rights)
            members["answer_schema"] = page.schema if page.asks else {}
        told = self._told("tried", {**members, "difference": difference})
        return replace(told, is_error=answer.is_error)

    def preview(self, *, schema: dict[str, Any] | None, shown: str) -> ToolResult:
        """The records, before anything is done with them."""
        return self._told("preview", self._way_on(schema, shown, NOT_YET))

    def page(self, page: ActionPage, *, shown: str) -> ToolResult:
        """What the admin asks before it acts."""
        members = {"page": {"title": page.title, "text": page.text}}
        return self._told("asks", {**members, **self._way_on(page.schema, shown, NOT_YET)})

    def page_again(self, page: ActionPage, answer: AdminAnswer, *, shown: str) -> ToolResult:
        """What the admin finds wrong with an answer, or what it asks next."""
        members = {
            "page": {"title": page.title, "text": page.text},
            "errors": page.errors(self.rights),
            "messages": messages_of(answer),
            **self._way_on(page.schema, shown, ONCE_MORE),
        }
        return replace(self._told("asks again", members), is_error=True)

    def _way_on(self, schema: dict[str, Any] | None, shown: str, sentence: str) -> dict[str, Any]:
        """How to have done what is shown, of which `shown` is the digest."""
        members: dict[str, Any] = {"first": msgspec.Raw(self.selection.samples)}
        needed = ["the same arguments"]
        if schema is not None and schema["properties"]:
            members["answer_schema"] = schema
            needed.append("an answer that fits answer_schema")
        if not self.is_free:
            members[confirmations.ARGUMENT] = confirmations.issue(
                self.rights, tool=self.tool, arguments=self._bound(), digest=shown
            )
            needed.append("this confirmation")
        return {**members, "next": f"{sentence} {', '.join(needed)}."}

    def _bound(self) -> dict[str, str]:
        """The arguments that a confirmation is for: these records, however they were named."""
        return {"records": self.selection.digest}

    def _told(self, outcome: str, members: dict[str, Any]) -> ToolResult:
        found = {"outcome": outcome, "records": len(self.selection.keys), **members}
        given = {name: value for name, value in found.items() if value not in ([], {}, "")}
        return result_of(msgspec.json.encode(given))


def messages_of(answer: AdminAnswer) -> list[dict[str, str]]:
    return [{"level": one.level_name, "text": one.text} for one in answer.said]
