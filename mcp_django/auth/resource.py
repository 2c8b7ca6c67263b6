"""The protected resource that credentials are for: where the endpoint is, and its metadata."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.urls import NoReverseMatch, get_script_prefix, reverse

from mcp_django.auth.authenticators import authenticators
from mcp_django.conf import get_config
from mcp_django.principal import READ

# Where clients find the endpoint. Never the Host of a request, which anybody may send.

#: Where `get_mcp_application` routed the endpoint to, in this process.
_routed: list[str] = []


def routed_to(path: str) -> None:
    _routed[:] = [path]


def endpoint_path() -> str:
    """The path that clients ask for: of the ASGI application, else of the view, else `/mcp`."""
    prefix = get_script_prefix().rstrip("/")
    if _routed:
        return f"{prefix}{_routed[0]}" or "/"
    try:
        return reverse("mcp_django:endpoint")
    except NoReverseMatch:
        return f"{prefix}/mcp"


def endpoint_route() -> str:
    """The same as a URLconf writes it, with neither prefix nor slash in front."""
    return _routed[0].removeprefix("/") if _routed else "mcp"


def endpoint_url() -> str:
    """The address for clients, or "" where PUBLIC_URL does not say what comes first."""
    origin = get_config().public_url.rstrip("/")
    return f"{origin}{endpoint_path()}" if origin else ""


# Protected resource metadata (RFC 9728), which clients look for to learn where people sign in.


def issuers() -> list[str]:
    """The authorization servers whose tokens are taken, in the order of the setting."""
    found = (getattr(one, "issuer", "") for one in authenticators())
    return list(dict.fromkeys(filter(None, found)))


def metadata_url() -> str:
    """Where the metadata of the endpoint are, or "" where no URLconf of the site serves them."""
    origin, path = get_config().public_url.rstrip("/"), endpoint_path().removeprefix("/")
    name = "mcp_django_well_known:protected_resource"
    try:
        return f"{origin}{reverse(name, kwargs={'path': path})}" if origin else ""
    except NoReverseMatch:
        return ""


def metadata() -> dict[str, Any]:
    """What RFC 9728, 2, defines and clients of MCP read."""
    return {
        "resource": endpoint_url(),
        "resource_name": get_config().name,
        "authorization_servers": issuers(),
        "scopes_supported": [READ],
        "bearer_methods_supported": ["header"],
    }


def bearer_challenge(scopes: Iterable[str] = (READ,), *, error: str = "") -> str:
    """Return a value for WWW-Authenticate: where the metadata are, and the scopes to ask for.

    MCP 2026-07-28, authorization: clients take the scope of the challenge before that of the
    metadata. `error` is a code of RFC 6750, 3.1.
    """
    named = {"error": error, "resource_metadata": metadata_url(), "scope": " ".join(scopes)}
    return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in named.items() if value)
