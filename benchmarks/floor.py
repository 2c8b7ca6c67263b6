"""The floor: the same query and the same JSON in bare ASGI. No rights, no checks, no protocol.

Frozen: what is measured against it would mean nothing if it moved.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import django
import msgspec

django.setup()

from benchmarks.library.models import Book  # noqa: E402

COLUMNS = ("id", "title", "author_id", "author__name", "year", "pages", "price", "added")
pool = ThreadPoolExecutor(max_workers=1)


def default(value: Any) -> str:
    return str(value)


encoder = msgspec.json.Encoder(enc_hook=default, decimal_format="string")
HEADERS = [(b"content-type", b"application/json")]


def get_record(arguments: dict[str, Any]) -> dict[str, Any]:
    return Book.objects.values(*COLUMNS).get(pk=arguments["pk"])


def find_records(arguments: dict[str, Any]) -> dict[str, Any]:
    rows = Book.objects.filter(year__gte=arguments["filters"]["year__gte"])
    rows = rows.order_by("-year", "pk").values(*COLUMNS)
    return {"records": list(rows[: arguments["limit"]])}


TOOLS = {"get_record": get_record, "find_records": find_records}


def answer(body: bytes) -> bytes:
    call = msgspec.json.decode(body)
    result = TOOLS[call["params"]["name"]](call["params"]["arguments"])
    return encoder.encode({"jsonrpc": "2.0", "id": call["id"], "result": result})


async def application(scope: Any, receive: Any, send: Any) -> None:
    body = b""
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    content = await asyncio.get_running_loop().run_in_executor(pool, answer, body)
    headers = [*HEADERS, (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": content})
