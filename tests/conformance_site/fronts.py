"""Servers of HTTP between the suite and the site."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

from tests.conformance_site.upstreams import Message, shut


class Front(ThreadingHTTPServer):
    """`with front.serving() as url`. A connection is one request."""

    daemon_threads = True

    def __init__(self, target: str, *, revision: str) -> None:
        """Handshakes ask for `revision`. The suite's client always wants its newest one."""
        super().__init__(("127.0.0.1", 0), Handler)
        self.target, self.revision = target, revision
        #: The revisions that the server answered in: as a handshake has agreed, or, where there
        #: is none, as the request names it.
        self.agreed: set[str] = set()

    @contextmanager
    def serving(self) -> Iterator[str]:
        Thread(target=self.serve_forever, daemon=True).start()
        try:
            yield f"http://localhost:{self.server_port}/mcp"
        finally:
            self.shutdown()
            self.server_close()

    def answer(self, handler: Handler, body: bytes) -> None:
        raise NotImplementedError

    def own(self, value: str) -> str:
        """Our host and port in a header become the target's. Others stay, to be refused."""
        for name in ("localhost", "127.0.0.1"):
            value = value.replace(f"{name}:{self.server_port}", urlsplit(self.target).netloc)
        return value

    def renegotiate(self, message: Message) -> Message:
        if message.get("method") == "initialize" and "protocolVersion" in message["params"]:
            message["params"]["protocolVersion"] = self.revision
        return message


class Handler(BaseHTTPRequestHandler):
    server: Front

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        with suppress(OSError, HTTPException):
            self.server.answer(self, body)
            # Wakes whoever watches, which closing would not.
            shut(self.connection)

    do_GET = do_DELETE = do_POST

    def log_message(self, *args: object) -> None:
        """Nobody reads it."""

    def begin(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def write(self, data: bytes) -> None:
        agreed = re.findall(rb'"protocolVersion": ?"([^"]+)"', data)
        self.server.agreed.update(one.decode() for one in agreed)
        self.wfile.write(data)

    def write_event(self, message: Message) -> None:
        self.write(f"event: message\ndata: {json.dumps(message)}\n\n".encode())

    def watch(self, gone: Callable[[], object]) -> None:
        """Call `gone` once the client is, or the answer is complete."""

        def wait() -> None:
            with suppress(OSError):
                self.connection.recv(1)
            gone()

        Thread(target=wait, daemon=True).start()


class Witness(Front):
    """Passes everything on to a Streamable HTTP server as it is, and sees what is agreed."""

    def answer(self, handler: Handler, body: bytes) -> None:
        self.pass_on(handler, body, headers=dict(handler.headers.items()))

    def pass_on(self, handler: Handler, body: bytes, *, headers: dict[str, str]) -> None:
        upstream = HTTPConnection(urlsplit(self.target).netloc)
        upstream.putrequest(
            handler.command, handler.path, skip_host=True, skip_accept_encoding=True
        )
        for name, value in headers.items():
            if name.lower() not in ("connection", "content-length"):
                upstream.putheader(name, self.own(value))
        upstream.putheader("Content-Length", str(len(body)))
        upstream.putheader("Connection", "close")
        upstream.endheaders(body)
        handler.watch(partial(shut, upstream.sock))
        response = upstream.getresponse()
        asked = {name.lower(): value for name, value in headers.items()}
        if response.status == 200 and "mcp-session-id" not in asked:
            self.agreed.update(asked[name] for name in asked if name == "mcp-protocol-version")
        hop = ("connection", "transfer-encoding", "date", "server")
        kept = {name: value for name, value in response.getheaders() if name.lower() not in hop}
        handler.begin(response.status, **kept)
        while data := response.read1(65536):
            handler.write(data)


class Negotiator(Witness):
    """Passes all else on, in a revision that the suite does not ask for."""

    def answer(self, handler: Handler, body: bytes) -> None:
        if body:
            body = json.dumps(self.renegotiate(json.loads(body))).encode()
        headers = dict(handler.headers.items())
        changed = [name for name in headers if name.lower() == "mcp-protocol-version"]
        self.pass_on(handler, body, headers={**headers, **dict.fromkeys(changed, self.revision)})
