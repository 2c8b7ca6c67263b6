"""Serve the database of a test at the address that PUBLIC_URL names. Says when it is ready."""

from __future__ import annotations

import os
import socket
from functools import partial

from daphne.server import Server

from tests import settings

listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
settings.DATABASES["default"]["NAME"] = os.environ["SERVED_DATABASE"]
settings.MCP_DJANGO = {
    **settings.MCP_DJANGO,
    "PUBLIC_URL": f"http://localhost:{port}",
    "ALLOWED_ORIGINS": ["https://chat.example"],
    "AUDIT": False,
}

from mcp_django.asgi import get_mcp_application  # noqa: E402  as in anybody's asgi.py

Server(
    get_mcp_application(),
    endpoints=[f"fd:fileno={listener.fileno()}"],
    ready_callable=partial(print, "ready", port, flush=True),
).run()
