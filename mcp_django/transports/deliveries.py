"""From changes to the streams that may be told of them, with rights looked at again on the way."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
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
from mcp_django.transports.executor import lanes
from mcp_django.transports.subscribers import Subscriber

logger = logging.getLogger("mcp_django.streams")

#: Principals that are looked at in one go. Calls get their turn in between.
BATCH = 50
#: Seconds after which a principal is identified anew, even if nothing says that rights changed.
RENEW = 15.0

#: What decides on the rights of a stream: streams alike in it share every answer.
Kind: TypeAlias = tuple[object, ...]
Retune: TypeAlias = Callable[[Subscriber, Iterable[str]], None]


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


@dataclass
class Group:
    """Streams whose readers have the same rights."""

    streams: dict[Subscriber, None] = field(default_factory=dict)
    topics: dict[Topic, News] = field(default_factory=dict)

    @property
    def one(self) -> Subscriber:
        return next(iter(self.streams))

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

    def __init__(self, *, retune: Retune) -> None:
        self._retune = retune
        self._groups: defaultdict[Kind, Group] = defaultdict(Group)

    @property
    def is_empty(self) -> bool:
        return not self._groups

    def add(self, stream: Subscriber, change: Change, *, topic: Topic) -> None:
        group = self._groups[stream.kind]
        group.streams[stream] = None
        group.topics.setdefault(topic, News()).add(change)

    def look_at(self, stream: Subscriber) -> None:
        """Nothing changed that we know of, but is the reader still who it was?"""
        if stream.is_stale:
            stream.is_stale = False
            for topic in stream.topics:
                self.add(stream, Change(topic=topic), topic=topic)
        self._groups[stream.kind].streams[stream] = None

    async def run(self) -> None:
        groups = list(self._groups.values())
        existence = Existence()
        for start in range(0, len(groups), BATCH):
            some = groups[start : start + BATCH]
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
            for group, verdicts in zip(some, found, strict=True):
                self._tell(group, verdicts)

    def _tell(self, group: Group, verdicts: Verdicts | None) -> None:
        for stream in group.streams:
            if verdicts is None:
                # At the next look it is told of everything instead.
                stream.is_stale = True
                continue
            if not verdicts.is_known:
                stream.end()
                continue
            self._tell_one(stream, group, verdicts)

    def _tell_one(self, stream: Subscriber, group: Group, verdicts: Verdicts) -> None:
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
            stream.mark(*names)
        if gone:
            self._retune(stream, [uri for uri in stream.uris if uri not in gone])


@dataclass(frozen=True, kw_only=True)
class Verdicts:
    #: False: the credential is not good any more.
    is_known: bool = True
    by_uri: dict[str, Verdict] = field(default_factory=dict)


# In the thread


def judge(groups: list[Group], existence: Existence) -> list[Verdicts | None]:
    return [judge_one(group, existence) for group in groups]


def judge_one(group: Group, existence: Existence) -> Verdicts | None:
    stream = group.one
    try:
        request, principal = current(stream)
        rights = Rights(request, principal)
        uris = group.uris(rights)
        return Verdicts(by_uri=admit_all(rights, uris, existence=existence))
    except (AuthenticationFailed, Closed, TooManyRequests):
        return Verdicts(is_known=False)
    except ServiceUnavailable:
        return None
    except Exception:
        logger.exception("Whether a stream may be told of a change cannot be found out.")
        return None


@dataclass(frozen=True)
class Reader:
    """Who reads a stream, as was found out a moment ago."""

    request: HttpRequest
    principal: Principal
    mark: Mark
    at: float


def current(stream: Subscriber) -> tuple[HttpRequest, Principal]:
    """Who reads the stream now. Raises as `authenticate` and `check_switches` do."""
    now, reader = mark(stream.principal.server), stream.reader
    is_fresh = reader is not None and time.monotonic() - reader.at < RENEW
    if reader is None or not is_fresh or reader.mark != now or is_over(reader.principal):
        request, principal = stream.renew()
        if principal.key != stream.principal.key:
            raise AuthenticationFailed
        check_switches(principal)
        reader = stream.reader = Reader(request, principal, now, time.monotonic())
    return reader.request, reader.principal
