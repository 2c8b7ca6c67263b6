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

#: A resource's URI in its canonical form, the name of a list, or a `control_topic`.
Topic: TypeAlias = str

# What processes tell each other beside that. No client subscribes to these.

#: A session was ended, or its subscriptions are others now.
SESSION = "session"
#: Events were added to a log.
LOG = "log"
#: A question was answered.
ANSWER = "answer"
#: A call is to be cancelled: a session's key and the id of the request. Without one, all of them.
CANCEL = "cancel"
#: Streams are to be closed: one by its key, those of a user, or those of a server.
CLOSE = "close"


def control_topic(kind: str, *keys: str) -> Topic:
    """No URI begins so: the kind is followed by a space."""
    return f"{kind} {' '.join(keys)}"


def is_control(topic: Topic) -> bool:
    return " " in topic


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
