"""A running call, step by step: its thread, its async tool, its questions to the client."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from threading import Event
from typing import Any, TypeAlias

from asgiref.sync import ThreadSensitiveContext, sync_to_async

from mcp_django.conf import get_config
from mcp_django.connections import TenantSchemas, close_connections, current_schemas, entered
from mcp_django.exceptions import Busy, Cancelled
from mcp_django.handlers.dispatch import PendingAnswer
from mcp_django.principal import Principal
from mcp_django.protocol import sse
from mcp_django.protocol.errors import INVALID_REQUEST, ProtocolError
from mcp_django.protocol.jsonrpc import encoder
from mcp_django.protocol.questions import InputParams
from mcp_django.protocol.results import InputRequired
from mcp_django.protocol.revisions import Revision
from mcp_django.stores.sessions import Session, Store
from mcp_django.stores.transactions import turns
from mcp_django.subscriptions.outbox import publish
from mcp_django.subscriptions.topics import Change, Topic
from mcp_django.transports.call_log import log_topic, new_key
from mcp_django.transports.client_requests import UNHEARD, ClientRequests, NoAnswer
from mcp_django.transports.endpoint import begins_session
from mcp_django.transports.exchanges import (
    Exchange,
    Outcome,
    Reply,
    busy,
    crashed,
    gave_up,
    too_slow,
)
from mcp_django.transports.hub import Hub, get_hub
from mcp_django.transports.middleware import loaded, respond_through
from mcp_django.transports.output import Output, Waker
from mcp_django.transports.responses import Receive, ResponseStream, until_disconnected
from mcp_django.transports.serving import NO_INPUT, Service
from mcp_django.transports.sessions import cancel_topic, in_store
from mcp_django.transports.threads import (
    Lane,
    OutOfTime,
    as_exception,
    discard,
    lane_of,
    lanes,
    share_of,
)

logger = logging.getLogger("mcp_django.streams")

Work: TypeAlias = "asyncio.Future[Outcome]"
Say: TypeAlias = Callable[[Sequence[bytes]], Awaitable[None]]


class RunningCall:
    """What one HTTP request set going: it may outlive the connection that asked for it."""

    def __init__(
        self, exchange: Exchange, *, make: Callable[..., Service], caller: str = ""
    ) -> None:
        """`make` takes the keywords of `_service` and adds the rest: it makes the service of each
        run, with a request of its own.

        `caller` names whose share of the threads the call takes. Empty: no share.
        """
        self.exchange = exchange
        self.caller = caller
        self.cancelled = Event()
        self.make = make
        self.waker = Waker()
        self.session: Session | None = None
        #: Who calls in that session, and where their tenant's tables are.
        self.principal: Principal
        self.schemas: TenantSchemas = ()
        self.is_over = False
        self.is_cancelled = False
        self.loop = asyncio.get_running_loop()
        self._topics: list[Topic] = []
        self._asking: ClientRequests | None = None
        #: The client left before it got an id to come back with.
        self._is_unheard = False
        self.output = Output(self.waker.wake_soon, wake_in=self.waker.wake_in)

    # From any thread

    def tell_session(self, session: Session, principal: Principal) -> None:
        """The session of the call, and its principal.

        Raises ProtocolError for an id whose request still runs.
        """
        if self.session is not None:
            return
        self.session, self.principal, self.schemas = session, principal, current_schemas()
        # From here on it hears of changes, so of those behind what a stream reads first.
        hub = self.hub
        for call in () if self.exchange.is_batch else self.exchange.requests:
            topic = cancel_topic(session.key, call.request.id)
            if not hub.claim(topic, self.cancel):
                raise ProtocolError(
                    INVALID_REQUEST, "A request with this id is still running.", status=400
                )
            self._topics.append(topic)

    def tell_exchange(self, exchange: Exchange) -> None:
        """What is asked for, where the body was too long to be read before."""
        self.exchange = exchange

    # On the loop

    def cancel(self) -> None:
        """The client takes the request back: it gets no answer."""
        if not self.is_over:
            self.is_over = self.is_cancelled = True
            self.output.close()
            self._stop()
            self.waker.wake()

    def _stop(self) -> None:
        """Nobody wants what this call does."""
        self.cancelled.set()
        self._work.cancel()

    def start(self) -> None:
        """Give the call to a thread. Where none has room, the reply says so."""
        self._lane = lane_of(self.exchange)
        self._seconds = get_config().tool_timeout
        try:
            self._watch(self._start_work(partial(respond, self._service(), self._lane)))
        except Busy as error:
            self._refuse(error)
        running_calls.add(self)

    def _service(self, sent_input: InputParams = NO_INPUT) -> Service:
        """For one run: the first, or one more with answers of the client."""
        return self.make(
            exchange=self.exchange,
            cancelled=self.cancelled,
            notify=self.output.add,
            # Transports whose streams cannot be resumed look at none of it.
            release_stream=self.output.release,
            tell_session=self.tell_session,
            tell_exchange=self.tell_exchange,
            sent_input=sent_input,
        )

    def _start_work(
        self, job: Callable[[], Outcome], *, is_owed: bool = False
    ) -> asyncio.Future[Outcome]:
        return lanes[self._lane].start(
            job,
            seconds=self._seconds,
            cancelled=self.cancelled,
            is_owed=is_owed,
            caller=self.caller,
        )

    def _watch(self, work: Work) -> None:
        self._work = work
        work.add_done_callback(self._worked)

    def _refuse(self, error: Busy) -> None:
        work: Work = self.loop.create_future()
        work.set_exception(error)
        self._watch(work)

    def _worked(self, work: Work) -> None:
        """One step is done. An async tool takes two more: the tool itself, and a second hop."""
        if not work.cancelled() and work.exception() is None:
            outcome = work.result()
            if not self.cancelled.is_set() and self._goes_on(outcome):
                return
            discard(outcome)
        self.is_over = True
        self.output.close()
        self.waker.wake()

    def _goes_on(self, outcome: Outcome) -> bool:
        """Whether there is another step."""
        if isinstance(outcome, PendingAnswer):
            try:
                tool = begin(outcome, caller=self.caller)
            except Busy as error:
                self._refuse(error)
                return True
            ending = asyncio.create_task(self._finish(outcome, tool))
            ending.add_done_callback(partial(given_up, outcome, tool))
            self._watch(ending)
            return True
        if outcome.asks is not None:
            self._watch(asyncio.create_task(self._ask(outcome.asks)))
            return True
        return False

    async def _ask(self, asked: InputRequired) -> Outcome:
        """Ask the client, and run the call again with the answers."""
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
        sent = InputParams(answers=answers, sent_state=asked.state)
        return await self._start_work(
            partial(respond, self._service(sent), self._lane), is_owed=True
        )

    async def _finish(self, pending: PendingAnswer, tool: Tool) -> Outcome:
        done, _ = await asyncio.wait({tool}, timeout=self._seconds)
        if not done:
            # Nobody waits any longer: a tool inside a thread ends when that lets it go.
            self.cancelled.set()
            raise OutOfTime
        return await self._start_work(partial(pending.settle, tool.result), is_owed=True)

    def result(self) -> Reply:
        """The answer, once the call is over."""
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
            await self.pass_on(drop)
            return self.result()
        finally:
            self.leave()

    async def pass_on(self, say: Say) -> None:
        """Say what comes before the answer, until that is there."""
        while True:
            await say(self.output.take(self.revision))
            if self.is_done:
                return
            await self.waker.wait()

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left but the answer."""
        return self.is_over and self.output.is_empty

    @property
    def revision(self) -> Revision:
        if self.session is None:
            return self.exchange.revision
        return Revision(self.session.revision)

    @property
    def hub(self) -> Hub:
        return get_hub(self.loop)

    def leave(self) -> None:
        """The client is answered, or gone: then what runs on has to end by itself."""
        if self.is_over:
            self.forget()
        elif self.exchange.disconnect_cancels:
            self._stop()
            self.forget()
        else:
            self.hub.keep(self._go_on_unheard())

    async def _go_on_unheard(self) -> None:
        """Without a log nobody can ever ask for the answer, or be asked anything."""
        self._is_unheard = True
        if self._asking is not None:
            self._asking.leave()
        try:
            await self.pass_on(drop)
        finally:
            self.forget()

    def forget(self) -> None:
        """It is over, and its ids are free again."""
        running_calls.discard(self)
        for topic in self._topics:
            self.hub.release(topic, self.cancel)


#: Calls of this process that are not answered yet, also where nobody waits for the answer.
running_calls: set[RunningCall] = set()


def calls_of_loop() -> list[RunningCall]:
    """Return the calls of this loop that are not answered yet. Loops that are over leave some."""
    loop = asyncio.get_running_loop()
    return [call for call in running_calls if call.loop is loop]


async def drop(messages: Sequence[bytes]) -> None:
    """Nobody hears them."""


def given_up(pending: PendingAnswer, tool: Tool, ending: Work) -> None:
    """The answer of an async tool was made, or never will be."""
    tool.cancel()
    if ending.cancelled() or ending.exception() is not None:
        pending.give_up()


def respond(service: Service, lane: Lane) -> Outcome:
    """In the thread, which is one of this lane."""
    chain = loaded.chain()
    if chain is None and lane is not Lane.WORK:
        return service.respond()
    with turns.call():
        if chain is None:
            return service.respond()
        return respond_through(chain, service)


# A call as its client follows it: in a stream that may be lost, and resumed while it runs on.

#: Seconds without an answer after which the response becomes a stream, so that it can be kept
#: alive.
GRACE = 15.0
#: Seconds between two signs of life. Proxies give up a quiet connection after 30 or 60.
KEEP_ALIVE = 15.0
#: Seconds that an answer may take before anybody looks whether the client is still there. Most
#: answers are ready sooner, and watching a connection costs more than they do.
QUICK = 0.05


class CallStream:
    """One running call and the response to the request that began it."""

    def __init__(self, call: RunningCall, response: ResponseStream) -> None:
        self.call = call
        self.response = response
        #: The key of the log, from which a client resumes. None: nothing was sent.
        self._log: str | None = None
        #: Whether the log has all that was sent.
        self._is_kept = True
        #: The answer is on its way to the client, and to the log if there is one.
        self._is_answered = False

    async def follow(self, receive: Receive) -> Reply | None:
        """Send messages until the answer is sent or the client is gone.

        Returns the reply if it opens a stream of its own.
        """
        call, response = self.call, self.response
        gone: asyncio.Task[None] | None = None
        try:
            await call.waker.wait(QUICK)
            while not (response.has_ended or (gone is not None and gone.done())):
                await self._say(call.output.take(call.revision))
                if call.is_done:
                    return await self._end()
                if self.may_stream and call.output.released is not None and call.session:
                    await self._let_go(call.output.released)
                    return None
                gone = gone or self._listen(receive)
                is_quiet = not await call.waker.wait(KEEP_ALIVE if response.has_started else GRACE)
                # A header of the answer to a handshake names the session, so it has to wait.
                if is_quiet and self.may_stream and not begins_session(call.exchange):
                    await self._keep_alive()
        finally:
            if gone is not None:
                gone.cancel()
            self._leave()
        return None

    @property
    def may_stream(self) -> bool:
        """Return whether the client is to get more than the answer."""
        return self.call.exchange.accepted.names_stream

    def _listen(self, receive: Receive) -> asyncio.Task[None]:
        gone = asyncio.create_task(until_disconnected(receive))
        gone.add_done_callback(lambda task: self.call.waker.wake())
        return gone

    # What is sent

    async def _say(self, messages: Sequence[bytes], *, is_final: bool = False) -> None:
        """Send messages as events: in a session, after its log has them."""
        if not messages or not (is_final or self.may_stream):
            return
        if self.call.session is None:
            await self.response.events(messages)
            return
        first = await self._begin_log()
        await self.response.frames(first + await self._keep(messages, is_final=is_final))

    async def _keep_alive(self) -> None:
        if self.response.has_started or self.call.session is None:
            await self.response.keep_alive()
        else:
            await self.response.frames(await self._begin_log() or sse.OPEN)

    async def _end(self) -> Reply | None:
        """The answer, or the end without one of a call that the client took back."""
        self._is_answered = True
        if self.call.is_cancelled and not self.may_stream:
            await self.response.reply(Reply(status=202))
            return None
        if self.call.is_cancelled:
            await self.response.open()
            if self._log is not None:
                await self._keep((), is_final=True)
            return None
        reply = self.call.result()
        if reply.opens is not None:
            return reply
        if self.response.is_streaming or (self.response.is_to_stream and reply.status == 200):
            await self._say(reply.parts, is_final=True)
        else:
            await self.response.reply(reply)
        return None

    async def _let_go(self, milliseconds: int) -> None:
        """Close the stream although the call runs on: the client comes back for the answer."""
        self.call.output.released = None
        await self.response.frames(await self._begin_log() + sse.encode_retry(milliseconds))
        await self.response.end()

    # What is kept

    async def _begin_log(self) -> bytes:
        """Return the first frame of a stream: it tells a client how to come back, where the
        revision of its session has that. Where a log cannot be begun, the call goes on without.
        """
        call, session = self.call, self.call.session
        if session is None or self._log is not None:
            return b""
        self._log = ""
        ids = [each.request.id for each in call.exchange.requests]
        request = encoder.encode(ids[0] if len(ids) == 1 else None).decode()

        def begin(store: Store) -> None:
            self._log = key = new_key(call.principal)
            store.open_log(key, session=session.key, owner=call.hub.key, request=request)

        try:
            await in_store(entered(call.schemas)(begin))
        except Exception:
            logger.exception("A stream cannot be resumed.")
            self._is_kept = False
        if self._is_kept and call.revision.features.priming_events:
            return sse.encode_priming(sse.event_id(self._log, 0))
        return b""

    async def _keep(self, messages: Sequence[bytes], *, is_final: bool = False) -> bytes:
        """Keep messages in the log, and return them as frames, which can be resumed from."""
        key, last = self._log or "", -1
        if self._is_kept:
            try:
                last = await in_store(lambda store: store.append(key, messages, is_final=is_final))
            except Exception:
                logger.exception("A stream cannot be resumed from here on.")
        # With its session a log is gone, and nobody can come back.
        self._is_kept = last >= len(messages)
        first = last - len(messages) + 1
        return b"".join(
            sse.encode_event(
                message, event_id=sse.event_id(key, first + index) if self._is_kept else ""
            )
            for index, message in enumerate(messages)
        )

    # Without a client

    def _leave(self) -> None:
        # A call may end while its client leaves, or is told to come back: then nobody has had the
        # answer, although it is there.
        if self._log is None or self._is_answered:
            self.call.leave()
        else:
            self.call.hub.keep(self._go_on(self._log))

    async def _go_on(self, log: str) -> None:
        """Nobody listens, but the client may come back: keep what it would have been sent."""

        async def keep(messages: Sequence[bytes], *, is_final: bool = False) -> None:
            if messages or is_final:
                await self._keep(messages, is_final=is_final)
                # Whoever reads the log instead of the stream: there is more.
                publish({Change(topic=log_topic(log))})

        try:
            await self.call.pass_on(keep)
            await keep(() if self.call.is_cancelled else self.call.result().parts, is_final=True)
        finally:
            self.call.forget()


# Async tools: awaited on the server's loop, with threads of their own for the database.


Tool: TypeAlias = "asyncio.Task[Any]"

#: Async tools that run, wanted or not, and who called them. asyncio itself keeps no reference.
async_calls: dict[Tool, str] = {}


def begin(pending: PendingAnswer, *, caller: str = "") -> Tool:
    """Start an async tool. Raises Busy when too many run, in all or of `caller`."""
    most = get_config().max_waiting
    share = share_of(most) if caller else most
    if len(async_calls) >= most or list(async_calls.values()).count(caller) >= share:
        pending.release()
        pending.give_up()
        raise Busy
    tool = asyncio.create_task(with_own_thread(pending.awaitable))
    async_calls[tool] = caller
    tool.add_done_callback(partial(tool_ended, pending))
    return tool


def tool_ended(pending: PendingAnswer, tool: Tool) -> None:
    del async_calls[tool]
    # One that is cancelled before its first step never gets to the coroutine.
    pending.release()
    if not tool.cancelled():
        # Looked at, or asyncio complains where nobody waits for the tool any more.
        tool.exception()


async def with_own_thread(awaitable: Awaitable[Any]) -> Any:
    """Await the tool, with a thread and a connection of its own for its database work."""
    async with ThreadSensitiveContext():
        try:
            return await awaitable
        except (Exception, asyncio.CancelledError):
            raise
        except BaseException as raised:  # SystemExit would end the server
            raise as_exception(raised) from raised
        finally:
            # The thread of this context ends with it, and would leave its connections open.
            await sync_to_async(close_connections)()
