"""Authenticators that ask for no credential: for public servers, and for one's own machine."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address

from django.conf import settings
from django.contrib.auth import get_user_model
from django.http import HttpRequest
from django.http.request import split_domain_port

from mcp_django.auth.authenticators import known_scopes
from mcp_django.auth.users import is_active
from mcp_django.exceptions import AuthenticationFailed
from mcp_django.principal import READ, SCOPES, Principal

#: A proxy stands between, so the address of the connection says nothing about the caller.
PROXY_HEADERS = ("HTTP_FORWARDED", "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_HOST", "HTTP_VIA")


class Anonymous:
    """Everybody may read what AnonymousUser may see. Never in place of a wrong credential."""

    guessable = False

    def authenticate(self, request: HttpRequest) -> Principal | None:
        if "HTTP_AUTHORIZATION" in request.META:
            return None
        # Settings import this file, and models cannot be imported by then.
        from django.contrib.auth.models import AnonymousUser

        return Principal(user=AnonymousUser(), scopes=frozenset({READ}), method="anonymous")

    def challenge(self) -> None:
        return None


class DevUser:
    """Whoever sits at this machine is this user: only under DEBUG, from loopback, to loopback.

    The Host counts, too: a page on the web may resolve its own name to 127.0.0.1.
    """

    guessable = False

    def __init__(self, username: str, *, scopes: Iterable[str] = SCOPES) -> None:
        self.username = username
        self.scopes = scopes

    def prepare(self) -> None:
        self.scopes = known_scopes(self.scopes, of="DevUser")

    def authenticate(self, request: HttpRequest) -> Principal | None:
        if "HTTP_AUTHORIZATION" in request.META or not is_local(request):
            return None
        users = get_user_model()
        try:
            user = users._default_manager.get_by_natural_key(self.username)
        except users.DoesNotExist:
            user = None
        if user is None or not is_active(user):
            raise AuthenticationFailed(f"DevUser: there is no active user {self.username!r}.")
        return Principal(
            user=user, scopes=frozenset(self.scopes), method="dev_user", client="dev_user"
        )

    def challenge(self) -> None:
        return None


def is_local(request: HttpRequest) -> bool:
    """Whether this is a developer's own request. Reads the bare facts, not what proxies claim."""
    if not settings.DEBUG or any(name in request.META for name in PROXY_HEADERS):
        return False
    host, _ = split_domain_port(request.META.get("HTTP_HOST", ""))
    return is_loopback(request.META.get("REMOTE_ADDR", "")) and (
        host == "localhost" or is_loopback(host.strip("[]"))
    )


def is_loopback(text: str) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback
