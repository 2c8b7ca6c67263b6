"""The floor: the same query and the same JSON in bare ASGI. No rights, no checks, no protocol.

Frozen: what is measured against it would mean nothing if it moved. Lists are constants, of the
bytes that the endpoint answers with. A function is called as it is, and its value encoded once.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import django
import msgspec

django.setup()

from benchmarks.library.functions import COLUMNS, FUNCTIONS  # noqa: E402
from benchmarks.library.models import Book  # noqa: E402
from benchmarks.settings import STATE  # noqa: E402

encode = msgspec.json.Encoder(enc_hook=str, decimal_format="string").encode
lists = msgspec.json.decode((STATE / "lists.json").read_bytes(), type=dict[str, msgspec.Raw])
pool = ThreadPoolExecutor(max_workers=1)


def answer(call: dict[str, Any]) -> bytes:
    params, result = call["params"], lists.get(call["method"])
    if call["method"] == "resources/read":
        text = encode(get_record(params["uri"].rpartition("/")[2])).decode()
        contents = {"uri": params["uri"], "mimeType": "application/json", "text": text}
        result = {"contents": [contents]}
    elif call["method"] == "tools/call" and params["name"] in FUNCTIONS:
        result = FUNCTIONS[params["name"]](**params["arguments"])
    elif call["method"] == "tools/call" and params["name"] == "get_record":
        result = get_record(params["arguments"]["pk"])
    elif call["method"] == "tools/call":
        result = {"records": find_records(params["arguments"])}
    return encode({"jsonrpc": "2.0", "id": call["id"], "result": result})


def get_record(pk: Any) -> dict[str, Any]:
    return Book.objects.values(*COLUMNS).get(pk=pk)


def find_records(arguments: dict[str, Any]) -> list[dict[str, Any]]:
    rows = Book.objects.filter(year__gte=arguments["filters"]["year__gte"])
    return list(rows.order_by("-year", "pk").values(*COLUMNS)[: arguments["limit"]])


async def application(scope: Any, receive: Any, send: Any) -> None:
    message = await receive()
    body = message.get("body", b"")
    while message.get("more_body", False):
        message = await receive()
        body += message.get("body", b"")
    call = msgspec.json.decode(body)
    hop = asyncio.get_running_loop().run_in_executor
    content = answer(call) if call["method"] in lists else await hop(pool, answer, call)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": content})
