"""stdio: one client, and the one process that it has started. A line is a message."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from django.conf import settings
from django.core.cache.backends.locmem import LocMemCache
from django.http import HttpRequest

from mcp_django.auth.authenticate import STDIO, authenticate
from mcp_django.auth.resource import endpoint_path
from mcp_django.conf import get_config
from mcp_django.principal import Principal
from mcp_django.protocol.errors import INVALID_REQUEST, PARSE_ERROR, ProtocolError
from mcp_django.protocol.jsonrpc import (
    Batch,
    Message,
    Notification,
    Request,
    decode,
    encode_error,
    encoder,
    is_id,
    requests_of,
)
from mcp_django.protocol.negotiation import (
    NO_HEADERS,
    REVISION_KEY,
    Route,
    meta_of,
    negotiate,
    open_envelope,
    route,
)
from mcp_django.protocol.revisions import ASSUMED, Revision
from mcp_django.stores.sessions import Store, using_store
from mcp_django.transports.call import calls_of_loop
from mcp_django.transports.endpoint import batch_exchange, begins_session
from mcp_django.transports.exchanges import Call, Exchange, Reply, StreamSpec, busy, crashed
from mcp_django.transports.hub import TooManyStreams, get_hub
from mcp_django.transports.notifier import Reader
from mcp_django.transports.serving import Service
from mcp_django.transports.sessions import CANCELLATIONS, HEADER, end_session, key_of
from mcp_django.transports.shutdown import until_ended
from mcp_django.transports.stdio_lines import (
    Line,
    LineCall,
    LineReader,
    LineStream,
    LineWriter,
    lines_of,
)

# From a line to what it asks for. There are no headers: the message says it all, or its session.
#
# The era is that of each message: one with an envelope is modern, whatever came before it.


@dataclass(frozen=True, kw_only=True)
class Agreed:
    """What a handshake came to. Without one: no session."""

    session_id: str | None = None
    revision: Revision = ASSUMED


def understand_line(line: Line, agreed: Agreed) -> Exchange:
    """Raises ProtocolError for what is no message, and for what is none of this moment."""
    config = get_config()
    if line is None:
        raise ProtocolError(PARSE_ERROR, f"The line is longer than {config.max_body} bytes.")
    received = decode(line, max_depth=config.max_depth, max_batch=config.max_batch)
    if isinstance(received, Batch):
        check_batch(received, agreed)
        exchange = batch_exchange(received, NO_HEADERS, revision=ASSUMED)
    elif isinstance(received, Request):
        envelope = open_envelope(NO_HEADERS, received)
        calls = (Call(request=received, envelope=envelope),)
        exchange = Exchange(calls=calls, revision=envelope.revision)
        if route(NO_HEADERS, received) is not Route.LEGACY:
            return exchange
        if agreed.session_id is None and received.method != "ping":
            raise ProtocolError(
                INVALID_REQUEST,
                "Send initialize first, or an envelope in params._meta.",
                request_id=received.id,
            )
    else:
        exchange = Exchange(notices=(received,))
    return replace(exchange, session_id=agreed.session_id, revision=agreed.revision)


def check_batch(batch: Batch, agreed: Agreed) -> None:
    if agreed.session_id is None or not agreed.revision.features.batches:
        raise ProtocolError(INVALID_REQUEST, "Batches exist after agreeing on 2025-03-26 only.")
    if any(REVISION_KEY in meta_of(request) for request in requests_of(batch)):
        raise ProtocolError(INVALID_REQUEST, "A request of a modern revision stands alone.")


# Who is at the other end of the pipe, and the request of Django's that each call is given.


class Caller(Reader):
    """One for each process. Each call authenticates again."""

    def __init__(
        self, *, recognize: Callable[[HttpRequest], Principal] = authenticate, token: str = ""
    ) -> None:
        """With a `token`, requests carry it as clients send it by HTTP."""
        # Middleware and tools may ask the request for a host that the site answers to.
        hosts = [host.lstrip(".") for host in settings.ALLOWED_HOSTS if host != "*"]
        host = hosts[0] if hosts else "localhost"
        origin = urlsplit(get_config().public_url or f"http://{host}")
        path = endpoint_path()
        headers = [(b"host", origin.netloc.encode()), (b"content-type", b"application/json")]
        if token:
            headers.append((b"authorization", f"Bearer {token}".encode()))
        scope = {
            "type": "http",
            "method": "POST",
            "scheme": origin.scheme,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": headers,
            "client": ("127.0.0.1", 0),
            "server": (origin.hostname, origin.port),
        }
        super().__init__(scope, recognize=recognize)


#: Seconds that calls have to be done after the end of input. Scripts send all that they have at
#: once; clients wait for two seconds before they kill.
GRACE = 0.5
#: Seconds for what is said last, and for a client that does not read it.
FAREWELL = 0.5


class Conversation:
    """Everything that the client asks for, all at once, in whatever era each message is."""

    def __init__(self, caller: Caller, writer: LineWriter) -> None:
        self.caller = caller
        self.writer = writer
        self.agreed = Agreed()
        #: What cancels a request that has no answer yet. By id as JSON, since 1 and "1" are two.
        self._pending: dict[bytes, Callable[[], object]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._listens = asyncio.Event()
        #: The standalone stream of the session.
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
            id_optional = self.agreed.revision.features.error_id_optional
            await self.writer.write(lines_of([encode_error(error, id_optional=id_optional)]))
            return
        notices = tuple(notice for notice in exchange.notices if not self._take_back(notice))
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

    def _take_back(self, notice: Message) -> bool:
        """Return whether the client takes a request back by this."""
        if not isinstance(notice, Notification) or notice.method not in CANCELLATIONS:
            return False
        request_id = notice.params.get(CANCELLATIONS[notice.method])
        if is_id(request_id) and (cancel := self._pending.get(encoder.encode(request_id))):
            cancel()
        return True

    def _start(self, answering: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(answering)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # One message

    async def _answer(self, exchange: Exchange, body: bytes) -> None:
        call = LineCall(exchange, make=partial(self._service, body))
        keys = [encoder.encode(call.request.id) for call in exchange.requests]
        # A batch has one answer, which is not for one of its requests to take back.
        self._pending.update(dict.fromkeys(keys, bool if exchange.is_batch else call.cancel))
        try:
            try:
                call.start()
                reply = await call.tell(self.writer)
                if reply is not None and reply.opens is not None:
                    reply = await self._stream(reply.opens, exchange, keys)
            finally:
                for key in keys:
                    self._pending.pop(key, None)
            if reply is not None:
                await self._settle(reply, exchange)
        except Exception:
            await self._say(crashed(exchange), exchange)

    def _service(self, body: bytes, **run: Any) -> Service:
        return Service(
            request=self.caller.request(body),
            transport=STDIO,
            recognize=self.caller.recognize,
            **run,
        )

    async def _stream(self, spec: StreamSpec, exchange: Exchange, keys: list[bytes]) -> Reply:
        """Serve a stream to its end, whose answer it has written by then."""
        opened = self._listens.set if spec.session else bool
        stream = LineStream(spec, self.writer, source=self.caller, opened=opened)
        self._standing = stream if spec.session else self._standing
        self._pending.update(dict.fromkeys(keys, stream.leave))
        try:
            await stream.run(asyncio.Future)
        except TooManyStreams:
            return busy(exchange)
        return Reply()

    async def _settle(self, reply: Reply, exchange: Exchange) -> None:
        """The answer, and what follows from it."""
        if begins_session(exchange):
            self._agree(reply, exchange)
        methods = {call.request.method for call in exchange.requests}
        subscribing = {"resources/subscribe", "resources/unsubscribe"}
        if self._standing is not None and not subscribing.isdisjoint(methods):
            # The client is notified of what happens after the answer.
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
        if before.session_id is not None:
            end_session(key_of(before.session_id))
        standing, self._standing = self._standing, None
        if standing is not None:
            # Its end takes a moment, in which it would still speak of the session before.
            standing.leave()

    async def _listen(self) -> None:
        """Return when the session is notified of changes. A second stream is refused silently."""
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
                await until_ended(calls_of_loop, seconds=GRACE)
        reading.cancel()
        for call in calls_of_loop():
            call.cancel()
        get_hub().close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=FAREWELL)
        await self.writer.flush(FAREWELL)


def is_ready(exchange: Exchange) -> bool:
    """Whether the client says that its part of the handshake is done."""
    return any(
        isinstance(notice, Notification) and notice.method == "notifications/initialized"
        for notice in exchange.notices
    )


# Standard input and output for messages alone, whatever code of the site reads and prints.

INPUT, OUTPUT, ERRORS = 0, 1, 2


class Pipes(NamedTuple):
    """File descriptors that no other code and no child process knows."""

    input: int
    output: int


def take_streams() -> Pipes:
    """The real ones. From now on what is printed goes to standard error, also what child processes
    print, and whoever reads standard input finds its end.
    """
    try:
        os.fstat(ERRORS)
    except OSError:
        # Whatever is opened next would be written to in its place: the lowest number is free.
        os.open(os.devnull, os.O_RDWR)
    pipes = Pipes(input=os.dup(INPUT), output=os.dup(OUTPUT))
    for fd in pipes:
        # Who started the process may have set the pipe otherwise. Windows has no such thing.
        with suppress(OSError, AttributeError):
            os.set_blocking(fd, True)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, INPUT)
    os.dup2(ERRORS, OUTPUT)
    os.close(nothing)
    # What was printed while Django started may still wait in here. It is no message either.
    # There is none under pythonw, and a stream may be closed.
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
    sys.stdout = sys.stderr
    return pipes


SIGNALS = (signal.SIGTERM, signal.SIGINT)


def process_store() -> Store:
    """In memory. The session lasts as long as the process, however long nothing happens."""
    # Of one session: itself and its logs and questions.
    cache = LocMemCache(secrets.token_hex(), {"OPTIONS": {"MAX_ENTRIES": 10_000}})
    # A century.
    return Store(lambda: cache, idle=lambda: 3e9)


async def serve(caller: Caller, pipes: Pipes) -> None:
    """Until the input ends, nobody reads the output, or the process is told to stop."""
    is_over = asyncio.Event()
    reader = LineReader(pipes.input, limit=get_config().max_body, ended=is_over.set)
    writer = LineWriter(pipes.output, closed=is_over.set)
    conversation = Conversation(caller, writer)
    with using_store(process_store()), stopping(is_over.set):
        reading = asyncio.create_task(conversation.read(reader))
        reading.add_done_callback(lambda task: is_over.set())
        await is_over.wait()
        await conversation.close(reading, is_hurried=not reader.has_ended)
        writer.close()
    with suppress(asyncio.CancelledError):
        await reading


@contextmanager
def stopping(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` for signals, where those can be had: on POSIX, in the main thread."""
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError, RuntimeError, ValueError):
        for number in SIGNALS:
            loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        with suppress(NotImplementedError, RuntimeError, ValueError):
            for number in SIGNALS:
                loop.remove_signal_handler(number)
