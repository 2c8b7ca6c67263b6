"""Whether this process can answer calls, for load balancers and monitors, where HEALTH opens it.

Anybody may ask, at the address of the endpoint followed by `/health`. The answer is one word.
"""

from __future__ import annotations

import asyncio
import logging
from threading import Event
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.db import connections
from django.http import HttpRequest, JsonResponse

from mcp_django.transports.exchanges import NO_STORE, Reply
from mcp_django.transports.responses import Receive, ResponseStream, Send
from mcp_django.transports.threads import Lane, lanes

logger = logging.getLogger("mcp_django")

#: Seconds that a thread of calls and the database may take.
PATIENCE = 2.0
#: Seconds for which an answer is good. Anybody may ask as often as they like.
GOOD_FOR = 1.0
OK = Reply(parts=(b'{"status":"ok"}',), headers=NO_STORE)
UNAVAILABLE = Reply(status=503, parts=(b'{"status":"unavailable"}',), headers=NO_STORE)
NOT_FOUND = Reply(status=404, parts=(b'{"status":"not found"}',), headers=NO_STORE)


def ask_database() -> None:
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT 1")


class HealthLog:
    """Logs what differs from the last answer of this process."""

    def __init__(self) -> None:
        self.was_well = True

    def record(self, error: Exception | None) -> bool:
        """Return whether the process is well."""
        was_well, self.was_well = self.was_well, error is None
        if was_well and error is not None:
            logger.warning("This process cannot answer calls: %r", error)
        elif error is None and not was_well:
            logger.info("This process can answer calls again.")
        return error is None


health_log = HealthLog()


class HealthApplication:
    """Answers 200 or 503 over ASGI: a thread that answers calls has asked the database.

    It is asked once for all who want to know at the same time, as one caller among others.
    """

    def __init__(self) -> None:
        self._question: asyncio.Task[bool] | None = None
        self._asked_at = 0.0

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        reply = NOT_FOUND
        if scope["method"] in ("GET", "HEAD"):
            reply = OK if await self._is_well() else UNAVAILABLE
        await ResponseStream(send).reply(reply)

    async def _is_well(self) -> bool:
        loop, question = asyncio.get_running_loop(), self._question
        if (
            question is None
            or question.get_loop() is not loop
            or (question.done() and loop.time() - self._asked_at >= GOOD_FOR)
        ):
            self._asked_at = loop.time()
            question = self._question = asyncio.create_task(self._ask())
        # Whoever leaves takes the answer from nobody else.
        return await asyncio.shield(question)

    async def _ask(self) -> bool:
        lane = lanes[Lane.QUERY]
        try:
            await lane.start(ask_database, seconds=PATIENCE, cancelled=Event(), caller="health")
        except Exception as error:
            return health_log.record(error)
        return health_log.record(None)


@login_not_required
def health_view(request: HttpRequest) -> JsonResponse:
    """Answer the same where the endpoint is a view."""
    try:
        ask_database()
        is_well = health_log.record(None)
    except Exception as error:
        is_well = health_log.record(error)
    return JsonResponse(
        {"status": "ok" if is_well else "unavailable"},
        status=200 if is_well else 503,
        headers={"Cache-Control": "no-store"},
    )
