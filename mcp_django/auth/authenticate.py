"""From a request to the principal behind it, and from a refusal to its challenge."""

from __future__ import annotations

import logging
import re
from typing import Any

from django.core.signals import setting_changed
from django.dispatch import receiver
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables

from mcp_django.auth.authenticators import authenticators, is_guessable, is_header_only
from mcp_django.auth.cache import PrincipalCache, key_of
from mcp_django.auth.throttles import client_address, failures
from mcp_django.exceptions import AuthenticationFailed, NotAuthenticated, TooManyRequests
from mcp_django.exposure.generation import known_mark, mark, own_changes
from mcp_django.principal import Principal
from mcp_django.protocol.headers import Headers

logger = logging.getLogger("mcp_django.auth")

#: Bytes of an Authorization header. Real ones are far shorter; hashing and parsing cost time.
LONGEST_HEADER = 4096

cache = PrincipalCache()


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
        return recognise(request)[0]
    key = key_of(header.strip(" \t"))
    known = cache.get(key, mark=mark()) if key in cache else None
    if known is not None:
        return known
    before = own_changes()
    principal, by_header_only = recognise(request)
    # The mark comes last, so that nonsense costs no query. What another process changed in between
    # is then missed, for as long as the cache lives: a second. What this one changed is not.
    if by_header_only and (now := mark()).own == before:
        cache.keep(key, principal, mark=now)
    return principal


def cached_principal(headers: Headers) -> Principal | None:
    """Who calls, if that is known without asking anything. For event loops."""
    header, now = headers.get("authorization"), known_mark()
    if header is None or now is None or headers.count("authorization") != 1:
        return None
    return cache.get(key_of(header), mark=now)


def recognise(request: HttpRequest) -> tuple[Principal, bool]:
    """The principal, and whether nothing but the Authorization header can have decided that."""
    address = client_address(request)
    held_off = failures.wait(address)
    try:
        return ask_all(request, held_off=held_off)
    except NotAuthenticated:
        raise
    except AuthenticationFailed:
        failures.add(address)
        logger.info("A credential from %s was refused.", address)
        # People behind the same address as a guesser go on: only wrong credentials are held off.
        if held_off is not None:
            raise TooManyRequests(held_off) from None
        raise


@sensitive_variables("header")
def ask_all(request: HttpRequest, *, held_off: float | None) -> tuple[Principal, bool]:
    header = request.META.get("HTTP_AUTHORIZATION")
    configured = authenticators()
    if header is not None and len(header) > LONGEST_HEADER:
        raise AuthenticationFailed
    by_header_only = True
    for authenticator in configured:
        if held_off is not None and is_guessable(authenticator):
            raise TooManyRequests(held_off)
        by_header_only = by_header_only and is_header_only(authenticator)
        principal = authenticator.authenticate(request)
        if principal is not None:
            return principal, by_header_only
    raise NotAuthenticated if header is None else AuthenticationFailed


def challenge(error: AuthenticationFailed) -> list[str]:
    """Values for WWW-Authenticate, one per kind of credential that would do."""
    values = [one_line(value) for one in authenticators() if (value := one.challenge())]
    values = list(dict.fromkeys(values)) or ["Bearer"]
    if any(value.startswith("Bearer ") for value in values):
        # Clients read the first challenge of a scheme, so the one that says more stands alone.
        values = [value for value in values if value != "Bearer"]
    if isinstance(error, NotAuthenticated):
        # RFC 6750, 3.1: without authentication information, no error code.
        return values
    return [with_error(value, error) for value in values]


def with_error(value: str, error: AuthenticationFailed) -> str:
    scheme, _, parameters = value.partition(" ")
    if scheme != "Bearer":
        return value
    invalid = f'error="invalid_token", error_description="{quotable(error.description)}"'
    return f"Bearer {parameters}, {invalid}" if parameters else f"Bearer {invalid}"


def quotable(text: str) -> str:
    """RFC 6750, 3: error_description holds %x20-21 / %x23-5B / %x5D-7E, so no quote can end it."""
    return re.sub(r"[^\x20-\x21\x23-\x5b\x5d-\x7e]", "", text)


def one_line(text: str) -> str:
    return re.sub(r"[^\x20-\x7e]", "", text)


@receiver(setting_changed)
def forget_principals(*, setting: str, **kwargs: Any) -> None:
    if setting in {"MCP_DJANGO", "AUTHENTICATION_BACKENDS", "AUTH_USER_MODEL"}:
        cache.clear()
