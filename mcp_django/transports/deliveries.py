"""From changes to the streams that may be told of them, with rights looked at again on the way."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import TypeAlias

from django.apps import apps
from django.http import HttpRequest

from mcp_django.auth.cache import is_over
from mcp_django.auth.switches import check_switches
from mcp_django.conf import get_config
from mcp_django.exceptions import (
    AuthenticationFailed,
    Closed,
    ServiceUnavailable,
    TooManyRequests,
)
from mcp_django.exposure.generation import Mark, mark
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.tools import Lane
from mcp_django.principal import Principal
from mcp_django.subscriptions.admission import Existence, Verdict, admit_all
from mcp_django.subscriptions.events import LISTS, Change, Topic
from mcp_django.subscriptions.topics import Uris
from mcp_django.transports.bridge import respond_through
from mcp_django.transports.callers import own_copy
from mcp_django.transports.exchanges import Exchange, Reply
from mcp_django.transports.executor import lanes
from mcp_django.transports.middleware import Chain, loaded
from mcp_django.transports.serving import Service
from mcp_django.transports.subscribers import Audience, Subscriber
from mcp_django.transports.wsgi import mcp_view

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

Retune: TypeAlias = Callable[[Subscriber, Uris], None]


@dataclass
class News:
    """What happened to one topic, all changes of a batch together."""

    #: Only those who lost the thing are told.
    is_hidden: bool = True
    #: Only those are told who may see one of these models. Empty once a change says no such thing.
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


class Group:
    """Streams of one audience, and what is to be told to those of them that want to hear it."""

    __slots__ = ("audience", "streams", "topics")

    def __init__(self, audience: Audience) -> None:
        self.audience = audience
        self.streams: dict[Subscriber, None] = {}
        self.topics: dict[Topic, News] = {}

    def uris(self, rights: Rights) -> set[str]:
        """Those that the readers have subscribed to and may be told of, as far as models go."""
        return {
            uri
            for topic, news in self.topics.items()
            if topic not in LISTS and news.may_be_told(rights)
            for stream in self.streams
            for uri in stream.uris_of(topic)
        }


class Delivery:
    """What one batch of changes means for the streams of this process."""

    def __init__(self) -> None:
        self._groups: dict[Audience, Group] = {}

    @property
    def is_empty(self) -> bool:
        return not self._groups

    def add(self, streams: Iterable[Subscriber], change: Change, *, topic: Topic) -> None:
        """Tell these, as far as the change concerns them."""
        known: dict[Audience, Group | None] = {}
        for stream in streams:
            audience = stream.audience
            if audience not in known:
                known[audience] = self._group_of(audience, change, topic=topic)
            group = known[audience]
            if group is not None:
                group.streams[stream] = None

    def _group_of(self, audience: Audience, change: Change, *, topic: Topic) -> Group | None:
        if not change.concerns(server=audience.principal.server, user=audience.user):
            return None
        group = self._group(audience)
        group.topics.setdefault(topic, News()).add(change)
        return group

    def _group(self, audience: Audience) -> Group:
        group = self._groups.get(audience)
        if group is None:
            group = self._groups[audience] = Group(audience)
        return group

    def tell_all(self, stream: Subscriber) -> None:
        """Whatever it wants to hear of may have changed."""
        for topic in stream.topics:
            self.add([stream], Change(topic=topic), topic=topic)

    def look_at(self, stream: Subscriber) -> None:
        """Nothing changed that we know of, but is the reader still who it was?"""
        self._group(stream.audience).streams[stream] = None

    async def run(self, *, retune: Retune) -> None:
        groups = list(self._groups.values())
        existence = Existence()
        done = 0
        while some := groups[done : done + BATCH]:
            try:
                found = await lanes[Lane.QUERY].start(
                    partial(judge, some, existence),
                    seconds=get_config().tool_timeout,
                    cancelled=Event(),
                    is_owed=True,
                )
            except Exception:
                # Told too much costs a read that is refused. Told nothing costs a stale client.
                logger.exception("Whom to tell of changes cannot be found out.")
                found = [None] * len(some)
            for group, verdicts in zip(some, found, strict=False):
                self._tell(group, verdicts, retune=retune)
            done += len(found)

    def _tell(self, group: Group, verdicts: Verdicts | None, *, retune: Retune) -> None:
        for stream in group.streams:
            if verdicts is None:
                # At the next look it is told of everything instead.
                stream.is_stale = True
                continue
            if not verdicts.is_known:
                stream.end()
                continue
            self._tell_one(stream, group, verdicts, retune=retune)

    def _tell_one(
        self, stream: Subscriber, group: Group, verdicts: Verdicts, *, retune: Retune
    ) -> None:
        names: list[str] = []
        gone: set[str] = set()
        for topic, news in group.topics.items():
            if topic in LISTS:
                names += [topic] if topic in stream.lists else []
                continue
            for uri in stream.uris_of(topic):
                verdict = verdicts.by_uri.get(uri, Verdict.SILENT)
                if verdict is Verdict.GONE:
                    gone.add(uri)
                if verdict is Verdict.GONE or (verdict is Verdict.VISIBLE and not news.is_hidden):
                    names.append(uri)
        if names:
            stream.mark(names)
        if gone:
            retune(stream, stream.uris_without(gone))


class Deliveries:
    """One delivery after the other: what changes meanwhile waits together. So rules of the site
    that are slow hold up news, one thread at most, and no calls.
    """

    def __init__(self) -> None:
        self.is_running = False
        #: The next one. Whoever adds to it sees that it runs.
        self.waiting = Delivery()

    async def run(self, *, retune: Retune) -> None:
        """Until none waits. Nothing happens where this runs already."""
        if self.is_running:
            return
        self.is_running = True
        try:
            while not self.waiting.is_empty:
                delivery, self.waiting = self.waiting, Delivery()
                await delivery.run(retune=retune)
        finally:
            self.is_running = False


@dataclass(frozen=True, kw_only=True)
class Verdicts:
    #: False: the credential is not good any more.
    is_known: bool = True
    by_uri: dict[str, Verdict] = field(default_factory=dict)


# In the thread


def judge(groups: list[Group], existence: Existence) -> list[Verdicts | None]:
    """The verdicts on as many of them as there is time for, at least one."""
    found: list[Verdicts | None] = []
    end = time.monotonic() + SLICE
    for group in groups:
        found.append(judge_one(group, existence))
        if time.monotonic() >= end:
            break
    return found


def judge_one(group: Group, existence: Existence) -> Verdicts | None:
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
    group: Group, request: HttpRequest, principal: Principal, *, existence: Existence | None = None
) -> Verdicts:
    rights = Rights(request, principal)
    return Verdicts(by_uri=admit_all(rights, group.uris(rights), existence=existence))


def judge_through(chain: Chain, stream: Subscriber, group: Group) -> Verdicts | None:
    """The verdicts inside the project's middleware, which may choose a tenant and so the rows.

    Nothing is kept from look to look then, and nothing is shared with other readers.
    """
    look = Look(
        exchange=Exchange(),
        request=stream.source.request(),
        cancelled=Event(),
        recognise=stream.source.recognise,
        key=stream.audience.principal.key,
        group=group,
    )
    status = respond_through(chain, look, view=mcp_view).status
    if look.found:
        return look.found[0]
    # What middleware refuses today it may let pass tomorrow. A credential does not come back.
    return Verdicts(is_known=False) if status in (401, 429, 503) else None


@dataclass(frozen=True, kw_only=True)
class Look(Service):
    """Looks at the rights of a reader in place of a call."""

    key: str
    group: Group
    found: list[Verdicts] = field(default_factory=list)

    def serve(self, principal: Principal) -> Reply:
        if principal.key == self.key:
            principal = own_copy(principal)
            self.request.user = principal.user
            self.found.append(verdicts_on(self.group, self.request, principal))
        return Reply(status=204 if self.found else 401)


@dataclass(frozen=True, slots=True)
class Known:
    """Who reads a stream, as was found out a moment ago."""

    request: HttpRequest
    principal: Principal
    mark: Mark
    at: float


def current(stream: Subscriber, *, believed: float) -> tuple[HttpRequest, Principal]:
    """Who reads the stream, as found out so many seconds ago at most. Raises as `authenticate`."""
    audience = stream.audience
    now, reader = mark(audience.principal.server), audience.reader
    is_fresh = reader is not None and time.monotonic() - reader.at < believed
    if reader is None or not is_fresh or reader.mark != now or is_over(reader.principal):
        # Where it fails, nobody is to believe what was found out before.
        audience.reader = None
        request = stream.source.request()
        principal = own_copy(stream.source.recognise(request))
        request.user = principal.user
        if principal.key != audience.principal.key:
            raise AuthenticationFailed
        check_switches(principal)
        reader = audience.reader = Known(request, principal, now, time.monotonic())
    return reader.request, reader.principal
