"""One call by the person at a page, on the way of any call: lanes, rights, limits, records."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from asgiref.sync import async_to_sync
from django.db import connections
from django.http import HttpRequest

from mcp_django.admin.as_user import request_of
from mcp_django.admin.callers import principal_of_page
from mcp_django.exceptions import Busy
from mcp_django.principal import Principal
from mcp_django.protocol.envelope import CAPABILITIES_KEY, CLIENT_KEY, REVISION_KEY
from mcp_django.protocol.headers import Headers, encode_value
from mcp_django.protocol.methods import NAME_PARAMS
from mcp_django.protocol.param_headers import ParamHeaders, encode_params
from mcp_django.protocol.questions import InputParams
from mcp_django.protocol.revisions import MODERN
from mcp_django.transports.calls import RunningCall
from mcp_django.transports.endpoint import understand
from mcp_django.transports.exchanges import Exchange, Reply
from mcp_django.transports.pending_replies import Outcome
from mcp_django.transports.refusals import busy
from mcp_django.transports.serving import Service

CLIENT = {"name": "Django admin", "version": "1"}
#: The person at the page answers forms. There is no model and no folder behind it.
CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}}}
#: Statements that are shown, and characters of each.
MOST_QUERIES, LONGEST_QUERY = 200, 4000


@dataclass(frozen=True, kw_only=True)
class Query:
    sql: str
    milliseconds: float


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What a call answered, and what it took."""

    message: dict[str, Any]
    bytes: int
    milliseconds: int
    #: None where the person may not see them.
    queries: list[Query] | None


@dataclass(frozen=True, kw_only=True)
class PageService(Service):
    """Serves a caller whom the session of the admin has identified."""

    principal: Principal
    queries: list[Query] | None = field(default=None)

    def identify(self) -> Principal:
        return self.principal

    def serve(self, principal: Principal) -> Outcome:
        if self.queries is None:
            return super().serve(principal)
        with recorded(self.queries):
            return super().serve(principal)


def try_call(
    request: HttpRequest,
    method: str,
    params: Mapping[str, Any],
    *,
    param_headers: ParamHeaders,
) -> Tried:
    """Make the call and wait for its answer."""
    exchange = exchange_of(method, params, param_headers)
    principal = principal_of_page(request)
    queries: list[Query] | None = [] if getattr(principal.user, "is_superuser", False) else None
    started = time.perf_counter()
    reply = async_to_sync(replied)(request, principal, exchange, queries)
    milliseconds = round((time.perf_counter() - started) * 1000)
    return Tried(
        message=msgspec.json.decode(reply.body),
        bytes=len(reply.body),
        milliseconds=milliseconds,
        queries=queries,
    )


def exchange_of(method: str, params: Mapping[str, Any], param_headers: ParamHeaders) -> Exchange:
    """The exchange that a client of the newest revision would begin."""
    revision = MODERN[-1].value
    meta = {REVISION_KEY: revision, CAPABILITIES_KEY: CAPABILITIES, CLIENT_KEY: CLIENT}
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": method,
        "params": {**params, "_meta": meta},
    }
    sent = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": revision,
        "Mcp-Method": method,
        "Mcp-Name": encode_value(str(params[NAME_PARAMS[method]])),
        **encode_params(params.get("arguments", {}), param_headers),
    }
    headers = Headers((name.encode(), value.encode("latin-1")) for name, value in sent.items())
    return understand("POST", headers, msgspec.json.encode(message))


async def replied(
    request: HttpRequest, principal: Principal, exchange: Exchange, queries: list[Query] | None
) -> Reply:
    if exchange.refusal is not None:
        return exchange.refusal

    def prepare(call: RunningCall, sent_input: InputParams) -> Service:
        return PageService(
            exchange=exchange,
            request=request_of(principal.user, request),
            cancelled=call.cancelled,
            streams=False,
            principal=replace(principal, kept={}),
            queries=queries,
        )

    call = RunningCall(exchange, prepare=prepare)
    try:
        call.start()
        return await call.reply()
    except Busy:
        return busy(exchange)


@contextmanager
def recorded(queries: list[Query]) -> Iterator[None]:
    """Keep the statements of this thread."""

    def record(execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
        started = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            if len(queries) < MOST_QUERIES:
                took = (time.perf_counter() - started) * 1000
                queries.append(Query(sql=statement(sql, params), milliseconds=round(took, 1)))

    with ExitStack() as stack:
        for connection in connections.all():
            stack.enter_context(connection.execute_wrapper(record))
        yield


def statement(sql: Any, params: Any) -> str:
    text = f"{sql}" if not params else f"{sql}\n-- {params!r}"
    return text if len(text) <= LONGEST_QUERY else f"{text[:LONGEST_QUERY]}…"
