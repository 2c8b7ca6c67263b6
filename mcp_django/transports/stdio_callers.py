"""Who is at the other end of the pipe, and the request of Django's that each call is given."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest

from mcp_django.auth.authenticate import authenticate
from mcp_django.conf import get_config
from mcp_django.principal import Principal
from mcp_django.transports.addresses import endpoint_path
from mcp_django.transports.exchanges import JSON
from mcp_django.transports.requests import build_request

Recognise = Callable[[HttpRequest], Principal]


class Caller:
    """One for each process. Who that is, and may do, is asked anew for each call."""

    def __init__(self, *, recognise: Recognise = authenticate, token: str = "") -> None:
        """With a `token`, requests carry it as clients send it by HTTP."""
        self.recognise = recognise
        origin = urlsplit(get_config().public_url or f"http://{own_host()}")
        path = endpoint_path()
        headers = [(b"host", origin.netloc.encode()), (b"content-type", JSON.encode())]
        if token:
            headers.append((b"authorization", f"Bearer {token}".encode()))
        self._scope = {
            "type": "http",
            "method": "POST",
            "scheme": origin.scheme,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": headers,
            "client": ("127.0.0.1", 0),
            "server": (origin.hostname, origin.port),
        }

    def request(self, body: bytes = b"") -> HttpRequest:
        return build_request(self._scope, body)

    def identify(self) -> Principal:
        """Who that is. Raises as `authenticate`."""
        return self.recognise(self.request())


def own_host() -> str:
    """A host that the site answers to: middleware and tools may ask the request for it."""
    hosts = [host.lstrip(".") for host in settings.ALLOWED_HOSTS if host != "*"]
    return hosts[0] if hosts else "localhost"
