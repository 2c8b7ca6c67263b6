"""What an authenticator is, and those that the site has configured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, cast

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.utils.module_loading import import_string

from mcp_django.conf import Config, get_config
from mcp_django.exceptions import ServiceUnavailable
from mcp_django.principal import SCOPES, Principal


class Authenticator(Protocol):
    """Recognises one kind of credential.

    Three attributes are optional, and absent means the careful answer:
    `header_only` (default False): nothing but the Authorization header decides, so an answer may
    be kept for a second; `guessable` (default True): not asked while the client's address is held
    off for too many failures; `prepare()`: called once before first use, may raise
    ImproperlyConfigured.
    """

    def authenticate(self, request: HttpRequest) -> Principal | None:
        """Who presented this. None: not my kind of credential, ask the next.

        Raises AuthenticationFailed for a bad credential; then nobody else is asked.
        """

    def challenge(self) -> str | None:
        """A value for WWW-Authenticate, such as "Bearer", that tells clients what to present."""


def authenticators() -> tuple[Authenticator, ...]:
    """Those of the setting, in its order.

    Raises ServiceUnavailable when there are none, ImproperlyConfigured when one cannot be used.
    """
    config = get_config()
    if not config.authenticators:
        raise ServiceUnavailable("MCP_DJANGO['AUTHENTICATORS'] is empty.")
    global _known
    known = _known
    if known is None or known[0] is not config:
        known = _known = (config, tuple(prepared(one) for one in config.authenticators))
    return known[1]


#: The configuration that was in force at the last call, and its authenticators.
_known: tuple[Config, tuple[Authenticator, ...]] | None = None


def prepared(configured: object) -> Authenticator:
    """One entry of the setting, ready for use. Raises ImproperlyConfigured."""
    found: Any = configured
    if isinstance(found, str):
        try:
            found = import_string(found)
        except (ImportError, ValueError) as error:
            raise ImproperlyConfigured(f"{configured!r} cannot be imported: {error}.") from error
    if isinstance(found, type):
        try:
            found = found()
        except TypeError as error:
            raise ImproperlyConfigured(
                f"{found.__name__} needs arguments: put an instance into the setting."
            ) from error
    if not callable(getattr(found, "authenticate", None)) or not callable(
        getattr(found, "challenge", None)
    ):
        raise ImproperlyConfigured(
            f"{configured!r} is no authenticator: it needs authenticate() and challenge()."
        )
    prepare = getattr(found, "prepare", None)
    if callable(prepare):
        prepare()
    return cast("Authenticator", found)


def is_header_only(authenticator: Authenticator) -> bool:
    return bool(getattr(authenticator, "header_only", False))


def is_guessable(authenticator: Authenticator) -> bool:
    return bool(getattr(authenticator, "guessable", True))


def known_scopes(scopes: Iterable[str], *, of: str) -> frozenset[str]:
    """Scopes that a site wrote into its settings. Raises ImproperlyConfigured for others."""
    found = frozenset([scopes] if isinstance(scopes, str) else scopes)
    strange = sorted(found - set(SCOPES))
    if strange:
        raise ImproperlyConfigured(
            f"{of} has the unknown scope {strange[0]!r}. Use some of: {', '.join(SCOPES)}."
        )
    return found
