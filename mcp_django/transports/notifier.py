"""From changes to the streams that may be notified, after checking rights again."""

from __future__ import annotations

import logging
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Any, TypeAlias

from django.apps import apps
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from mcp_django.auth.authenticate import authenticate, check_switches, is_over
from mcp_django.conf import get_config
from mcp_django.exceptions import AuthenticationFailed, Closed, ServiceUnavailable, TooManyRequests
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.primitives import Lane
from mcp_django.principal import Principal
from mcp_django.stores.cache_version import CacheVersion, cache_version
from mcp_django.subscriptions.admission import Existence, Verdict, admit_all
from mcp_django.subscriptions.topics import CLOSE, LISTS, Change, Topic, Uris, control_topic
from mcp_django.tracing import span_of
from mcp_django.transports.middleware import Caller, Chain, loaded
from mcp_django.transports.requests import build_request, own_copy
from mcp_django.transports.threads import lanes


@dataclass(eq=False, slots=True)
class Reader:
    """Whoever opened a stream, with the credential that they opened it with. In threads."""

    scope: dict[str, Any]
    #: Who that is now. Raises as `authenticate` does.
    recognize: Callable[[HttpRequest], Principal] = authenticate

    def request(self, body: bytes = b"") -> HttpRequest:
        """A new request of theirs, without a user."""
        return build_request(self.scope, body)


class StreamGroup:
    """Streams whose readers have the same rights: what is found out for one holds for all."""

    __slots__ = ("principal", "reader", "streams", "user")

    def __init__(self, principal: Principal) -> None:
        self.principal = principal
        self.user = "" if principal.user.pk is None else str(principal.user.pk)
        self.streams: dict[Subscriber, None] = {}
        #: For deliveries: who the reader was found to be a moment ago.
        self.reader: Any = None


class Subscriber(ABC):
    """A stream that hears of changes. They mark names as stale, and its writer takes the names. A
    second change of the same name costs nothing: a client that does not read costs no more than
    what it asked for.
    """

    __slots__ = (
        "_is_due",
        "_stale_names",
        "is_stale",
        "key",
        "lists",
        "source",
        "stream_group",
        "uris_by_topic",
    )

    def __init__(
        self,
        *,
        principal: Principal,
        source: Reader,
        lists: frozenset[Topic] = frozenset(),
        uris: Uris | None = None,
    ) -> None:
        self.key = secrets.token_urlsafe(16)
        #: Who reads the stream.
        self.source = source
        self.lists = lists
        #: Changes could not be looked into: tell of everything as soon as that is possible.
        self.is_stale = False
        #: Of its own, until a hub puts it with others.
        self.stream_group = StreamGroup(principal)
        self.uris_by_topic: Uris = uris or {}
        self._stale_names: dict[str, None] = {}
        self._is_due = False

    @property
    def kind(self) -> tuple[object, ...]:
        """What decides on the rights of its reader."""
        principal = self.stream_group.principal
        # A credential that nobody can name may end without the next one's.
        credential = principal.credential_id or self.key
        return (principal.key, credential, principal.scopes, principal.restriction)

    @property
    def topics(self) -> frozenset[Topic]:
        return self.lists.union(self.uris_by_topic)

    @property
    def uris(self) -> tuple[str, ...]:
        return tuple(uri for uris in self.uris_by_topic.values() for uri in uris)

    def uris_without(self, gone: set[str]) -> Uris:
        left = {
            topic: tuple(uri for uri in uris if uri not in gone)
            for topic, uris in self.uris_by_topic.items()
        }
        return {topic: uris for topic, uris in left.items() if uris}

    def is_closed_by(self, change: Change) -> bool:
        """Return whether a control topic says that this stream is to be closed."""
        principal, user = self.stream_group.principal, self.stream_group.user
        return change.is_at(principal.tenant) and change.topic in (
            control_topic(CLOSE, self.key),
            control_topic(CLOSE, "server", principal.server),
            control_topic(CLOSE, "user", principal.server, user),
        )

    def mark_stale(self, names: list[str]) -> None:
        """These lists and URIs have changed."""
        for name in names:
            self._stale_names[name] = None
        self.wake()

    def drop(self, names: Iterable[str]) -> None:
        """The client does not subscribe to these any more."""
        for name in names:
            self._stale_names.pop(name, None)

    def keep_alive(self) -> None:
        self._is_due = True
        self.wake()

    @abstractmethod
    def wake(self) -> None:
        """Have it written soon."""

    @abstractmethod
    def end(self) -> None:
        """End it in good order."""

    # For the writer of the stream

    def take(self) -> tuple[str, ...]:
        """The lists and URIs that the client is to be notified of."""
        if not self._stale_names:
            return ()
        dirty = tuple(self._stale_names)
        self._stale_names.clear()
        return dirty

    def take_sign_of_life(self) -> bool:
        """Whether one is due."""
        is_due, self._is_due = self._is_due, False
        return is_due


logger = logging.getLogger("mcp_django.streams")

#: Principals that are looked at in one go. Calls get their turn in between.
BATCH = 50
#: Seconds after which they do so in any case: a rule of the site may take its time for each.
SLICE = 0.2
#: Seconds after which the look at a stream, at its sign of life, identifies the reader anew, even
#: if nothing says that rights changed. Other streams of the same reader are looked at in between.
RENEW = 1.0
#: Seconds after which a change does so as well. Signs of life come sooner, so that a change for a
#: thousand readers finds all of them known.
BELIEVED = 20.0

#: What says that a credential is not good any more.
REFUSALS = (AuthenticationFailed, Closed, TooManyRequests)

SetTopics: TypeAlias = Callable[[Subscriber, Uris], None]


@dataclass
class PendingUpdate:
    """What happened to one topic, all changes of a batch together."""

    #: Only those who lost access are notified.
    is_hidden: bool = True
    #: Only readers who may view one of these models are notified. Empty: every reader.
    models: set[str] | None = None

    def add(self, change: Change) -> None:
        self.is_hidden = self.is_hidden and change.is_hidden
        if self.models is None:
            self.models = {change.model} if change.model else set()
        elif self.models:
            self.models = {*self.models, change.model} if change.model else set()

    def may_be_told(self, rights: Rights) -> bool:
        return not self.models or any(
            rights.may_view(apps.get_model(label)) for label in self.models
        )


class GroupUpdates:
    """Streams of one group, and what has changed for those that subscribe to it."""

    __slots__ = ("stream_group", "streams", "topics")

    def __init__(self, stream_group: StreamGroup) -> None:
        self.stream_group = stream_group
        self.streams: dict[Subscriber, None] = {}
        self.topics: dict[Topic, PendingUpdate] = {}

    def uris(self, rights: Rights) -> set[str]:
        """Those that the readers subscribe to, as far as they may view the models."""
        return {
            uri
            for topic, news in self.topics.items()
            if topic not in LISTS and news.may_be_told(rights)
            for stream in self.streams
            for uri in stream.uris_by_topic.get(topic, ())
        }

    def tell(self, verdicts: Verdicts | None, set_topics: SetTopics) -> None:
        for stream in self.streams:
            if verdicts is None:
                # At the next look it is notified of everything instead.
                stream.is_stale = True
            elif not verdicts.is_known:
                stream.end()
            else:
                self._tell(stream, verdicts.by_uri, set_topics)

    def _tell(
        self, stream: Subscriber, verdicts: dict[str, Verdict], set_topics: SetTopics
    ) -> None:
        names: list[str] = []
        gone: set[str] = set()
        for topic, news in self.topics.items():
            names += [topic] if topic in stream.lists else []
            for uri in stream.uris_by_topic.get(topic, ()):
                verdict = verdicts.get(uri, Verdict.SILENT)
                if verdict is Verdict.GONE:
                    gone.add(uri)
                if verdict is Verdict.GONE or (verdict is Verdict.VISIBLE and not news.is_hidden):
                    names.append(uri)
        if names:
            stream.mark_stale(names)
        if gone:
            set_topics(stream, stream.uris_without(gone))


class Notifier:
    """One batch of changes after the other: what changes meanwhile waits together. So rules of the
    site that are slow delay notifications, and one thread at most, but no calls.
    """

    def __init__(self) -> None:
        self.is_running = False
        #: What waits for the next batch. Whoever adds to it sees that it runs.
        self._waiting: dict[StreamGroup, GroupUpdates] = {}

    @property
    def is_idle(self) -> bool:
        return self.is_running or not self._waiting

    def add(self, streams: Iterable[Subscriber], change: Change, *, topic: Topic) -> None:
        """Tell these, as far as the change concerns them."""
        for stream in streams:
            group = stream.stream_group
            if change.concerns(group.principal, user=group.user):
                updates = self._updates(stream)
                updates.topics.setdefault(topic, PendingUpdate()).add(change)

    def _updates(self, stream: Subscriber) -> GroupUpdates:
        group = stream.stream_group
        updates = self._waiting.get(group)
        if updates is None:
            updates = self._waiting[group] = GroupUpdates(group)
        updates.streams[stream] = None
        return updates

    def tell_all(self, stream: Subscriber) -> None:
        """Anything that it subscribes to may have changed."""
        for topic in stream.topics:
            self.add([stream], Change(topic=topic), topic=topic)

    def check_rights(self, stream: Subscriber) -> None:
        """Nothing changed that we know of, but is the reader still who it was?"""
        self._updates(stream)

    async def run(self, set_topics: SetTopics) -> None:
        """Until nothing waits. Nothing happens where this runs already."""
        if self.is_running:
            return
        self.is_running = True
        try:
            while self._waiting:
                groups, self._waiting = list(self._waiting.values()), {}
                existence = Existence()
                while groups:
                    some = groups[:BATCH]
                    count = sum(len(group.streams) for group in some)
                    with span_of("notify", {"mcp_django.streams": count}):
                        for verdicts in await judge_soon(some, existence):
                            groups.pop(0).tell(verdicts, set_topics)
        finally:
            self.is_running = False


@dataclass(frozen=True, kw_only=True)
class Verdicts:
    #: False: the credential is not good any more.
    is_known: bool = True
    by_uri: dict[str, Verdict] = field(default_factory=dict)


async def judge_soon(groups: list[GroupUpdates], existence: Existence) -> list[Verdicts | None]:
    """The verdicts on as many of them as there is time for, at least one."""
    try:
        return await lanes[Lane.QUERY].start(
            partial(judge, groups, existence),
            seconds=get_config().tool_timeout,
            cancelled=Event(),
            is_owed=True,
        )
    except Exception:
        # Told too much costs a read that is refused. Told nothing costs a stale client.
        logger.exception("Whom to tell of changes cannot be found out.")
        return [None] * len(groups)


# In the thread


def judge(groups: list[GroupUpdates], existence: Existence) -> list[Verdicts | None]:
    found: list[Verdicts | None] = []
    end = time.monotonic() + SLICE
    for group in groups:
        found.append(judge_one(group, existence))
        if time.monotonic() >= end:
            break
    return found


def judge_one(group: GroupUpdates, existence: Existence) -> Verdicts | None:
    stream = next(iter(group.streams))
    try:
        chain = loaded.chain()
        if chain is not None:
            return judge_through(chain, stream, group)
        request, principal = current(stream, believed=BELIEVED if group.topics else RENEW)
        return verdicts_on(group, request, principal, existence=existence)
    except REFUSALS:
        return Verdicts(is_known=False)
    except ServiceUnavailable:
        return None
    except Exception:
        logger.exception("Whether a stream may be told of a change cannot be found out.")
        return None


def verdicts_on(
    group: GroupUpdates,
    request: HttpRequest,
    principal: Principal,
    *,
    existence: Existence | None = None,
) -> Verdicts:
    rights = Rights(request, principal)
    return Verdicts(by_uri=admit_all(rights, group.uris(rights), existence=existence))


def judge_through(chain: Chain, stream: Subscriber, group: GroupUpdates) -> Verdicts | None:
    """The verdicts inside the project's middleware, which may choose a tenant and so the rows.

    Then nothing is cached, and nothing is shared with other readers. What middleware refuses today
    it may let pass tomorrow, but a credential does not come back.
    """
    request = stream.source.request()
    caller = Caller(request, stream.source.recognize)
    verdicts: list[Verdicts] = []

    def look(request: HttpRequest) -> HttpResponseBase:
        try:
            principal = caller.recognize(request)
            check_switches(principal)
        except REFUSALS:
            verdicts.append(Verdicts(is_known=False))
        else:
            if principal.key != group.stream_group.principal.key:
                verdicts.append(Verdicts(is_known=False))
            elif not caller.is_replaced(principal):
                own = own_copy(principal)
                request.user = own.user
                verdicts.append(verdicts_on(group, request, own))
        return HttpResponse()

    with chain.responding(request, look):
        return verdicts[0] if verdicts else None


@dataclass(frozen=True, slots=True)
class CachedReader:
    """Who reads a stream, as was found out a moment ago."""

    request: HttpRequest
    principal: Principal
    cache_version: CacheVersion
    at: float


def current(stream: Subscriber, *, believed: float) -> tuple[HttpRequest, Principal]:
    """Who reads the stream, as found out so many seconds ago at most. Raises as `authenticate`."""
    stream_group = stream.stream_group
    now, reader = cache_version(stream_group.principal.server), stream_group.reader
    is_fresh = reader is not None and time.monotonic() - reader.at < believed
    if reader is None or not is_fresh or reader.cache_version != now or is_over(reader.principal):
        # Where it fails, nobody is to believe what was found out before.
        stream_group.reader = None
        request = stream.source.request()
        principal = own_copy(stream.source.recognize(request))
        request.user = principal.user
        if principal.key != stream_group.principal.key:
            raise AuthenticationFailed
        check_switches(principal)
        reader = stream_group.reader = CachedReader(request, principal, now, time.monotonic())
    return reader.request, reader.principal
