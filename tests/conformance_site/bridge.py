"""Streamable HTTP in front of servers that the suite cannot ask itself: it speaks nothing else.

What a bridge does with sessions, statuses and headers is its own: scenarios about those say
nothing about the server behind it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread

from tests.conformance_site.fronts import Front, Handler
from tests.conformance_site.upstreams import Message, RefusedError, Upstream

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
REVISION = "io.modelcontextprotocol/protocolVersion"
#: The statuses that 2026-07-28 gives to errors over HTTP. Elsewhere an error is the error alone.
STATUSES = {-32601: 404, -32600: 400, -32602: 400, -32020: 400, -32021: 400, -32022: 400}
#: None when nothing more comes.
Messages = SimpleQueue[Message | None]


@dataclass(eq=False, kw_only=True)
class Waiting:
    """A request, and the stream that waits for its messages."""

    request: Message
    is_modern: bool
    messages: Messages = field(default_factory=SimpleQueue)

    @property
    def is_listening(self) -> bool:
        return bool(self.request["method"] == "subscriptions/listen")

    @property
    def token(self) -> object:
        return meta_of(self.request).get("progressToken")


def meta_of(message: Message) -> Message:
    return (message.get("params") or {}).get("_meta") or {}


class Conversation:
    """An upstream, and who waits for what it says. Ids are made anew: clients may share it."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self.waiting: dict[object, Waiting] = {}
        self.count = 0
        self.is_over = False
        #: For the standalone stream of the session.
        self.others: Messages = SimpleQueue()
        self.lock = Lock()
        Thread(target=self._read, daemon=True).start()

    def ask(self, waiting: Waiting) -> int:
        with self.lock:
            self.count += 1
            key = self.count
            self.waiting[key] = waiting
            if self.is_over:
                waiting.messages.put(None)
        self.upstream.send({**waiting.request, "id": key})
        return key

    def leave(self, key: int) -> None:
        """The stream is over. In 2026-07-28 that takes the request back; before, it does not."""
        waiting = self.waiting.pop(key, None)
        if waiting is not None and waiting.is_modern:
            cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
            self.upstream.send({**cancelled, "params": {"requestId": key}})

    def _read(self) -> None:
        try:
            for message in self.upstream.messages():
                self._route(message)
        finally:
            with self.lock:
                self.is_over = True
                for queue in (self.others, *(one.messages for one in self.waiting.values())):
                    queue.put(None)

    def _route(self, message: Message) -> None:
        if "method" not in message:
            waiting = self.waiting.pop(message.get("id"), None)
            if waiting is not None:
                waiting.messages.put({**message, "id": waiting.request["id"]})
                waiting.messages.put(None)
            return
        subscribed = self.waiting.get(meta_of(message).get(SUBSCRIPTION))
        if subscribed is not None:
            meta_of(message)[SUBSCRIPTION] = subscribed.request["id"]
            subscribed.messages.put(message)
            return
        token = (message.get("params") or {}).get("progressToken")
        running = [one for one in self.waiting.copy().values() if not one.is_listening]
        named = [one for one in running if token is not None and one.token == token]
        found = next(iter(named or running), None)
        (found.messages if found else self.others).put(message)


class Bridge(Front):
    """A session has an upstream of its own. Requests without a session have one together."""

    def __init__(
        self, connect: Callable[[dict[str, str]], Upstream], target: str = "", *, revision: str
    ) -> None:
        """`connect` is given Host and Origin as the client wrote them. May raise RefusedError."""
        super().__init__(target, revision=revision)
        self.connect = connect
        self.conversations: dict[str, Conversation] = {}
        self.spec = Lock()

    def server_close(self) -> None:
        super().server_close()
        for key in list(self.conversations):
            self.end(key)

    def answer(self, handler: Handler, body: bytes) -> None:
        key = handler.headers.get("mcp-session-id", "")
        try:
            if handler.command == "POST":
                self._post(handler, self.renegotiate(json.loads(body)), key=key)
            elif key not in self.conversations:
                raise RefusedError(404 if key else 405)
            elif handler.command == "DELETE":
                self.end(key)
                handler.begin(200)
            else:
                others = self.conversations[key].others
                handler.watch(partial(others.put, None))
                handler.begin(200, content_type="text/event-stream")
                self._stream(handler, others)
                # Not each client that leaves says so, and this one had a stream.
                self.end(key)
        except RefusedError as error:
            handler.begin(error.status)

    def end(self, key: str) -> None:
        conversation = self.conversations.pop(key, None)
        if conversation is not None:
            conversation.upstream.close()

    def _post(self, handler: Handler, message: Message, *, key: str) -> None:
        is_handshake = message.get("method") == "initialize" and REVISION not in meta_of(message)
        headers = {}
        if is_handshake and not key:
            key = secrets.token_hex()
            headers = {"mcp_session_id": key}
        conversation = self._conversation(handler, key=key, is_new=bool(headers) or not key)
        if "method" not in message or "id" not in message:
            conversation.upstream.send(message)
            handler.begin(202)
            return
        waiting = Waiting(request=message, is_modern=not key)
        handler.watch(partial(waiting.messages.put, None))
        number = conversation.ask(waiting)
        try:
            self._reply(handler, waiting, **headers)
        finally:
            conversation.leave(number)

    def _reply(self, handler: Handler, waiting: Waiting, **headers: str) -> None:
        first = waiting.messages.get()
        if first is not None and "error" in first:
            status = STATUSES.get(first["error"]["code"], 200) if waiting.is_modern else 200
            handler.begin(status, content_type="application/json", **headers)
            handler.write(json.dumps(first).encode())
        elif first is not None:
            if waiting.is_modern:
                self.agreed.add(meta_of(waiting.request)[REVISION])
            handler.begin(200, content_type="text/event-stream", **headers)
            handler.write_event(first)
            self._stream(handler, waiting.messages)

    def _conversation(self, handler: Handler, *, key: str, is_new: bool) -> Conversation:
        with self.spec:
            if key not in self.conversations:
                if not is_new:
                    raise RefusedError(404)
                given = {name: handler.headers.get(name, "") for name in ("host", "origin")}
                headers = {name: self.own(value) for name, value in given.items() if value}
                self.conversations[key] = Conversation(self.connect(headers))
            return self.conversations[key]

    def _stream(self, handler: Handler, messages: Messages) -> None:
        """Until no more comes, or the client is gone."""
        while (message := messages.get()) is not None:
            handler.write_event(message)
