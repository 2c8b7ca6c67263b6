"""Whether this process can answer calls, for load balancers and monitors, where HEALTH opens it.

Anybody may ask, at the address of the endpoint followed by `/health`. The answer is one word.
"""

from __future__ import annotations

import logging
from threading import Event
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.db import connections
from django.http import Http404, HttpRequest, JsonResponse

from mcp_django.conf import get_config
from mcp_django.exposure.primitives import Lane
from mcp_django.transports.exchanges import NO_STORE, Reply
from mcp_django.transports.responses import Receive, ResponseStream, Send
from mcp_django.transports.threads import lanes

logger = logging.getLogger("mcp_django")

#: Seconds that a thread of calls and the database may take.
PATIENCE = 2.0
OK = Reply(parts=(b'{"status":"ok"}',), headers=NO_STORE)
UNAVAILABLE = Reply(status=503, parts=(b'{"status":"unavailable"}',), headers=NO_STORE)
NOT_FOUND = Reply(status=404, parts=(b'{"status":"not found"}',), headers=NO_STORE)


def ask_database() -> None:
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT 1")


class HealthApplication:
    """Answers 200 or 503 over ASGI: a thread that answers calls has asked the database."""

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        reply = NOT_FOUND
        if get_config().health and scope["method"] in ("GET", "HEAD"):
            try:
                lane = lanes[Lane.QUERY]
                await lane.start(ask_database, seconds=PATIENCE, cancelled=Event())
                reply = OK
            except Exception as error:
                logger.warning("This process cannot answer calls: %r", error)
                reply = UNAVAILABLE
        await ResponseStream(send).reply(reply)


@login_not_required
def health_view(request: HttpRequest) -> JsonResponse:
    """Answer the same where the endpoint is a view."""
    if not get_config().health:
        raise Http404
    try:
        ask_database()
        status, word = 200, "ok"
    except Exception as error:
        logger.warning("This process cannot answer calls: %r", error)
        status, word = 503, "unavailable"
    return JsonResponse({"status": word}, status=status, headers={"Cache-Control": "no-store"})
