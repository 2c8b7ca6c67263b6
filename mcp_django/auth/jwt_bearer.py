"""Access tokens of an authorization server elsewhere: Keycloak, Auth0, Entra, Okta.

Settings import this file: nothing here may import models, or PyJWT, before first use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables

from mcp_django.auth.authenticators import (
    bearer_token,
    imported,
    is_active,
    is_loopback,
    known_scopes,
)
from mcp_django.auth.resource import bearer_challenge, endpoint_url
from mcp_django.exceptions import AuthenticationFailed, IssuerUnavailable
from mcp_django.principal import SCOPES, Principal

if TYPE_CHECKING:
    from jwt import PyJWK, PyJWKClient

#: Verified with a key that everybody may have. A shared secret would let this site issue tokens.
ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
#: Of access tokens (RFC 9068, 2.1), and of those that say nothing more than that they are JWTs.
TYPES = frozenset({"at+jwt", "application/at+jwt", "jwt"})
#: Claims that every token must have.
REQUIRED = ("exp", "iss", "aud")
#: Seconds by which the clocks of two machines may differ.
LEEWAY = 10
#: Seconds for one answer of the authorization server, and how long its keys are good.
FETCH_TIMEOUT, KEYS_LIFETIME = 5, 3600
#: Seconds in which a server that did not answer is not asked again: each try holds a thread.
PAUSE = 10


class JWTBearer:
    """Access tokens that an authorization server elsewhere signs, as JWTs (RFC 9068).

    `user` is called with the claims of a token whose signature, issuer, audience and dates are
    good, and returns the user whom they stand for, or None. Nobody is created here.

    `audience`: what `aud` must name. Without it, the address of the endpoint, which the
    authorization server learns from clients as the `resource` (RFC 8707).

    `scopes`: what every token is good for. Without it, a token is good for those of `mcp:read`,
    `mcp:write`, `mcp:delete` and `mcp:action` that its claim `scope` or `scp` names.
    """

    header_only = True
    guessable = False

    def __init__(
        self,
        issuer: str,
        *,
        jwks_url: str,
        user: str | Callable[[dict[str, Any]], Any],
        audience: str | Iterable[str] = (),
        scopes: Iterable[str] | None = None,
        algorithms: Iterable[str] = ("RS256", "ES256", "EdDSA"),
    ) -> None:
        self.issuer = issuer
        self.jwks_url = jwks_url
        self.user = user
        self.audience = [audience] if isinstance(audience, str) else [*audience]
        self.scopes = scopes
        self.algorithms = list(algorithms)
        self._keys: PyJWKClient | None = None
        self._lock = Lock()
        self._failed_at: float | None = None

    def prepare(self) -> None:
        """Import what this needs, and refuse what would let strangers in. Asks no server."""
        of = f"JWTBearer({self.issuer!r})"
        try:
            from jwt import PyJWKClient
        except ImportError as error:
            raise ImproperlyConfigured(
                f'{of} needs PyJWT: pip install "django-mcp-orm[jwt]"'
            ) from error
        unfit = sorted(set(self.algorithms) - ALGORITHMS)
        if unfit or not self.algorithms:
            raise ImproperlyConfigured(
                f"{of} cannot use {unfit or 'no algorithm'}. Use some of: "
                f"{', '.join(sorted(ALGORITHMS))}."
            )
        if not is_safe(self.jwks_url):
            raise ImproperlyConfigured(
                f"{of} would read its keys from {self.jwks_url!r}. Use an https address: whoever "
                "can change them on their way is everybody."
            )
        if self.scopes is not None:
            self.scopes = known_scopes(self.scopes, of=of)
        if isinstance(self.user, str):
            self.user = imported(self.user, name=f"{of}: user {self.user!r}")
        if not callable(self.user):
            raise ImproperlyConfigured(f"{of}: user is called with claims, so it is a function.")
        if not self.audience and not endpoint_url():
            raise ImproperlyConfigured(
                f"{of} takes tokens for the address of this server. Set PUBLIC_URL, or say "
                "audience=..."
            )
        self._keys = PyJWKClient(self.jwks_url, timeout=FETCH_TIMEOUT, lifespan=KEYS_LIFETIME)

    @sensitive_variables("token")
    def authenticate(self, request: HttpRequest) -> Principal | None:
        token = bearer_token(request)
        if token is None or issuer_of(token) != self.issuer:
            return None
        claims = self.checked(token)
        # type ignored: after prepare() it is no text.
        user = self.user(claims)  # type: ignore[operator]
        if user is None or not is_active(user):
            raise AuthenticationFailed
        client = claims.get("azp") or claims.get("client_id") or ""
        return Principal(
            user=user,
            scopes=self.scopes_of(claims),
            method="jwt",
            client=f"jwt:{client}",
            expires_at=end_of(claims),
        )

    def challenge(self) -> str:
        return bearer_challenge()

    @sensitive_variables("token")
    def checked(self, token: str) -> dict[str, Any]:
        """The claims of a token that is good here and now. Raises AuthenticationFailed."""
        import jwt

        key = self.key_of(token)
        try:
            found = jwt.decode_complete(
                token,
                key,
                algorithms=self.algorithms,
                audience=self.audience or [endpoint_url()],
                issuer=self.issuer,
                leeway=LEEWAY,
                options={"require": list(REQUIRED)},
            )
        except (jwt.PyJWTError, ValueError, OverflowError, TypeError) as error:
            # What is wrong with it is the business of its owner, and of nobody who guesses.
            raise AuthenticationFailed from error
        claims: dict[str, Any] = found["payload"]
        if not is_access_token(found["header"], claims):
            raise AuthenticationFailed
        return claims

    @sensitive_variables("token")
    def key_of(self, token: str) -> PyJWK:
        """The key that signed it. Raises AuthenticationFailed where the issuer has no such key,
        IssuerUnavailable where the issuer does not answer.
        """
        from jwt import PyJWKClientConnectionError, PyJWTError

        # One at a time, or each thread would wait for a server that does not answer.
        with self._lock:
            if self._failed_at is not None and time.monotonic() - self._failed_at < PAUSE:
                raise IssuerUnavailable(f"{self.jwks_url} did not answer.")
            self._failed_at = None
            try:
                # type ignored: authenticators are prepared before they are used.
                return self._keys.get_signing_key_from_jwt(token)  # type: ignore[union-attr]
            except (PyJWKClientConnectionError, OSError) as error:
                self._failed_at = time.monotonic()
                raise IssuerUnavailable(f"{self.jwks_url} did not answer: {error}") from error
            except (PyJWTError, ValueError) as error:
                raise AuthenticationFailed from error

    def scopes_of(self, claims: dict[str, Any]) -> frozenset[str]:
        """What a token is good for. Raises AuthenticationFailed where that is nothing."""
        if self.scopes is not None:
            return frozenset(self.scopes)
        named = claims.get("scope", claims.get("scp", ""))
        words = named.split() if isinstance(named, str) else named
        found = frozenset(one for one in SCOPES if isinstance(words, list) and one in words)
        if not found:
            raise AuthenticationFailed(
                f"The token has no scope of this server. Ask for {SCOPES[0]}."
            )
        return found


def issuer_of(token: str) -> object:
    """What a token says of itself, before anything is checked. None where it is no JWT."""
    import jwt

    if token.count(".") != 2:
        return None
    try:
        return jwt.decode(token, options={"verify_signature": False}).get("iss")
    except (jwt.PyJWTError, ValueError, RecursionError):
        return None


def is_access_token(header: dict[str, Any], claims: dict[str, Any]) -> bool:
    """Whether it lets programs in. ID tokens say who somebody is, and may have our audience."""
    kind, use = header.get("typ", "jwt"), claims.get("typ", "bearer")
    is_named = isinstance(kind, str) and kind.lower() in TYPES
    return is_named and str(use).lower() == "bearer" and not {"at_hash", "c_hash"} & claims.keys()


def end_of(claims: dict[str, Any]) -> datetime:
    """Raises AuthenticationFailed for a time that no calendar has."""
    try:
        # As timezone.now() has it.
        zone = UTC if settings.USE_TZ else None
        return datetime.fromtimestamp(int(claims["exp"]) + LEEWAY, tz=zone)
    except (OverflowError, ValueError, OSError) as error:
        raise AuthenticationFailed from error


def is_safe(url: str) -> bool:
    """Whether nobody on the way can change what is read: TLS, or no way at all."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    host = parts.hostname or ""
    return parts.scheme == "https" or (
        parts.scheme == "http" and (host == "localhost" or is_loopback(host))
    )
