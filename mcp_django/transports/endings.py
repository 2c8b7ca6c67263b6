"""The end of a process that serves, in good order and soon."""

from __future__ import annotations

import logging
import os
import threading

from mcp_django.audit.records import records
from mcp_django.subscriptions.outbox import flush
from mcp_django.transports.executor import lanes

#: Seconds for a thread that still runs a tool. It cannot be stopped, and Python waits for it.
PATIENCE = 0.5

logger = logging.getLogger("mcp_django")


def end_process() -> None:
    """Hand over what waits and end the threads. Where a tool runs on, the process ends at once."""
    closing = threading.Thread(target=lanes.close, name="mcp-end", daemon=True)
    closing.start()
    closing.join(PATIENCE)
    flush()
    records.close()
    if closing.is_alive():
        logger.warning("A tool still ran when the process ended.")
        logging.shutdown()
        os._exit(0)
