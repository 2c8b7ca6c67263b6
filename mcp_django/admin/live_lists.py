"""Sessions and streams as staff read them: newest first, a page at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from django.contrib.auth import get_user_model
from django.core.paginator import Paginator
from django.db.models import Model
from django.http import HttpRequest

from mcp_django.exposure.admin_log import one_line
from mcp_django.models import LiveStream
from mcp_django.models import Session as SessionRow
from mcp_django.principal import DEFAULT_SERVER
from mcp_django.stores.chosen import get_store
from mcp_django.stores.interface import OpenStream, Session
from mcp_django.subscriptions.events import CLOSE, LISTS, Change, control_topic
from mcp_django.subscriptions.outbox import publish
from mcp_django.transports.sessions import end_session

ON_PAGE = 50
#: URIs of one line, and characters of each. A client may subscribe to many long ones.
MOST_URIS, LONGEST_URI = 20, 200
LONGEST_CLIENT = 100

One: TypeAlias = Session | OpenStream


@dataclass(frozen=True, kw_only=True)
class Line:
    key: str
    who: str
    #: Whether `who` is the name of a user.
    is_user: bool
    client: str
    #: transport of a session, kind of a stream.
    kind: str
    revision: str
    began: datetime
    #: When a session was last heard of.
    seen: datetime | None
    is_ready: bool
    lists: Sequence[str]
    uris: Sequence[str]
    #: URIs that are not shown.
    more: int

    @property
    def title(self) -> str:
        return ", ".join(filter(None, (self.who, self.client)))


@dataclass(frozen=True, kw_only=True)
class Part:
    """One of the two lists: whose it is to see, and to end what is in it."""

    #: Also of the field that ends one of them, and of the parameter with the number of its page.
    name: str
    title: str
    noun: str
    model: type[Model]
    find: Callable[[], Sequence[One]]
    end: Callable[[str], object]

    def may_view(self, request: HttpRequest) -> bool:
        return self._has(request, "view")

    def may_end(self, request: HttpRequest) -> bool:
        return self.may_view(request) and self._has(request, "delete")

    def _has(self, request: HttpRequest, verb: str) -> bool:
        return request.user.has_perm(f"mcp_django.{verb}_{self.model._meta.model_name}")

    def all(self) -> list[One]:
        """Those of this server. Raises what the store raises."""
        return [one for one in self.find() if one.server == DEFAULT_SERVER]


def close_stream(key: str) -> None:
    """In whatever process it is."""
    publish({Change(topic=control_topic(CLOSE, key))})


SESSIONS = Part(
    name="sessions",
    title="Sessions",
    noun="session",
    model=SessionRow,
    find=lambda: get_store().sessions(),
    end=end_session,
)
STREAMS = Part(
    name="streams",
    title="Streams",
    noun="stream",
    model=LiveStream,
    find=lambda: get_store().streams(),
    end=close_stream,
)
PARTS = (SESSIONS, STREAMS)


def listed(part: Part, *, user: str | None, page: str | None) -> Any:
    """A page of lines, of one user if `user` is a key. Raises what the store raises."""
    found = [one for one in part.all() if user in (None, one.user)]
    shown: Any = Paginator(found, ON_PAGE).get_page(page)
    shown.object_list = lines(list(shown.object_list))
    return shown


def lines(found: Sequence[One]) -> list[Line]:
    names = names_of({one.user for one in found if one.user})
    return [line(one, names.get(one.user)) for one in found]


def line(one: One, name: str | None) -> Line:
    if isinstance(one, Session):
        topics: Iterable[str] = sorted(get_store().subscriptions(one.key))
        given = f"{one.client.get('name', '')} {one.client.get('version', '')}"
        kind, began, seen, is_ready = one.transport, one.created, one.seen, one.is_initialized
    else:
        topics, given = one.topics, one.client
        kind, began, seen, is_ready = one.kind, one.opened, None, True
    uris = [topic for topic in topics if topic not in LISTS]
    return Line(
        key=one.key,
        # The user may have been deleted since.
        who=name or ("anonymous" if not one.user else one_line(one.principal)),
        is_user=name is not None,
        client=one_line(given, most=LONGEST_CLIENT),
        kind=kind,
        revision=one.revision,
        began=began,
        seen=seen,
        is_ready=is_ready,
        lists=[topic for topic in topics if topic in LISTS],
        uris=[short(uri) for uri in uris[:MOST_URIS]],
        more=max(0, len(uris) - MOST_URIS),
    )


def short(uri: str) -> str:
    text = one_line(uri, most=LONGEST_URI)
    return text if len(uri) <= LONGEST_URI else f"{text}…"


def names_of(keys: set[str]) -> dict[str, str]:
    """Of users, by their keys as text."""
    users = get_user_model()
    found = users._default_manager.filter(pk__in=keys)
    return {str(pk): str(name) for pk, name in found.values_list("pk", users.USERNAME_FIELD)}


def key_of_user(username: str) -> str | None:
    """The key as text of a user by name, or None."""
    users: Any = get_user_model()
    found = users._default_manager.filter(**{users.USERNAME_FIELD: username.replace("\0", "")})
    key = found.values_list("pk", flat=True).first()
    return None if key is None else str(key)
