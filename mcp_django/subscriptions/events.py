"""What changed, by name and never by content: whoever may still see it reads it anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from mcp_django.principal import DEFAULT_SERVER

#: Lists that a client is told about, as their list methods begin.
TOOLS = "tools"
PROMPTS = "prompts"
RESOURCES = "resources"
LISTS = frozenset({TOOLS, PROMPTS, RESOURCES})

#: A resource's URI in its canonical form, or the name of a list.
Topic: TypeAlias = str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing changed. Equal changes say the same, so that of several one is enough."""

    topic: Topic
    #: Of which server; None: of every one.
    server: str | None = None
    #: For these users only, primary keys as text. None: for everybody.
    users: frozenset[str] | None = None
    #: Nothing that anybody may read changed, but who may see the thing may have: those who no
    #: longer do are told once, and nobody else.
    is_hidden: bool = False
    #: And so may everything below it: who subscribed to a record of this collection is meant, too.
    is_whole: bool = False
    #: The label of a model. Who may not see that model must not learn that something happened to
    #: it, though they may see the topic. Empty: it is about the topic alone.
    model: str = ""

    def touches(self, topic: Topic) -> bool:
        """Whether it is about what somebody subscribed to."""
        if topic == self.topic:
            return True
        return self.is_whole and (not self.topic or topic.startswith(f"{self.topic}/"))

    def concerns(self, *, server: str, user: str) -> bool:
        is_here = self.server is None or self.server == server
        return is_here and (self.users is None or user in self.users)


#: So much changed that nobody can tell what: every subscription and every list is touched.
EVERYTHING = Change(topic="", is_whole=True)


def list_changed(
    topic: str, *, server: str = DEFAULT_SERVER, users: frozenset[str] | None = None
) -> Change:
    return Change(topic=topic, server=server, users=users)
