"""What one HTTP request set going, step by step: a thread, an async tool, questions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from threading import Event
from typing import TypeAlias

from mcp_django.conf import get_config
from mcp_django.exceptions import Busy, Cancelled
from mcp_django.exposure.budget import lift_deadlines
from mcp_django.exposure.tools import Lane
from mcp_django.principal import Principal
from mcp_django.protocol.errors import INVALID_REQUEST, ProtocolError
from mcp_django.protocol.notifications import Notification
from mcp_django.protocol.questions import InputParams
from mcp_django.protocol.results import InputRequired
from mcp_django.protocol.revisions import Revision
from mcp_django.stores.interface import Session
from mcp_django.subscriptions.events import Topic
from mcp_django.transports.async_tools import Tool, begin, outcome_of
from mcp_django.transports.bridge import respond_through
from mcp_django.transports.call_lanes import lane_of
from mcp_django.transports.client_requests import UNHEARD, ClientRequests, NoAnswer
from mcp_django.transports.exchanges import Exchange, Reply
from mcp_django.transports.executor import lanes
from mcp_django.transports.hub import Hub, get_hub
from mcp_django.transports.middleware import loaded
from mcp_django.transports.output import Output
from mcp_django.transports.pending_replies import Outcome, PendingReply
from mcp_django.transports.refusals import busy, crashed, gave_up, too_slow
from mcp_django.transports.serving import NO_INPUT, Service
from mcp_django.transports.sessions import cancel_topic
from mcp_django.transports.statements import Statements
from mcp_django.transports.threads import OutOfTime, discard
from mcp_django.transports.wsgi import mcp_view

Work: TypeAlias = "asyncio.Future[Outcome]"
Say: TypeAlias = Callable[[Sequence[bytes]], Awaitable[None]]
Prepare: TypeAlias = Callable[["RunningCall", InputParams], Service]


class RunningCall:
    """What one HTTP request set going: it may outlive the connection that asked for it."""

    def __init__(self, exchange: Exchange, *, prepare: Prepare) -> None:
        """`prepare` makes the service of one run: of the first, and of each that has answers."""
        self.exchange = exchange
        self.cancelled = Event()
        self.prepare = prepare
        self.session: Session | None = None
        #: Who calls in that session.
        self.principal: Principal
        self.is_over = False
        self.is_cancelled = False
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._hub: Hub | None = None
        self._topics: list[Topic] = []
        self._asking: ClientRequests | None = None
        #: The client left before it was told how to come back.
        self._is_unheard = False
        self._statements = Statements()
        self.output = Output(self._wake_soon, wake_in=self._wake_in)

    # From any thread

    def notify(self, notification: Notification) -> None:
        """Send this before the answer. Of several unsent values of progress the last counts."""
        self.output.add(notification)

    def tell_session(self, session: Session, principal: Principal) -> None:
        """In which session this is, and whose.

        Raises ProtocolError for an id whose request still runs.
        """
        if self.session is not None:
            return
        self.session, self._hub = session, get_hub(self._loop)
        self.principal = principal
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

    def wake(self) -> None:
        """Whoever waits for something to happen is to look again."""
        self._wake.set()

    async def wait(self) -> None:
        """Until something happened."""
        await self._wake.wait()
        self._wake.clear()

    def cancel(self) -> None:
        """The client takes the request back: it gets no answer."""
        if not self.is_over:
            self.is_over = self.is_cancelled = True
            self.output.close()
            self._stop()
            self.wake()

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
        self.is_over = True
        self.output.close()
        self.wake()

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
            while not self.is_over:
                await self.wait()
            return self.result()
        finally:
            self.leave()

    async def pass_on(self, say: Say) -> None:
        """Say what comes before the answer, until that is there."""
        while True:
            await say(self.output.take(self.revision))
            if self.is_done:
                return
            await self.wait()

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
        if self._hub is None:
            self._hub = get_hub(self._loop)
        return self._hub

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
        """Its ids are free again."""
        for topic in self._topics:
            self.hub.release(topic, self.cancel)


async def drop(messages: Sequence[bytes]) -> None:
    """Nobody hears them."""


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
