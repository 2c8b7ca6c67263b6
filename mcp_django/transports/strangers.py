"""A Host or an Origin that is not ours: DNS rebinding ends here."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from mcp_django.conf import get_config
from mcp_django.protocol.errors import INVALID_REQUEST, ProtocolError
from mcp_django.protocol.headers import Headers
from mcp_django.transports.exchanges import Reply, refuse

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
LOOPBACK_ORIGIN = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?")


def stranger(headers: Headers) -> Reply | None:
    """The refusal, or None for who may ask on."""
    host = headers.get("host") or ""
    if settings.USE_X_FORWARDED_HOST and headers.get("x-forwarded-host"):
        host = headers.get("x-forwarded-host") or ""
    is_own = is_own_host(host, tuple(settings.ALLOWED_HOSTS), settings.DEBUG)
    if not is_own or headers.count("host") > 1:
        error = ProtocolError(INVALID_REQUEST, "This host is not served here.", status=400)
        return refuse(error, id_optional=True)
    origin = headers.get("origin")
    # No browser sends two, and two readers need not look at the same one.
    is_one = headers.count("origin") == 1
    if origin is not None and not (is_one and is_own_origin(origin, host)):
        error = ProtocolError(INVALID_REQUEST, "This origin is not allowed.", status=403)
        return refuse(error, id_optional=True)
    return None


@lru_cache(maxsize=256)
def is_own_host(host: str, allowed: tuple[str, ...], debug: bool) -> bool:  # noqa: FBT001
    if debug and not allowed:
        allowed = (".localhost", *LOOPBACK)
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, allowed)


def is_own_origin(origin: str, host: str) -> bool:
    """One of ours, or any port of this machine where the site itself is asked there."""
    config = get_config()
    if origin in {origin_of(url) for url in (config.public_url, *config.allowed_origins) if url}:
        return True
    is_local = split_domain_port(host)[0] in LOOPBACK
    return is_local and LOOPBACK_ORIGIN.fullmatch(origin) is not None


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.lower()}"
