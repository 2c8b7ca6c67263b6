"""The endpoint of `tests.transports.live`, and pages that a server has trouble with."""

from __future__ import annotations

import os

from mcp_django import daphne_server
from tests.transports.live import application as site

# A test does not wait for a minute.
daphne_server.LONGEST_REQUEST = float(os.environ.get("LIVE_READING", "60"))
CHUNK = b"x" * 65_536
#: More than a connection holds that nobody reads.
CHUNKS = 1600
sent = 0


async def long_page(receive, send):
    global sent
    for sent in range(1, CHUNKS + 1):  # noqa: B007
        await send({"type": "http.response.body", "body": CHUNK, "more_body": True})


async def sent_so_far(receive, send):
    await send({"type": "http.response.body", "body": b"%d" % sent, "more_body": True})


async def broken_page(receive, send):
    await send({"type": "http.response.body", "body": b"begun", "more_body": True})
    raise ValueError("The middle of a response.")


async def process(receive, send):
    await send({"type": "http.response.body", "body": b"%d" % os.getpid(), "more_body": True})


async def length_of_body(receive, send):
    length, more = 0, True
    while more:
        event = await receive()
        length, more = length + len(event["body"]), event["more_body"]
    await send({"type": "http.response.body", "body": b"%d" % length, "more_body": True})


PAGES = {
    "/long": long_page,
    "/sent": sent_so_far,
    "/broken": broken_page,
    "/process": process,
    "/length": length_of_body,
}


async def application(scope, receive, send):
    page = PAGES.get(scope.get("path", ""))
    if page is None:
        await site(scope, receive, send)
        return
    headers = [(b"root-path", scope["root_path"].encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await page(receive, send)
    await send({"type": "http.response.body"})
