"""What one HTTP request set going, from its thread to the last event of its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from threading import Event, Lock
from typing import Any, TypeAlias

from mcp_django.conf import get_config
from mcp_django.exceptions import Busy, Cancelled
from mcp_django.exposure.budget import lift_deadlines
from mcp_django.exposure.tools import BUILT_IN, WRITES, Lane, code_uri
from mcp_django.protocol.notifications import Notification
from mcp_django.protocol.render import notification as encode_notification
from mcp_django.transports.async_tools import Tool, begin, outcome_of
from mcp_django.transports.bridge import respond_through
from mcp_django.transports.endpoint import Exchange, Reply, tools_called, uris_named
from mcp_django.transports.executor import lanes
from mcp_django.transports.middleware import loaded
from mcp_django.transports.serving import Outcome, PendingReply, Service, busy, too_slow
from mcp_django.transports.streams import ResponseStream
from mcp_django.transports.threads import OutOfTime, discard
from mcp_django.transports.wsgi import mcp_view

Receive: TypeAlias = Callable[[], Awaitable[dict[str, Any]]]
Work: TypeAlias = "asyncio.Future[Outcome]"

#: Seconds without an answer after which the response becomes a stream, so that it can be kept
#: alive.
GRACE = 15.0
#: Seconds between two signs of life. Proxies give up a quiet connection after 30 or 60.
KEEP_ALIVE = 15.0
#: Seconds that an answer may take before anybody looks whether the client is still there. Most
#: answers are ready sooner, and watching a connection costs more than they do.
QUICK = 0.05


class RunningCall:
    """What one HTTP request set going: it may outlive the connection that asked for it."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.cancelled = Event()
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._is_over = False
        self._lock = Lock()
        self._unsent: dict[Any, Notification] = {}

    def notify(self, notification: Notification) -> None:
        """From any thread: send this before the answer. Of several unsent ones the last counts."""
        with self._lock:
            is_first = not self._unsent
            self._unsent[notification.params.get("progressToken")] = notification
        if is_first:
            self._loop.call_soon_threadsafe(self._wake.set)

    def start(self, service: Service) -> None:
        """Give the call to a thread, or raise Busy."""
        self._lane = lanes[lane_of(self.exchange)]
        self._seconds = get_config().tool_timeout
        self._watch(self._hop(partial(respond, service)))

    def _hop(
        self, job: Callable[[], Outcome], *, is_owed: bool = False
    ) -> asyncio.Future[Outcome]:
        return self._lane.start(
            job, seconds=self._seconds, cancelled=self.cancelled, is_owed=is_owed
        )

    def _watch(self, work: Work) -> None:
        self._work = work
        work.add_done_callback(self._worked)

    def _worked(self, work: Work) -> None:
        """One step is done. An async tool takes two more: the tool itself, and a second hop."""
        if not work.cancelled() and work.exception() is None:
            outcome = work.result()
            if isinstance(outcome, PendingReply) and not self.cancelled.is_set():
                tool = begin(outcome)
                ending = asyncio.create_task(self._finish(outcome, tool))
                ending.add_done_callback(partial(given_up, outcome, tool))
                self._watch(ending)
                return
            discard(outcome)
        self._is_over = True
        self._wake.set()

    async def _finish(self, pending: PendingReply, tool: Tool) -> Outcome:
        returned = await outcome_of(tool, seconds=self._seconds, cancelled=self.cancelled)
        return await self._hop(partial(pending.settle, returned), is_owed=True)

    def _reply(self) -> Reply:
        try:
            outcome = self._work.result()
        except Busy:
            return busy(self.exchange)
        except (OutOfTime, Cancelled):
            return too_slow(self.exchange)
        assert isinstance(outcome, Reply)  # noqa: S101  no third step
        return outcome

    async def reply(self) -> Reply:
        """The answer as a whole, for those who have no stream. What came before it is dropped."""
        try:
            while not self._is_over:
                await self._wake.wait()
                self._wake.clear()
            return self._reply()
        finally:
            self._leave()

    async def follow(self, receive: Receive, stream: ResponseStream) -> None:
        """Send what comes until the answer is sent or the client is gone."""
        gone: asyncio.Task[None] | None = None
        try:
            await self._wait(QUICK)
            while not (stream.has_ended or (gone is not None and gone.done())):
                await self._send_notifications(stream)
                if self._is_over and not self._unsent:
                    await stream.reply(self._reply())
                    return
                gone = gone or self._listen(receive)
                if not await self._wait(KEEP_ALIVE if stream.has_started else GRACE):
                    await stream.keep_alive()
        finally:
            if gone is not None:
                gone.cancel()
            self._leave()

    def _listen(self, receive: Receive) -> asyncio.Task[None]:
        gone = asyncio.create_task(until_disconnected(receive))
        gone.add_done_callback(lambda task: self._wake.set())
        return gone

    async def _send_notifications(self, stream: ResponseStream) -> None:
        if self._unsent:
            with self._lock:
                unsent, self._unsent = self._unsent, {}
            revision = self.exchange.revision
            await stream.events([encode_notification(one, revision) for one in unsent.values()])

    async def _wait(self, seconds: float) -> bool:
        """Whether anything happened in that time."""
        self._is_quiet = False
        timer = self._loop.call_later(seconds, self._be_quiet)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()
        self._wake.clear()
        return not self._is_quiet

    def _be_quiet(self) -> None:
        self._is_quiet = True
        self._wake.set()

    def _leave(self) -> None:
        """The client is answered, or gone: then what runs on has to end by itself."""
        if not self._is_over and self.exchange.disconnect_cancels:
            self.cancelled.set()
            self._work.cancel()


def given_up(pending: PendingReply, tool: Tool, ending: Work) -> None:
    """The answer of an async tool was made, or never will be."""
    tool.cancel()
    if ending.cancelled() or ending.exception() is not None:
        pending.give_up()


def respond(service: Service) -> Outcome:
    """In the thread."""
    chain = loaded.chain()
    try:
        if chain is None:
            return service.respond()
        return respond_through(chain, service, view=mcp_view)
    finally:
        if lane_of(service.exchange) is Lane.WORK:
            # The next tool of the project has this connection, and its own idea of slow.
            lift_deadlines()


def lane_of(exchange: Exchange) -> Lane:
    """Code of the project may be slow. Everything of ours is quick, or told to stop."""
    is_ours = all(name in BUILT_IN - WRITES for name in tools_called(exchange))
    if is_ours and not any(code_uri(uri) for uri in uris_named(exchange)):
        return Lane.QUERY
    return Lane.WORK


async def until_disconnected(receive: Receive) -> None:
    # A server that fails here has lost the connection in its own way.
    with suppress(Exception):
        while (await receive())["type"] != "http.disconnect":
            continue
