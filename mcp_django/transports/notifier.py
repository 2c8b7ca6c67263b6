"""From changes to the streams that may be notified, after checking rights again."""

from __future__ import annotations

import logging
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any, TypeAlias

from django.apps import apps
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from mcp_django.auth.authenticate import authenticate, check_switches, is_over
from mcp_django.conf import get_config
from mcp_django.exceptions import AuthenticationFailed, Closed, ServiceUnavailable, TooManyRequests
from mcp_django.exposure.permissions import Rights
from mcp_django.principal import Principal
from mcp_django.stores.cache_version import CacheVersion, cache_version
from mcp_django.subscriptions.admission import Existence, Verdict, admit_all
from mcp_django.subscriptions.topics import CLOSE, LISTS, Change, Topic, Uris, control_topic
from mcp_django.tracing import span_of
from mcp_django.transports.middleware import Caller, Chain, loaded
from mcp_django.transports.requests import build_request, own_copy
from mcp_django.transports.threads import Lane, lanes


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
        #: Who the reader was found to be a moment ago, in which version of decisions, and when.
        self.reader: tuple[HttpRequest, Principal, CacheVersion, float] | None = None


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
        self._stale_names.update(dict.fromkeys(names))
        self.wake()

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
        names = tuple(self._stale_names)
        self._stale_names.clear()
        return names

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
#: By URI, or why there are none.
Verdicts: TypeAlias = dict[str, Verdict] | Exception | None


class GroupUpdates:
    """Streams of one group, and the changes of a batch that touch their topics."""

    __slots__ = ("stream_group", "streams", "topics")

    def __init__(self, stream_group: StreamGroup) -> None:
        self.stream_group = stream_group
        self.streams: dict[Subscriber, None] = {}
        self.topics: dict[Topic, set[Change]] = {}

    def judge(self, rights: Rights, existence: Existence | None = None) -> dict[str, Verdict]:
        """In the thread: the verdicts on all URIs whose models the readers may view."""
        uris = {
            uri
            for topic, changes in self.topics.items()
            if topic not in LISTS and may_be_told(rights, changes)
            for stream in self.streams
            for uri in stream.uris_by_topic.get(topic, ())
        }
        return admit_all(rights, uris, existence=existence)

    def tell(self, verdicts: Verdicts, set_topics: SetTopics) -> None:
        for stream in self.streams:
            if isinstance(verdicts, dict):
                self._tell(stream, verdicts, set_topics)
            elif isinstance(verdicts, REFUSALS):
                stream.end()
            else:
                # At the next look it is notified of everything instead.
                stream.is_stale = True

    def _tell(
        self, stream: Subscriber, verdicts: dict[str, Verdict], set_topics: SetTopics
    ) -> None:
        names: list[str] = []
        gone: set[str] = set()
        for topic, changes in self.topics.items():
            names += [topic] if topic in stream.lists else []
            # Of hidden changes only those who lost access are notified.
            is_hidden = all(change.is_hidden for change in changes)
            for uri in stream.uris_by_topic.get(topic, ()):
                verdict = verdicts.get(uri, Verdict.SILENT)
                if verdict is Verdict.GONE:
                    gone.add(uri)
                if verdict is Verdict.GONE or (verdict is Verdict.VISIBLE and not is_hidden):
                    names.append(uri)
        if names:
            stream.mark_stale(names)
        if gone:
            set_topics(stream, stream.uris_without(gone))


def may_be_told(rights: Rights, changes: set[Change]) -> bool:
    """Return whether one of the changes is about no model, or about one that they may view."""
    models = {change.model for change in changes}
    return "" in models or any(rights.may_view(apps.get_model(label)) for label in models)


class Notifier:
    """One batch of changes after the other: what changes meanwhile waits together. So rules of the
    site that are slow delay notifications, and one thread at most, but no calls.
    """

    def __init__(self) -> None:
        self.is_running = False
        #: What waits for the next batch. Whoever adds to it sees that it runs.
        self.waiting: dict[StreamGroup, GroupUpdates] = {}

    def add(self, streams: Iterable[Subscriber], change: Change, *, topic: Topic) -> None:
        """Tell these, as far as the change concerns them."""
        updated: GroupUpdates | None = None
        for stream in streams:
            group = stream.stream_group
            if change.concerns(group.principal, user=group.user):
                updates = self.check_rights(stream)
                # Once for streams of one group, of which there may be thousands.
                if updates is not updated:
                    updates.topics.setdefault(topic, set()).add(change)
                    updated = updates

    def check_rights(self, stream: Subscriber) -> GroupUpdates:
        """Look whether the reader is still who it was, whatever else changed for it."""
        group = stream.stream_group
        updates = self.waiting.get(group)
        if updates is None:
            updates = self.waiting[group] = GroupUpdates(group)
        updates.streams[stream] = None
        return updates

    def tell_all(self, stream: Subscriber) -> None:
        """Anything that it subscribes to may have changed."""
        for topic in stream.topics:
            self.add([stream], Change(topic=topic), topic=topic)

    async def run(self, set_topics: SetTopics) -> None:
        """Until nothing waits. Who starts it has set `is_running`."""
        try:
            while self.waiting:
                groups, self.waiting = list(self.waiting.values()), {}
                existence = Existence()
                while groups:
                    some = groups[:BATCH]
                    count = sum(len(group.streams) for group in some)
                    with span_of("notify", {"mcp_django.streams": count}):
                        for verdicts in await judge_soon(some, existence):
                            groups.pop(0).tell(verdicts, set_topics)
        finally:
            self.is_running = False


async def judge_soon(groups: list[GroupUpdates], existence: Existence) -> list[Verdicts]:
    """The verdicts on as many of them as there is time for, at least one."""
    try:
        return await lanes[Lane.QUERY].start(
            partial(judge, groups, existence),
            seconds=get_config().tool_timeout,
            cancelled=Event(),
            is_owed=True,
        )
    except Exception as error:
        # Told too much costs a read that is refused. Told nothing costs a stale client.
        logger.exception("Whom to tell of changes cannot be found out.")
        return [error] * len(groups)


# In the thread


def judge(groups: list[GroupUpdates], existence: Existence) -> list[Verdicts]:
    found: list[Verdicts] = []
    end = time.monotonic() + SLICE
    for group in groups:
        found.append(judge_one(group, existence))
        if time.monotonic() >= end:
            break
    return found


def judge_one(group: GroupUpdates, existence: Existence) -> Verdicts:
    stream = next(iter(group.streams))
    try:
        chain = loaded.chain()
        if chain is not None:
            return judge_through(chain, stream, group)
        request, principal = current(stream, believed=BELIEVED if group.topics else RENEW)
        return group.judge(Rights(request, principal), existence)
    except (*REFUSALS, ServiceUnavailable) as error:
        return error
    except Exception as error:
        logger.exception("Whether a stream may be told of a change cannot be found out.")
        return error


def judge_through(chain: Chain, stream: Subscriber, group: GroupUpdates) -> Verdicts:
    """The verdicts inside the project's middleware, which may choose a tenant and so the rows.

    Then nothing is cached, and nothing is shared with other readers. What middleware refuses today
    it may let pass tomorrow, but a credential does not come back.
    """
    request = stream.source.request()
    caller = Caller(request, stream.source.recognize)
    verdicts: list[Verdicts] = []

    def look(request: HttpRequest) -> HttpResponseBase:
        try:
            # The copy has the tenant, which is part of its key.
            principal = own_copy(caller.recognize(request))
            check_reader(principal, group.stream_group)
        except REFUSALS as error:
            verdicts.append(error)
        else:
            if not caller.is_replaced(principal):
                request.user = principal.user
                verdicts.append(group.judge(Rights(request, principal)))
        return HttpResponse()

    with chain.responding(request, look):
        return verdicts.pop() if verdicts else None


def check_reader(principal: Principal, stream_group: StreamGroup) -> None:
    """Raise where the credential is somebody else's by now, or staff closed something."""
    if principal.key != stream_group.principal.key:
        raise AuthenticationFailed
    check_switches(principal)


def current(stream: Subscriber, *, believed: float) -> tuple[HttpRequest, Principal]:
    """Who reads the stream, as found out so many seconds ago at most. Raises as `authenticate`."""
    stream_group = stream.stream_group
    now = cache_version(stream_group.principal.server)
    if stream_group.reader is not None:
        request, principal, version, at = stream_group.reader
        if version == now and time.monotonic() - at < believed and not is_over(principal):
            return request, principal
        # Where it fails, nobody is to believe what was found out before.
        stream_group.reader = None
    request = stream.source.request()
    principal = own_copy(stream.source.recognize(request))
    request.user = principal.user
    check_reader(principal, stream_group)
    stream_group.reader = (request, principal, now, time.monotonic())
    return request, principal
