"""What one HTTP request set going, from its thread to the last event of its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from threading import Event
from typing import TypeAlias

from mcp_django.conf import get_config
from mcp_django.exceptions import Busy, Cancelled
from mcp_django.exposure.budget import lift_deadlines
from mcp_django.exposure.tools import BUILT_IN, WRITES, Lane, code_uri
from mcp_django.protocol import sse
from mcp_django.protocol.errors import INVALID_REQUEST, ProtocolError
from mcp_django.protocol.jsonrpc import Response, encoder
from mcp_django.protocol.notifications import Notification
from mcp_django.protocol.questions import InputParams
from mcp_django.protocol.results import InputRequired
from mcp_django.protocol.revisions import Revision
from mcp_django.stores.interface import Session
from mcp_django.subscriptions.events import Topic
from mcp_django.transports.async_tools import Tool, begin, outcome_of
from mcp_django.transports.bridge import respond_through
from mcp_django.transports.call_logs import CallLog
from mcp_django.transports.client_requests import UNHEARD, ClientRequests, NoAnswer
from mcp_django.transports.endpoint import Exchange, Reply, tools_called, uris_named
from mcp_django.transports.executor import lanes
from mcp_django.transports.hub import Hub, get_hub
from mcp_django.transports.middleware import loaded
from mcp_django.transports.output import Output
from mcp_django.transports.refusals import busy, crashed, gave_up, too_slow
from mcp_django.transports.serving import NO_INPUT, Outcome, PendingReply, Service
from mcp_django.transports.sessions import cancel_topic
from mcp_django.transports.statements import Statements
from mcp_django.transports.streams import Receive, ResponseStream, until_disconnected
from mcp_django.transports.threads import OutOfTime, discard
from mcp_django.transports.wsgi import mcp_view

Work: TypeAlias = "asyncio.Future[Outcome]"
Prepare: TypeAlias = Callable[["RunningCall", InputParams], Service]

#: Seconds without an answer after which the response becomes a stream, so that it can be kept
#: alive.
GRACE = 15.0
#: Seconds between two signs of life. Proxies give up a quiet connection after 30 or 60.
KEEP_ALIVE = 15.0
#: Seconds that an answer may take before anybody looks whether the client is still there. Most
#: answers are ready sooner, and watching a connection costs more than they do.
QUICK = 0.05
BUILT_IN_READS = BUILT_IN - WRITES


class RunningCall:
    """What one HTTP request set going: it may outlive the connection that asked for it."""

    def __init__(self, exchange: Exchange, *, prepare: Prepare) -> None:
        """`prepare` makes the service of one run: of the first, and of each that has answers."""
        self.exchange = exchange
        self.cancelled = Event()
        self.prepare = prepare
        self.session: Session | None = None
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._is_over = False
        self._is_cancelled = False
        self._hub: Hub | None = None
        self._topics: list[Topic] = []
        self._log: CallLog | None = None
        self._asking: ClientRequests | None = None
        #: The client left before it was told how to come back.
        self._is_unheard = False
        self._statements = Statements()
        self.output = Output(self._wake_soon, wake_in=self._wake_in)

    # From any thread

    def notify(self, notification: Notification) -> None:
        """Send this before the answer. Of several unsent values of progress the last counts."""
        self.output.add(notification)

    def tell_session(self, session: Session) -> None:
        """In which session this is. Raises ProtocolError for an id whose request still runs."""
        if self.session is not None:
            return
        self.session, self._hub = session, get_hub(self._loop)
        for call in () if self.exchange.is_batch else self.exchange.requests:
            topic = cancel_topic(session.key, call.request.id)
            if not self._hub.claim(topic, self.cancel):
                raise ProtocolError(
                    INVALID_REQUEST, "A request with this id is still running.", status=400
                )
            self._topics.append(topic)

    def _wake_soon(self) -> None:
        # Without its loop nobody is left who reads.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._wake.set)

    # On the loop

    def _wake_in(self, seconds: float) -> None:
        self._loop.call_later(seconds, self._wake.set)

    def cancel(self) -> None:
        """The client takes the request back: it gets no answer."""
        if not self._is_over:
            self._is_over = self._is_cancelled = True
            self.output.close()
            self._stop()
            self._wake.set()

    def _stop(self) -> None:
        """Nobody wants what this call does."""
        self.cancelled.set()
        self._work.cancel()
        if self._statements.may_run:
            self.hub.keep(asyncio.to_thread(self._statements.stop))

    def start(self) -> None:
        """Give the call to a thread, or raise Busy."""
        self._lane = lanes[lane_of(self.exchange)]
        self._seconds = get_config().tool_timeout
        self._watch(self._hop(partial(respond, self.prepare(self, NO_INPUT))))

    def _hop(
        self, job: Callable[[], Outcome], *, is_owed: bool = False
    ) -> asyncio.Future[Outcome]:
        return self._lane.start(
            partial(self._statements.run, job),
            seconds=self._seconds,
            cancelled=self.cancelled,
            is_owed=is_owed,
        )

    def _watch(self, work: Work) -> None:
        self._work = work
        work.add_done_callback(self._worked)

    def _worked(self, work: Work) -> None:
        """One step is done. An async tool takes two more: the tool itself, and a second hop."""
        if not work.cancelled() and work.exception() is None:
            outcome = work.result()
            if not self.cancelled.is_set() and self._goes_on(outcome):
                return
            discard(outcome)
        self._is_over = True
        self.output.close()
        self._wake.set()

    def _goes_on(self, outcome: Outcome) -> bool:
        """Whether there is another step."""
        if isinstance(outcome, PendingReply):
            tool = begin(outcome)
            ending = asyncio.create_task(self._finish(outcome, tool))
            ending.add_done_callback(partial(given_up, outcome, tool))
            self._watch(ending)
            return True
        if outcome.asks is not None:
            self._watch(asyncio.create_task(self._ask(outcome.asks)))
            return True
        return False

    async def _ask(self, asked: InputRequired) -> Outcome:
        """Ask the client, and run the call once more with the answers."""
        assert self.session is not None  # noqa: S101  nobody is asked without
        if self._is_unheard:
            return gave_up(self.exchange, UNHEARD)
        self._asking = ClientRequests(
            asked.questions, session=self.session, hub=self.hub, say=self.output.say
        )
        try:
            answers = await self._asking.put()
        except NoAnswer as error:
            return gave_up(self.exchange, str(error))
        finally:
            self._asking = None
        sent = InputParams(inputResponses=answers, requestState=asked.state)
        return await self._hop(partial(respond, self.prepare(self, sent)), is_owed=True)

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
        except Exception:
            return crashed(self.exchange)
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

    async def follow(self, receive: Receive, stream: ResponseStream) -> Reply | None:
        """Send what comes until the answer is sent or the client is gone.

        Returns a reply that opens a stream of its own.
        """
        gone: asyncio.Task[None] | None = None
        try:
            await self._wait(QUICK)
            while not (stream.has_ended or (gone is not None and gone.done())):
                await self._say(stream, self.output.take(self.revision))
                if self._is_over and self.output.is_empty:
                    return await self._end(stream)
                if self.output.released is not None and self.session is not None:
                    await self._let_go(stream, self.session, self.output.released)
                    return None
                gone = gone or self._listen(receive)
                if not await self._wait(KEEP_ALIVE if stream.has_started else GRACE):
                    await self._keep_alive(stream)
        finally:
            if gone is not None:
                gone.cancel()
            self._leave()
        return None

    @property
    def revision(self) -> Revision:
        if self.session is None:
            return self.exchange.revision
        return Revision(self.session.revision)

    async def _end(self, stream: ResponseStream) -> Reply | None:
        """The answer, or the end without one of a call that the client took back."""
        if self._is_cancelled:
            await stream.open()
            if self._log is not None:
                await self._log.frames((), is_final=True)
            return None
        reply = self._reply()
        if reply.opens is not None:
            return reply
        if stream.is_streaming:
            await self._say(stream, reply.parts, is_final=True)
        else:
            await stream.reply(reply)
        return None

    async def _say(
        self, stream: ResponseStream | None, messages: Sequence[bytes], *, is_final: bool = False
    ) -> None:
        """Send messages as events: in a session, after its log has them."""
        if not messages:
            return
        if self.session is None:
            assert stream is not None  # noqa: S101  without a session there is no log instead
            await stream.events(messages)
            return
        log, frames = await self._begin_log(self.session)
        frames += await log.frames(messages, is_final=is_final)
        if stream is not None:
            await stream.frames(frames)
        else:
            log.tell()

    async def _begin_log(self, session: Session) -> tuple[CallLog, bytes]:
        """The log of a stream, with the first frame of one that begins."""
        if self._log is not None:
            return self._log, b""
        ids = [call.request.id for call in self.exchange.requests]
        request = encoder.encode(ids[0] if len(ids) == 1 else None).decode()
        self._log = CallLog(session, owner=self.hub.key, request=request)
        return self._log, await self._log.open()

    @property
    def hub(self) -> Hub:
        if self._hub is None:
            self._hub = get_hub(self._loop)
        return self._hub

    async def _keep_alive(self, stream: ResponseStream) -> None:
        if self.session is not None and not stream.has_started:
            _, frame = await self._begin_log(self.session)
            await stream.frames(frame or sse.OPEN)
        else:
            await stream.keep_alive()

    async def _let_go(self, stream: ResponseStream, session: Session, milliseconds: int) -> None:
        """Close the stream although the call runs on: the client comes back for the answer."""
        self.output.released = None
        _, frame = await self._begin_log(session)
        await stream.frames(frame + sse.encode_retry(milliseconds))
        await stream.end()

    async def _go_on(self, log: CallLog) -> None:
        """Nobody listens, but the client may come back: keep what it would have been sent."""
        while not (self._is_over and self.output.is_empty):
            await self._say(None, self.output.take(self.revision))
            if not (self._is_over and self.output.is_empty):
                await self._wake.wait()
                self._wake.clear()
        parts = () if self._is_cancelled else self._reply().parts
        await log.frames(parts, is_final=True)
        log.tell()

    def _listen(self, receive: Receive) -> asyncio.Task[None]:
        gone = asyncio.create_task(until_disconnected(receive))
        gone.add_done_callback(lambda task: self._wake.set())
        return gone

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
        if self._is_over and (self._log is None or self.output.is_empty):
            self._forget()
        elif self.exchange.disconnect_cancels:
            self._stop()
            self._forget()
        else:
            self.hub.keep(self._outlive())

    async def _outlive(self) -> None:
        try:
            if self._log is not None:
                await self._go_on(self._log)
            else:
                await self._go_on_unheard()
        finally:
            self._forget()

    async def _go_on_unheard(self) -> None:
        """Without a log nobody can ever ask for the answer, or be asked anything."""
        self._is_unheard = True
        if self._asking is not None:
            self._asking.leave()
        while not self._is_over:
            self.output.take(self.revision)
            await self._wake.wait()
            self._wake.clear()

    def _forget(self) -> None:
        for topic in self._topics:
            self.hub.release(topic, self.cancel)


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
    """Code of the project may be slow. Everything of ours is quick, or told to stop, except that
    an answer of the client is written down.
    """
    if any(isinstance(notice, Response) for notice in exchange.notices) and not exchange.calls:
        return Lane.STORE
    is_ours = all(name in BUILT_IN_READS for name in tools_called(exchange))
    if is_ours and not any(code_uri(uri) for uri in uris_named(exchange)):
        return Lane.QUERY
    return Lane.WORK
