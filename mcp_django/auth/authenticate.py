"""From a request to the principal behind it, and from a refusal to its challenge."""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Callable, Iterable
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from mcp_django.auth.authenticators import active_user, authenticators, known_scopes
from mcp_django.auth.throttles import client_address, failures, network_of
from mcp_django.cached import Recent
from mcp_django.connections import current_tenant
from mcp_django.exceptions import (
    AuthenticationFailed,
    Closed,
    NotAuthenticated,
    ServiceUnavailable,
    TooManyRequests,
)
from mcp_django.exposure.decisions import Decisions, decisions
from mcp_django.principal import SCOPES, Principal
from mcp_django.protocol.headers import Headers
from mcp_django.stores.cache_version import (
    CacheVersion,
    cache_version,
    generations,
    known_cache_version,
)

logger = logging.getLogger("mcp_django.auth")

#: Bytes of an Authorization header. Real ones are far shorter; hashing and parsing cost time.
LONGEST_HEADER = 4096

# Principals of the last second, so that most calls ask the database nothing about the caller.

#: Seconds. Longer, and a right that was taken away in another process would live on for longer.
LIFETIME = 1.0
SIZE = 1024


def key_of(header: str) -> bytes:
    """What stands for an Authorization header in memory: a memory dump holds no credential."""
    return hashlib.sha256(header.encode("utf-8", "surrogatepass")).digest()


class PrincipalCache(Recent[bytes, tuple[Principal, CacheVersion, float]]):
    """By header. The user object inside keeps the permissions that Django reads onto it."""

    def __init__(self, *, size: int = SIZE, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(size=size)
        self.clock = clock

    def known(self, key: bytes, *, cache_version: CacheVersion) -> Principal | None:
        """The principal of this header, if nothing that matters happened since it was kept."""
        if (entry := self.get(key)) is None:
            return None
        principal, version, until = entry
        if version != cache_version or self.clock() >= until or is_over(principal):
            self.drop(key)
            return None
        return principal

    def keep(self, key: bytes, principal: Principal, *, cache_version: CacheVersion) -> None:
        self.put(key, (principal, cache_version, self.clock() + LIFETIME))


#: In front of the address in the share of whoever comes with a credential that is new.
ADDRESS = "address "


def share_name(principal: Principal) -> str:
    """What threads are shared by: the user, with however many credentials and clients."""
    return f"user {principal.server} {current_tenant()} {principal.user.pk}"


def is_over(principal: Principal) -> bool:
    return principal.expires_at is not None and principal.expires_at <= timezone.now()


cache = PrincipalCache()
#: Whose each Authorization header was when it was last accepted. It grants nothing, and may be out
#: of date: lanes use it to share threads between users before a caller is identified.
last_users: Recent[bytes, str] = Recent(size=10 * SIZE)


# Error reports show the variables of each frame.
@sensitive_variables("header")
def authenticate(request: HttpRequest) -> Principal:
    """Who calls. The first authenticator that knows the credential decides.

    Raises AuthenticationFailed for a credential that is not valid or that nobody knows, its
    subclass NotAuthenticated where none was presented, TooManyRequests after too many failures
    from this address, ServiceUnavailable where the site has no authenticators or no tables.
    """
    header: str | None = request.META.get("HTTP_AUTHORIZATION")
    if header is None or len(header) > LONGEST_HEADER:
        return recognize(request)[0]
    key = key_of(header.strip(" \t"))
    known = cache.known(key, cache_version=cache_version()) if key in cache else None
    if known is not None:
        return known
    before = generations.own
    try:
        principal, by_header_only = recognize(request)
    except (AuthenticationFailed, TooManyRequests):
        # What was good once and is not any more is no credential of that user.
        last_users.drop(key)
        raise
    last_users.put(key, share_name(principal))
    # The version is read last, so that a wrong credential costs no query. A change by another
    # process in between is missed for as long as the cache lives: a second.
    if by_header_only and (now := cache_version()).own == before:
        cache.keep(key, principal, cache_version=now)
    return principal


def cached_principal(headers: Headers) -> Principal | None:
    """Who calls, if that is known without asking anything. For event loops."""
    header, now = headers.get("authorization"), known_cache_version()
    if header is None or now is None or headers.count("authorization") != 1:
        return None
    return cache.known(key_of(header), cache_version=now)


def caller_of(headers: Headers, address: str) -> str:
    """Whose share of the threads a request takes, before anybody is identified.

    The user who came with this credential last, or the address of whoever comes with a new one.
    """
    header = headers.get("authorization")
    if header is not None and len(header) <= LONGEST_HEADER:
        user = last_users.get(key_of(header))
        if user is not None:
            return user
    return f"{ADDRESS}{network_of(address)}"


def lacks_credential(headers: Headers) -> bool:
    """Whether nobody can be recognized, which is known without asking anybody. For event loops."""
    if headers.count("authorization"):
        return False
    try:
        return all(getattr(each, "header_only", False) for each in authenticators())
    except (ImproperlyConfigured, ServiceUnavailable):
        return False


#: What somebody reads who sends a token alone, or as REST APIs take it.
NO_BEARER = "The credential is not valid. Send a token as Authorization: Bearer <token>."


@sensitive_variables("header")
def recognize(request: HttpRequest) -> tuple[Principal, bool]:
    """The principal, and whether nothing but the Authorization header can have decided that."""
    header, address = request.META.get("HTTP_AUTHORIZATION"), client_address(request)
    configured, wait = authenticators(), failures.wait(address)
    is_by_header_only = True
    try:
        if header is not None and len(header) > LONGEST_HEADER:
            raise AuthenticationFailed
        for authenticator in configured:
            if wait is not None and getattr(authenticator, "guessable", True):
                raise TooManyRequests(wait)
            is_by_header_only &= bool(getattr(authenticator, "header_only", False))
            principal = authenticator.authenticate(request)
            if principal is not None:
                return principal, is_by_header_only
        if header is None:
            raise NotAuthenticated
        is_bearer = header.partition(" ")[0].lower() == "bearer"
        raise AuthenticationFailed if is_bearer else AuthenticationFailed(NO_BEARER)
    except NotAuthenticated:
        raise
    except AuthenticationFailed:
        failures.add(address)
        logger.info("A credential from %s was refused.", address)
        # People behind the same address as a guesser go on: only wrong credentials are held off.
        if wait is not None:
            raise TooManyRequests(wait) from None
        raise


def challenge(error: AuthenticationFailed) -> list[str]:
    """Values for WWW-Authenticate, one per kind of credential that would do."""
    challenges = (authenticator.challenge() for authenticator in authenticators())
    # In one line.
    values = [re.sub(r"[^\x20-\x7e]", "", value) for value in challenges if value]
    values = list(dict.fromkeys(values)) or ["Bearer"]
    if any(value.startswith("Bearer ") for value in values):
        # Clients read the first challenge of a scheme, so the one that says more stands alone.
        values = [value for value in values if value != "Bearer"]
    if isinstance(error, NotAuthenticated):
        # RFC 6750, 3.1: without authentication information, no error code.
        return values
    # RFC 6750, 3: it holds %x20-21 / %x23-5B / %x5D-7E, so no quotation mark can end it.
    description = re.sub(r"[^\x20-\x21\x23-\x5b\x5d-\x7e]", "", error.description)
    invalid = f'error="invalid_token", error_description="{description}"'
    said = {"Bearer": f" {invalid}"}
    return [
        value + said.get(value, f", {invalid}" if value.startswith("Bearer ") else "")
        for value in values
    ]


@receiver(setting_changed)
def forget_principals(*, setting: str, **kwargs: Any) -> None:
    if setting in {"MCP_DJANGO", "AUTHENTICATION_BACKENDS", "AUTH_USER_MODEL"}:
        cache.clear()


# What staff switched off: the whole server, or all assistants of a user.


def check_switches(principal: Principal) -> None:
    """Return if the principal may be answered. No query while what staff decided is known.

    Raises AuthenticationFailed for a user who is blocked, as for any credential that is not good,
    and Closed where nobody is answered.
    """
    decided = decisions(principal.server)
    if not lets_in(decided, principal):
        is_blocked = principal.user.pk in decided.blocked_users
        raise AuthenticationFailed if is_blocked else Closed


def lets_in(decided: Decisions, principal: Principal) -> bool:
    """The same as a question, for event loops."""
    return not decided.closed and principal.user.pk not in decided.blocked_users


# The caller of a process that a person started.

#: How the caller was recognized, and the name of the client at the other end of the pipe.
STDIO = "stdio"


class NamedUser:
    """Whoever has started the process is this user, for as long as the user is active."""

    def __init__(self, username: str, *, scopes: Iterable[str] = SCOPES) -> None:
        """Raises ImproperlyConfigured for an unknown scope."""
        self.username = username
        self.scopes = known_scopes(scopes, of="--scope")
        self._cache = PrincipalCache(size=1)

    def authenticate(self, request: HttpRequest) -> Principal:
        """The user, as read within the last second. Raises AuthenticationFailed."""
        now = cache_version()
        known = self._cache.known(b"", cache_version=now)
        if known is None:
            user = active_user(self.username)
            known = Principal(user=user, scopes=self.scopes, method=STDIO, client=STDIO)
            self._cache.keep(b"", known, cache_version=now)
        return known
