"""The site of a test in a process of its own, which is no test runner: it has its own threads and
connections, and keeps what a process keeps in production.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

from django.conf import settings
from django.db import connection

from mcp_django.testing import HTTPAnswer
from tests.clients import CheckedClient
from tests.transports.live_servers import live_server
from tests.waiting import PATIENCE


class SocketClient(CheckedClient):
    """The public test client, over a socket."""

    def __init__(self, port: int, *, host: str = "localhost", **options: Any) -> None:
        super().__init__(host=host, **options)
        self.port = port

    def http(self, verb: str, body: bytes = b"", *, headers: Any = None) -> HTTPAnswer:
        pairs = self.scope(verb, headers=headers)["headers"]
        sent = {name.decode(): value.decode("latin-1") for name, value in pairs}
        server = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            server.request(verb, self.path, body, sent)
            response = server.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return HTTPAnswer(status=response.status, headers=found, body=response.read())
        finally:
            server.close()


@contextmanager
def served(
    interface: str,
    *,
    audit: bool = True,
    session_cache: str = "default",
    settings_of_site: Mapping[str, Any] = {},
    **variables: str,
) -> Iterator[int]:
    """Its port. Over ASGI or WSGI, with the settings of the test and its database. `variables` are
    those that tests/serve.py reads.

    Records of calls are written later: perhaps when the database was emptied for another test.
    """
    environ = {
        "DJANGO_SETTINGS_MODULE": settings.SETTINGS_MODULE,
        "SERVED_DATABASE": str(connection.settings_dict["NAME"]),
        "SERVED_SETTINGS": json.dumps(
            {"AUDIT": audit, "SESSION_CACHE": session_cache, **settings_of_site}
        ),
        **variables,
    }
    with live_server(interface, module="tests.serve", **environ) as (_, port):
        yield port
