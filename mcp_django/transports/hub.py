"""Where changes meet the streams of this process that subscribe to them.

There is one hub per event loop. A change that this process makes reaches it at once, whatever
the state of the channel layer; changes of other processes come through the layer.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
import weakref
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias, TypeVar

from mcp_django.conf import get_config
from mcp_django.subscriptions.outbox import outbox
from mcp_django.subscriptions.topics import CLOSE, EVERYTHING, Change, Topic, Uris, is_control
from mcp_django.transports.layer import Link, links_processes
from mcp_django.transports.notifier import Notifier, StreamGroup, Subscriber
from mcp_django.transports.responses import Writers
from mcp_django.transports.sessions import try_store

logger = logging.getLogger("mcp_django.streams")

T = TypeVar("T")
Callback: TypeAlias = Callable[[], None]

#: Seconds between two signs of life on a stream. Proxies give up a quiet one after 30 or 60.
KEEP_ALIVE = 15
#: Changes that are kept for streams that learn of a subscription a moment late.
MOST = 1000
#: Seconds between two signs of life of this process to others.
RENEWED = 5
#: Seconds between two looks for streams that can be closed by now.
CLOSING = 0.05


class TooManyStreams(Exception):
    """This principal, or this process, has as many streams as it may."""


class Hub:
    """Everything here happens on its loop, except for `take`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.key = secrets.token_urlsafe(12)
        # The loop holds its hub, so the hub must not hold its loop.
        self._loop = weakref.ref(loop)
        self.is_closing = False
        self._subscribers: dict[str, Subscriber] = {}
        self._by_topic: defaultdict[Topic, set[Subscriber]] = defaultdict(set)
        self._audiences: dict[tuple[object, ...], StreamGroup] = {}
        #: Open streams of each principal.
        self._counts: Counter[str] = Counter()
        self._callbacks: defaultdict[Topic, set[Callback]] = defaultdict(set)
        self._lock = threading.Lock()
        #: One slot of streams for each second between two signs of life.
        self._wheel: list[set[Subscriber]] = [set() for _ in range(KEEP_ALIVE)]
        self._hand = 0
        self._is_ticking = False
        self._tasks: set[asyncio.Task[None]] = set()
        self.writers = Writers()
        self.news = Notifier()
        # Apart, since slow rules may delay notifications: a revoked token is to be noticed soon.
        self.looks = Notifier()
        #: In the order in which they came, by the clock of the loop.
        self._recent: deque[tuple[float, Change]] = deque(maxlen=MOST)
        #: What the outbox hands changes to.
        self.sink = partial(hand_over, weakref.ref(self))
        outbox.add_sink(self.sink)
        weakref.finalize(self, outbox.remove_sink, self.sink)
        self._link: Link | None = None
        if links_processes():
            link = self._link = Link(self._take, lost=lambda: self.mark_stale(*self.streams))
            # A thread may have made this hub.
            loop.call_soon_threadsafe(lambda: self.keep(link.run()))

    async def linked(self) -> None:
        """Return when changes of other processes are heard, or soon after."""
        if self._link is not None:
            await self._link.ready()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        loop = self._loop()
        if loop is None:
            raise RuntimeError("The loop of this hub is gone.")
        return loop

    # Streams

    @property
    def streams(self) -> tuple[Subscriber, ...]:
        return tuple(self._subscribers.values())

    def find(self, key: str) -> Subscriber | None:
        """Return an open stream by its key. From any thread."""
        return self._subscribers.get(key)

    def add(self, subscriber: Subscriber) -> None:
        """From now on the stream is notified of changes. Raises TooManyStreams."""
        config, principal = get_config(), subscriber.stream_group.principal
        if (
            self.is_closing
            or len(self._subscribers) >= config.max_streams
            or self._counts[principal.key] >= config.max_streams_per_principal
        ):
            raise TooManyStreams
        self._subscribers[subscriber.key] = subscriber
        self._counts[principal.key] += 1
        stream_group = self._audiences.setdefault(subscriber.kind, subscriber.stream_group)
        stream_group.streams[subscriber] = None
        subscriber.stream_group = stream_group
        for topic in subscriber.topics:
            self._by_topic[topic].add(subscriber)
        min(self._wheel, key=len).add(subscriber)
        self._tick_on()

    def remove(self, subscriber: Subscriber) -> None:
        del self._subscribers[subscriber.key]
        for topic in subscriber.topics:
            discard(self._by_topic, topic, subscriber)
        for slot in self._wheel:
            slot.discard(subscriber)
        stream_group = subscriber.stream_group
        del stream_group.streams[subscriber]
        if not stream_group.streams:
            del self._audiences[subscriber.kind]
        self._counts[stream_group.principal.key] -= 1
        if not self._counts[stream_group.principal.key]:
            del self._counts[stream_group.principal.key]

    def set_topics(
        self, subscriber: Subscriber, uris: Uris, *, since: float = float("inf")
    ) -> None:
        """The stream is about these URIs now. Of those that are new to it, it is told as well what
        changed since that time of the loop, if that is not long ago.
        """
        before = subscriber.topics
        subscriber.uris_by_topic = uris
        for topic in before - subscriber.topics:
            discard(self._by_topic, topic, subscriber)
        if subscriber.key in self._subscribers:
            for topic in subscriber.topics - before:
                self._by_topic[topic].add(subscriber)
                for change in self.recent_changes(since):
                    if change.touches(topic):
                        self.news.add([subscriber], change, topic=topic)
            self._start(self.news)

    def recent_changes(self, since: float) -> Iterator[Change]:
        """Yield what changed since then. Of more than are kept, anything may have changed."""
        for at, change in reversed(self._recent):
            if at < since:
                return
            yield change
        if len(self._recent) == MOST:
            yield EVERYTHING

    def keep(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run it to its end. asyncio itself keeps no reference to what runs."""
        task = self.loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("Something that streams need failed.", exc_info=error)

    @contextmanager
    def when(self, callback: Callback, *topics: Topic) -> Iterator[None]:
        """Call back on the loop meanwhile, each time a control topic is published, anywhere."""
        for topic in topics:
            self.call_back(topic, callback)
        self._tick_on()
        try:
            yield
        finally:
            for topic in topics:
                self.release(topic, callback)

    # From any thread

    def call_back(self, topic: Topic, callback: Callback) -> None:
        """The same, until it is released."""
        with self._lock:
            self._callbacks[topic].add(callback)

    def claim(self, topic: Topic, callback: Callback) -> bool:
        """The same, for one at a time. False where somebody has the topic."""
        with self._lock:
            is_free = topic not in self._callbacks
            if is_free:
                self._callbacks[topic].add(callback)
            return is_free

    def take_over(self, topic: Topic, callback: Callback) -> None:
        """`claim`, even from a holder, whose callback is called then."""
        with self._lock:
            before, self._callbacks[topic] = self._callbacks.get(topic, ()), {callback}
        for other in before:
            other()

    def release(self, topic: Topic, callback: Callback) -> None:
        with self._lock:
            discard(self._callbacks, topic, callback)

    # Changes

    def take(self, changes: frozenset[Change]) -> None:
        """From any thread: something changed. Raises RuntimeError when the loop is over."""
        self.loop.call_soon_threadsafe(self._take, changes)

    def _take(self, changes: frozenset[Change]) -> None:
        for change in changes:
            if is_control(change.topic):
                self._call_back(change)
                continue
            self._recent.append((self.loop.time(), change))
            topics = self._by_topic if change.is_whole else (change.topic,)
            for topic in filter(change.touches, topics):
                self.news.add(self._by_topic.get(topic, ()), change, topic=topic)
        self._start(self.news)

    def _call_back(self, change: Change) -> None:
        topic = change.topic
        for callback in tuple(self._callbacks.get(topic, ())):
            callback()
        if topic.startswith(f"{CLOSE} "):
            for subscriber in self.streams:
                if subscriber.is_closed_by(change):
                    subscriber.end()

    def mark_stale(self, *subscribers: Subscriber) -> None:
        """They may have missed anything: tell them of all that they asked for."""
        for subscriber in subscribers:
            self.news.tell_all(subscriber)
        self._start(self.news)

    def _start(self, notifier: Notifier) -> None:
        if notifier.waiting and not notifier.is_running:
            notifier.is_running = True
            self.keep(notifier.run(self.set_topics))

    # Keeping alive

    def _tick_on(self) -> None:
        if not self._is_ticking:
            self._is_ticking = True
            self.loop.call_later(1, self._tick)

    def _tick(self) -> None:
        self._is_ticking = False
        self._turn()
        if self._subscribers or self._callbacks:
            self._tick_on()

    def _turn(self) -> None:
        """Once a second: a fifteenth of the streams gets a sign of life, and is looked at."""
        self._hand = (self._hand + 1) % KEEP_ALIVE
        due = tuple(self._wheel[self._hand])
        for subscriber in due:
            subscriber.keep_alive()
            self.looks.check_rights(subscriber)
            if subscriber.is_stale:
                subscriber.is_stale = False
                self.mark_stale(subscriber)
        self._start(self.looks)
        if self._hand % RENEWED == 0:
            self.keep(try_store(lambda store: store.renew(self.key)))

    def close(self) -> None:
        """End all streams in good order. No new ones are taken."""
        self.is_closing = True
        for subscriber in self.streams:
            # Answers over HTTP+SSE have no other way to their client, so they come first.
            if not getattr(subscriber, "calls", None):
                subscriber.end()
        if self.streams:
            self.loop.call_later(CLOSING, self.close)


def discard(sets: dict[str, set[T]], key: str, member: T) -> None:
    """From a set under a key, and the key with the last member."""
    left = sets.get(key, set())
    left.discard(member)
    if not left:
        sets.pop(key, None)


#: Each loop of this process has its own.
hubs: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = weakref.WeakKeyDictionary()


#: The handler of a signal asks for the hubs, and interrupts this thread wherever it is: also here.
_making = threading.RLock()


def get_hub(loop: asyncio.AbstractEventLoop | None = None) -> Hub:
    """That of a loop, the running one if none is named. Made at first need."""
    loop = loop or asyncio.get_running_loop()
    with _making:
        hub = hubs.get(loop)
        if hub is None:
            hub = hubs[loop] = Hub(loop)
        return hub


def all_hubs() -> tuple[Hub, ...]:
    """Those of all loops of this process."""
    with _making:
        return tuple(hubs.values())


def hand_over(hub: weakref.ref[Hub], changes: frozenset[Change]) -> None:
    owner = hub()
    if owner is None:
        return
    try:
        owner.take(changes)
    except RuntimeError:
        # A loop that is over may be held on to, and its hub with it.
        outbox.remove_sink(owner.sink)
