"""A proxy with one of the faults that proxies have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from urllib.parse import urlsplit

from tests.conformance_site.fronts import Front, Handler
from tests.conformance_site.upstreams import shut

#: Of one connection, and what the next server adds itself.
HOP = ("connection", "content-length", "transfer-encoding", "date", "server")


@dataclass(frozen=True, kw_only=True)
class Fault:
    #: Headers of requests and of answers that it changes, or drops: None.
    asks: Mapping[str, str | None] = field(default_factory=dict)
    answers: Mapping[str, str | None] = field(default_factory=dict)
    #: What it answers itself, in place of the site. ECHO stands for the headers of the request.
    status: int = 0
    body: str = ""
    #: The names in every list of tools.
    tools: tuple[str, ...] | None = None
    #: Passes an answer on once it has all of it.
    buffers: bool = False


class FaultyProxy(Front):
    def __init__(self, target: str, fault: Fault) -> None:
        super().__init__(target, revision="")
        self.fault = fault
        #: The method of each message that was posted, and the headers, in lower case.
        self.requests: list[tuple[str, dict[str, str]]] = []

    def answer(self, handler: Handler, body: bytes) -> None:
        fault, asked = self.fault, lowered(handler.headers.items())
        self.requests.append((json.loads(body)["method"] if body else "", asked))
        if fault.status:
            self.begin(handler, fault.status, {"content-type": "text/html"})
            handler.write(fault.body.replace("ECHO", str(handler.headers)).encode())
        elif fault.tools is not None and b'"tools/list"' in body:
            tools = [{"name": name, "inputSchema": {}} for name in fault.tools]
            self.begin(handler, 200, {"content-type": "application/json"})
            answer = {"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}
            handler.write(json.dumps(answer).encode())
        else:
            self.pass_on(handler, body, asked)

    def begin(self, handler: Handler, status: int, headers: Mapping[str, str]) -> None:
        handler.send_response_only(status)
        date, changes = handler.date_time_string(), lowered(self.fault.answers.items())
        for name, value in {"date": date, **headers, **changes}.items():
            if value is not None:
                handler.send_header(name, value)
        handler.end_headers()

    def pass_on(self, handler: Handler, body: bytes, asked: Mapping[str, str]) -> None:
        upstream = HTTPConnection(urlsplit(self.target).netloc)
        upstream.putrequest(
            handler.command, handler.path, skip_host=True, skip_accept_encoding=True
        )
        sent = {**asked, "host": self.own(asked["host"]), **lowered(self.fault.asks.items())}
        for name, value in sent.items():
            if name not in HOP and value is not None:
                upstream.putheader(name, value)
        upstream.putheader("Content-Length", str(len(body)))
        upstream.putheader("Connection", "close")
        upstream.endheaders(body)
        handler.watch(partial(shut, upstream.sock))
        response = upstream.getresponse()
        waiting = response.read() if self.fault.buffers else b""
        headers = lowered(response.getheaders())
        passed = {name: value for name, value in headers.items() if name not in HOP}
        self.begin(handler, response.status, passed)
        handler.write(waiting)
        while data := response.read1(65536):
            handler.write(data)


def lowered(pairs):
    return {name.lower(): value for name, value in pairs}
