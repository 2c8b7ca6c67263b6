"""A call as its client follows it: in a stream that may be lost, and resumed while it runs on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from mcp_django.protocol import sse
from mcp_django.protocol.jsonrpc import encoder
from mcp_django.stores.interface import Session
from mcp_django.transports.call_logs import CallLog
from mcp_django.transports.calls import RunningCall
from mcp_django.transports.exchanges import Reply
from mcp_django.transports.streams import Receive, ResponseStream, until_disconnected

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
        self._log: CallLog | None = None
        self._is_quiet = False

    async def follow(self, receive: Receive) -> Reply | None:
        """Send what comes until the answer is sent or the client is gone.

        Returns a reply that opens a stream of its own.
        """
        call, response = self.call, self.response
        gone: asyncio.Task[None] | None = None
        try:
            await self._wait(QUICK)
            while not (response.has_ended or (gone is not None and gone.done())):
                await self._say(call.output.take(call.revision))
                if call.is_done:
                    return await self._end()
                if call.output.released is not None and call.session is not None:
                    await self._let_go(call.session, call.output.released)
                    return None
                gone = gone or self._listen(receive)
                if not await self._wait(KEEP_ALIVE if response.has_started else GRACE):
                    await self._keep_alive()
        finally:
            if gone is not None:
                gone.cancel()
            self._leave()
        return None

    def _listen(self, receive: Receive) -> asyncio.Task[None]:
        gone = asyncio.create_task(until_disconnected(receive))
        gone.add_done_callback(lambda task: self.call.wake())
        return gone

    async def _wait(self, seconds: float) -> bool:
        """Whether anything happened in that time."""
        self._is_quiet = False
        timer = asyncio.get_running_loop().call_later(seconds, self._be_quiet)
        try:
            await self.call.wait()
        finally:
            timer.cancel()
        return not self._is_quiet

    def _be_quiet(self) -> None:
        self._is_quiet = True
        self.call.wake()

    # What is sent

    async def _say(self, messages: Sequence[bytes], *, is_final: bool = False) -> None:
        """Send messages as events: in a session, after its log has them."""
        if not messages:
            return
        if self.call.session is None:
            await self.response.events(messages)
            return
        log, frames = await self._begin_log(self.call.session)
        await self.response.frames(frames + await log.frames(messages, is_final=is_final))

    async def _begin_log(self, session: Session) -> tuple[CallLog, bytes]:
        """The log of a stream, with the first frame of one that begins."""
        if self._log is not None:
            return self._log, b""
        ids = [call.request.id for call in self.call.exchange.requests]
        request = encoder.encode(ids[0] if len(ids) == 1 else None).decode()
        self._log = CallLog(
            session, principal=self.call.principal, owner=self.call.hub.key, request=request
        )
        return self._log, await self._log.open()

    async def _keep_alive(self) -> None:
        if self.call.session is not None and not self.response.has_started:
            _, frame = await self._begin_log(self.call.session)
            await self.response.frames(frame or sse.OPEN)
        else:
            await self.response.keep_alive()

    async def _end(self) -> Reply | None:
        """The answer, or the end without one of a call that the client took back."""
        if self.call.is_cancelled:
            await self.response.open()
            if self._log is not None:
                await self._log.frames((), is_final=True)
            return None
        reply = self.call.result()
        if reply.opens is not None:
            return reply
        if self.response.is_streaming:
            await self._say(reply.parts, is_final=True)
        else:
            await self.response.reply(reply)
        return None

    async def _let_go(self, session: Session, milliseconds: int) -> None:
        """Close the stream although the call runs on: the client comes back for the answer."""
        self.call.output.released = None
        _, frame = await self._begin_log(session)
        await self.response.frames(frame + sse.encode_retry(milliseconds))
        await self.response.end()

    # Without a client

    def _leave(self) -> None:
        if self._log is None or self.call.is_done:
            self.call.leave()
        else:
            self.call.hub.keep(self._go_on(self._log))

    async def _go_on(self, log: CallLog) -> None:
        """Nobody listens, but the client may come back: keep what it would have been sent."""
        try:
            await self.call.pass_on(partial(keep, log))
            parts = () if self.call.is_cancelled else self.call.result().parts
            await log.frames(parts, is_final=True)
            log.tell()
        finally:
            self.call.forget()


async def keep(log: CallLog, messages: Sequence[bytes]) -> None:
    if messages:
        await log.frames(messages, is_final=False)
        log.tell()
