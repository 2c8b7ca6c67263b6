"""Serve a site and the database of a test: see tests/served.py. Says when it is ready."""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import sys
from functools import partial
from wsgiref.simple_server import WSGIRequestHandler

[interface] = sys.argv[1:]
# Before Django reads them.
site = importlib.import_module(os.environ["DJANGO_SETTINGS_MODULE"])
site.DATABASES["default"]["NAME"] = os.environ["SERVED_DATABASE"]
changes = json.loads(os.environ["SERVED_SETTINGS"])
site.MCP_DJANGO = {**getattr(site, "MCP_DJANGO", {}), **changes}
if "SERVED_PREFIX" in os.environ:
    site.CACHES["redis"]["KEY_PREFIX"] = os.environ["SERVED_PREFIX"]

from mcp_django.asgi import get_mcp_application  # noqa: E402  as in anybody's asgi.py

application = get_mcp_application()

if "SERVED_MINUTE" in os.environ:
    # Processes that count the calls of a minute are in the same one until they end.
    from mcp_django.auth.windows import shared_counts

    for windows in shared_counts.limits:
        windows.clock = float
if "SERVED_SESSIONS" in os.environ:
    from mcp_django.stores import sessions

    sessions.MOST_SESSIONS = int(os.environ["SERVED_SESSIONS"])


def ready(port: int) -> None:
    print("ready", port, flush=True)


def serve_asgi() -> None:
    from daphne.server import Server

    listener = socket.create_server(("127.0.0.1", 0))
    # Daphne closes the socket once it has its own copy of it.
    on_ready = partial(ready, listener.getsockname()[1])
    endpoint = f"fd:fileno={listener.fileno()}"
    Server(application, endpoints=[endpoint], ready_callable=on_ready).run()


def serve_wsgi() -> None:
    from django.core.servers.basehttp import ThreadedWSGIServer
    from django.core.wsgi import get_wsgi_application

    class Quiet(WSGIRequestHandler):
        def log_message(self, *args):
            pass

    server = ThreadedWSGIServer(("127.0.0.1", 0), Quiet)
    server.set_app(get_wsgi_application())
    # The end of a process in good order writes what waits.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    ready(server.server_port)
    server.serve_forever()


{"asgi": serve_asgi, "wsgi": serve_wsgi}[interface]()
