"""What one client and this process say to each other, message by message."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mcp_django.auth.stdio import STDIO
from mcp_django.exceptions import Busy
from mcp_django.protocol.errors import INVALID_REQUEST, ProtocolError
from mcp_django.protocol.jsonrpc import Notification, encode_error, encoder, is_id
from mcp_django.protocol.questions import InputParams
from mcp_django.protocol.revisions import ASSUMED
from mcp_django.protocol.session import negotiate
from mcp_django.transports.calls import RunningCall
from mcp_django.transports.endpoint import begins_session
from mcp_django.transports.event_streams import AlreadyOpen
from mcp_django.transports.exchanges import Exchange, Opening, Reply
from mcp_django.transports.hub import TooManyStreams, get_hub
from mcp_django.transports.lines import Line, LineReader, LineWriter, lines_of
from mcp_django.transports.refusals import busy, failed
from mcp_django.transports.serving import Service
from mcp_django.transports.sessions import HEADER, end_session, key_of
from mcp_django.transports.stdio_callers import Caller
from mcp_django.transports.stdio_exchanges import Agreed, takes_back, understand_line
from mcp_django.transports.stdio_streams import LineCall, LineStream

logger = logging.getLogger("mcp_django")

#: Seconds that calls have to be done after the end of input. Scripts send all that they have at
#: once; clients wait for two seconds before they kill.
GRACE = 0.5
#: Seconds for what is said last, and for a client that does not read it.
FAREWELL = 0.5
SUBSCRIBE = frozenset({"resources/subscribe", "resources/unsubscribe"})
INITIALIZED = "notifications/initialized"


@dataclass(eq=False)
class Pending:
    """A request that has no answer yet."""

    cancel: Callable[[], object]
    is_taken_back: bool = False

    def take_back(self) -> None:
        self.is_taken_back = True
        self.cancel()


class Conversation:
    """Everything that the client asks for, all at once, in whatever era each message is."""

    def __init__(self, caller: Caller, writer: LineWriter) -> None:
        self.caller = caller
        self.writer = writer
        self.agreed: Agreed | None = None
        #: By id as JSON, since 1 and "1" are two.
        self._pending: dict[bytes, Pending] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._calls: set[LineCall] = set()
        self._done = asyncio.Event()
        self._listens = asyncio.Event()
        #: What the session hears of.
        self._standing: LineStream | None = None

    async def read(self, reader: LineReader) -> None:
        """Take lines until there are none."""
        with suppress(EOFError):
            while True:
                # Who does not read what we write is not heard, either, or answers would pile up.
                await self.writer.until_room()
                line = await reader.line()
                if line is None or line.strip():
                    await self.take(line)

    async def take(self, line: Line) -> None:
        try:
            exchange = understand_line(line, self.agreed)
            self._check_ids(exchange)
        except ProtocolError as error:
            await self._refuse(error)
            return
        for notice in exchange.notices:
            self._take_back(takes_back(notice))
        notices = tuple(one for one in exchange.notices if takes_back(one) is None)
        exchange = replace(exchange, notices=notices)
        # Outside of a session nothing is known that a notification could be about.
        if exchange.calls or (notices and exchange.session_id is not None):
            task = self._start(self._answer(exchange, line or b""))
            if begins_session(exchange) or is_ready(exchange):
                # What comes next may need what is agreed on, or ask the client.
                await asyncio.wait({task})

    def _check_ids(self, exchange: Exchange) -> None:
        for call in exchange.requests:
            if encoder.encode(call.request.id) in self._pending:
                raise ProtocolError(
                    INVALID_REQUEST,
                    "A request with this id is still running.",
                    request_id=call.request.id,
                )

    def _take_back(self, request_id: object) -> None:
        pending = self._pending.get(encoder.encode(request_id)) if is_id(request_id) else None
        if pending is not None:
            pending.take_back()

    async def _refuse(self, error: ProtocolError) -> None:
        revision = ASSUMED if self.agreed is None else self.agreed.revision
        id_optional = revision.features.error_id_optional
        await self.writer.write(lines_of([encode_error(error, id_optional=id_optional)]))

    def _start(self, answering: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(answering)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # One message

    async def _answer(self, exchange: Exchange, body: bytes) -> None:
        call = LineCall(exchange, prepare=partial(self._prepare, exchange, body))
        # A batch has one answer, which is not for one of its requests to take back.
        pending = Pending(bool if exchange.is_batch else call.cancel)
        try:
            with self._known(exchange, pending):
                reply = await self._reply(call, exchange)
                if reply is None or pending.is_taken_back:
                    return
                if reply.opens is not None:
                    reply = await self._stream(reply.opens, exchange, pending)
            await self._settle(reply, exchange)
        except Exception:
            correlation_id = secrets.token_hex(8)
            logger.exception("A message failed [%s]", correlation_id)
            await self._say(failed(exchange, correlation_id), exchange)

    def _prepare(
        self, exchange: Exchange, body: bytes, call: RunningCall, sent_input: InputParams
    ) -> Service:
        return Service(
            exchange=exchange,
            request=self.caller.request(body),
            cancelled=call.cancelled,
            notify=call.notify,
            transport=STDIO,
            recognise=self.caller.recognise,
            tell_session=call.tell_session,
            sent_input=sent_input,
        )

    async def _reply(self, call: LineCall, exchange: Exchange) -> Reply | None:
        self._calls.add(call)
        try:
            call.start()
            return await call.tell(self.writer)
        except Busy:
            return busy(exchange)
        finally:
            self._calls.discard(call)
            self._done.set()

    async def _stream(self, opening: Opening, exchange: Exchange, pending: Pending) -> Reply:
        """Serve a stream to its end, whose answer it has written by then."""
        opened = self._listens.set if opening.session else bool
        stream = LineStream(opening, self.writer, source=self.caller, opened=opened)
        self._standing = stream if opening.session else self._standing
        pending.cancel = stream.leave
        try:
            await stream.serve()
        except (TooManyStreams, AlreadyOpen):
            return busy(exchange)
        return Reply()

    @contextmanager
    def _known(self, exchange: Exchange, pending: Pending) -> Iterator[None]:
        """Each of its requests is running meanwhile."""
        keys = [encoder.encode(call.request.id) for call in exchange.requests]
        self._pending.update(dict.fromkeys(keys, pending))
        try:
            yield
        finally:
            for key in keys:
                self._pending.pop(key, None)

    async def _settle(self, reply: Reply, exchange: Exchange) -> None:
        """The answer, and what follows from it."""
        if begins_session(exchange):
            self._agree(reply, exchange)
        if self._standing is not None and subscribes(exchange):
            # Of what happens after the answer the client is told.
            await self._standing.reload()
        await self._say(reply, exchange)
        if is_ready(exchange):
            await self._listen()

    async def _say(self, reply: Reply, exchange: Exchange) -> None:
        # Nobody answers a notification, not even to say that it was refused.
        if exchange.calls and reply.parts:
            await self.writer.write(lines_of([reply.body]))

    # The session

    def _agree(self, reply: Reply, exchange: Exchange) -> None:
        session_id = dict(reply.headers).get(HEADER)
        if session_id is None:
            return
        before, params = self.agreed, exchange.requests[0].request.params
        self.agreed = Agreed(session_id=session_id, revision=negotiate(dict(params)))
        if before is not None:
            end_session(key_of(before.session_id))

    async def _listen(self) -> None:
        """Return when the session hears of changes. A second time it is refused, silently."""
        assert self.agreed is not None  # noqa: S101  notices without a session go nowhere
        exchange = Exchange(
            verb="GET", session_id=self.agreed.session_id, revision=self.agreed.revision
        )
        self._listens.clear()
        task = self._start(self._answer(exchange, b""))
        task.add_done_callback(lambda task: self._listens.set())
        await self._listens.wait()

    # The end

    async def close(self, reading: asyncio.Task[None], *, is_hurried: bool) -> None:
        """Calls get a moment, and lines that wait as well, unless the process is told to hurry.
        Then calls are cancelled; subscriptions end in good order.
        """
        if is_hurried:
            reading.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await asyncio.wait({reading})
                await self._until_quiet()
        reading.cancel()
        for call in tuple(self._calls):
            call.cancel()
        get_hub().close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=FAREWELL)
        await self.writer.flush(FAREWELL)

    async def _until_quiet(self) -> None:
        while self._calls:
            self._done.clear()
            await self._done.wait()


def is_ready(exchange: Exchange) -> bool:
    """Whether the client says that its part of the handshake is done."""
    return any(
        isinstance(notice, Notification) and notice.method == INITIALIZED
        for notice in exchange.notices
    )


def subscribes(exchange: Exchange) -> bool:
    return any(call.request.method in SUBSCRIBE for call in exchange.requests)
