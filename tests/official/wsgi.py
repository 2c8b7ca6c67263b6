"""Django's own development server without ASGI, on a socket that is open already."""

from __future__ import annotations

import socket
import sys

from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.core.wsgi import get_wsgi_application


def serve(descriptor: int) -> None:
    application = get_wsgi_application()
    listener = socket.socket(fileno=descriptor)
    address = listener.getsockname()
    server = ThreadedWSGIServer(address, WSGIRequestHandler, bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    server.server_name, server.server_port = address
    server.setup_environ()
    server.set_app(application)
    server.serve_forever()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
