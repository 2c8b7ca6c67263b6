"""Where clients find the endpoint. Never the Host of a request, which anybody may send."""

from __future__ import annotations

from django.urls import NoReverseMatch, get_script_prefix, reverse

from mcp_django.conf import get_config

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


def endpoint_url() -> str:
    """The address for clients, or "" where PUBLIC_URL does not say what comes first."""
    origin = get_config().public_url.rstrip("/")
    return f"{origin}{endpoint_path()}" if origin else ""
