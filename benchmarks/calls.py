"""The kinds of calls that are measured, and what is wanted of each."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ROWS = 20_000
REVISION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientCapabilities": {},
}
#: Once in each record, also where records are a table within a text.
RECORD = b" of many"
#: Once in each structured result: its text has the same, with escaped quotes.
TITLE = b'"title":"Book '
#: What the functions return that are called: see benchmarks/library/functions.py.
RESULTS = ("dict", "struct")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of call."""

    method: str
    params: Callable[[random.Random], dict[str, Any]]
    #: What stands in a right answer, and how often.
    proof: bytes
    times: int = 1
    #: One call for so many of the quick ones, or the slow ones would take all the time.
    per: int = 1
    #: Whether each call has a connection of its own.
    is_cold: bool = False
    #: The ratio to the floor that we want, and the one above which `make bench` fails.
    wanted: float | None = None
    allowed: float | None = None


#: Of a client that signs in. `benchmarks.prepare` prints the personal token.
ACCESS_TOKEN = "access-token-of-the-bench"


def nothing(chance: random.Random) -> dict[str, Any]:
    return {}


def get_one(chance: random.Random) -> dict[str, Any]:
    arguments = {"model": "library.book", "pk": chance.randint(1, ROWS)}
    return {"name": "get_record", "arguments": arguments}


def page_of(limit: int) -> Callable[[random.Random], dict[str, Any]]:
    def page(chance: random.Random) -> dict[str, Any]:
        arguments = {
            "model": "library.book",
            "filters": {"year__gte": chance.randint(1900, 2010)},
            "order_by": ["-year"],
            "limit": limit,
        }
        return {"name": "find_records", "arguments": arguments}

    return page


def call_for_one(name: str) -> Callable[[random.Random], dict[str, Any]]:
    def call(chance: random.Random) -> dict[str, Any]:
        return {"name": name, "arguments": {"pk": chance.randint(1, ROWS)}}

    return call


def call_for_many(name: str, limit: int) -> Callable[[random.Random], dict[str, Any]]:
    def call(chance: random.Random) -> dict[str, Any]:
        return {"name": name, "arguments": {"since": chance.randint(1900, 2010), "limit": limit}}

    return call


def read_one(chance: random.Random) -> dict[str, Any]:
    return {"uri": f"django://objects/library.book/{chance.randint(1, ROWS)}"}


KINDS = {
    "discover": Kind(
        method="server/discover", params=nothing, proof=b'"supportedVersions"', wanted=2.5
    ),
    "50 tools": Kind(method="tools/list", params=nothing, proof=b'"measured_0"', wanted=2.5),
    "get one": Kind(
        method="tools/call", params=get_one, proof=RECORD, wanted=1.15, allowed=1.3
    ),
    "page of 50": Kind(
        method="tools/call", params=page_of(50), proof=RECORD, times=50, per=2,
        wanted=1.15, allowed=1.3,
    ),
    "resource": Kind(
        method="resources/read", params=read_one, proof=RECORD
    ),
    "1,000 rows": Kind(
        method="tools/call", params=page_of(1000), proof=RECORD, times=1000, per=20, wanted=1.2
    ),
    **{
        f"function, {result}": Kind(
            method="tools/call", params=call_for_one(f"book_{result}"), proof=TITLE, wanted=1.3
        )
        for result in RESULTS
    },
    **{
        f"50, {result}": Kind(
            method="tools/call", params=call_for_many(f"books_{result}", 50), proof=TITLE,
            times=50, per=2, wanted=1.2,
        )
        for result in RESULTS
    },
    **{
        f"1,000, {result}": Kind(
            method="tools/call", params=call_for_many(f"books_{result}", 1000), proof=TITLE,
            times=1000, per=20, wanted=1.2,
        )
        for result in RESULTS
    },
    "cold connect": Kind(
        method="server/discover", params=nothing, proof=b'"supportedVersions"', per=2,
        is_cold=True,
    ),
}  # fmt: skip


def message(kind: Kind, chance: random.Random, token: str) -> tuple[dict[str, str], bytes]:
    """Headers and body of one call."""
    params = {**kind.params(chance), "_meta": META}
    call = {"jsonrpc": "2.0", "id": chance.randint(1, 10**6), "method": kind.method}
    body = json.dumps({**call, "params": params}).encode()
    headers = {
        "Host": "127.0.0.1",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {token}",
        "MCP-Protocol-Version": REVISION,
        "Mcp-Method": kind.method,
        "Content-Length": str(len(body)),
    }
    name = params.get("name") or params.get("uri")
    return (headers | {"Mcp-Name": name} if name else headers), body


def check(kind: Kind, body: bytes) -> None:
    """Raises SystemExit for an answer that is not right: it would be measured for nothing."""
    if body.count(kind.proof) != kind.times:
        raise SystemExit(body[:500].decode())
