"""Access tokens of an authorization server elsewhere: Keycloak, Auth0, Entra, Okta.

Settings import this file: nothing here may import models, or PyJWT, before first use.
"""

from __future__ import annotations

import math
import time
import urllib.request
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from threading import Event, Lock, Thread
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
    from jwt import PyJWK

#: Verified with a key that everybody may have. A shared secret would let this site issue tokens.
ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
#: The header `typ` of access tokens (RFC 9068, 2.1).
ACCESS_TOKEN_TYPES = frozenset({"at+jwt", "application/at+jwt"})
#: What Keycloak (`typ`) and Cognito (`token_use`) call an access token in its claims.
ACCESS_TOKEN_USES = frozenset({"bearer", "access"})
#: Seconds by which the clocks of two machines may differ.
LEEWAY = 10
#: Seconds for which keys are good, and after which the server is asked for them again.
KEYS_LIFETIME, KEYS_RENEWAL = 3600, 1800
#: Seconds between two requests for keys, whatever the answer and however many tokens ask for it.
PAUSE = 30
#: Seconds until the whole answer is there, and for which a call waits for it.
FETCH_TIMEOUT, PATIENCE = 5.0, 1.0
#: Bytes of an answer. A key has about one thousand.
LARGEST_KEY_SET = 256 * 1024


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
        self.signing_keys = SigningKeys(jwks_url)

    def prepare(self) -> None:
        """Import what this needs, and refuse what would let strangers in. Asks no server."""
        of = f"JWTBearer({self.issuer!r})"
        try:
            import jwt  # noqa: F401
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

    @sensitive_variables("token")
    def authenticate(self, request: HttpRequest) -> Principal | None:
        token = bearer_token(request)
        if token is None or issuer_of(token) != self.issuer:
            return None
        claims, expires_at = self.checked(token)
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
            grantable=frozenset(SCOPES if self.scopes is None else ()),
            expires_at=expires_at,
        )

    def challenge(self) -> str:
        return bearer_challenge()

    @sensitive_variables("token")
    def checked(self, token: str) -> tuple[dict[str, Any], datetime]:
        """Return the claims of a token that is good here and now, and its end. Raises
        AuthenticationFailed, and IssuerUnavailable where nobody tells whether there is such a key.
        """
        import jwt

        try:
            key = self.signing_keys.find(jwt.get_unverified_header(token).get("kid"))
            if key is None:
                raise AuthenticationFailed
            found = jwt.decode_complete(
                token,
                key,
                algorithms=self.algorithms,
                audience=self.audience or [endpoint_url()],
                issuer=self.issuer,
                leeway=LEEWAY,
                options={"require": ["exp", "iss", "aud"]},
            )
            claims: dict[str, Any] = found["payload"]
            # In the zone of timezone.now(). Raises for a time that no calendar has.
            zone = UTC if settings.USE_TZ else None
            expires_at = datetime.fromtimestamp(int(claims["exp"]) + LEEWAY, tz=zone)
        except (jwt.PyJWTError, ValueError, OverflowError, TypeError, OSError) as error:
            # What is wrong with it is the business of its owner, and of nobody who guesses.
            raise AuthenticationFailed from error
        if not is_access_token(found["header"], claims):
            raise AuthenticationFailed
        return claims, expires_at

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


class SigningKeys:
    """The keys that an authorization server publishes (JWKS, RFC 7517, 5), by `kid`.

    A key that is there is returned without a lock and without the server. The server is asked for
    others in a thread of its own: neither a stranger's token nor an outage holds up other calls.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._keys: dict[str, PyJWK] = {}
        self._read_at = self._asked_at = -math.inf
        self._lock = Lock()
        #: Set when the last request is over, and why it came to nothing.
        self._answered = Event()
        self._answered.set()
        self._error: object = None
        self.clock = time.monotonic

    def find(self, kid: object) -> PyJWK | None:
        """Return the key, or None if the server has no such key.

        Raises IssuerUnavailable if the server does not answer, or not within a second.
        """
        if not isinstance(kid, str):
            return None
        key, age = self._keys.get(kid), self.clock() - self._read_at
        if key is not None and age < KEYS_RENEWAL:
            return key
        answered, until = self._ask()
        if key is not None and age < KEYS_LIFETIME:
            return key
        if not answered.wait(max(0.0, until - self.clock())) or self._error is not None:
            raise IssuerUnavailable(f"{self.url} did not answer in time: {self._error}")
        return self._keys.get(kid)

    def _ask(self) -> tuple[Event, float]:
        """Ask the server, but not twice in a while. Returns what to wait for, and until when."""
        with self._lock:
            now = self.clock()
            # A server that never ends an answer holds one thread.
            if now - self._asked_at >= PAUSE and self._answered.is_set():
                self._asked_at, self._answered = now, Event()
                Thread(target=self._read, args=(self._answered,), daemon=True).start()
            return self._answered, self._asked_at + PATIENCE

    def _read(self, answered: Event) -> None:
        from jwt import PyJWKSet

        try:
            published = PyJWKSet.from_json(fetch(self.url))
            self._keys = {
                key.key_id: key
                for key in published
                if key.key_id and key.public_key_use in ("sig", None)
            }
            self._read_at, self._error = self.clock(), None
        except Exception as error:  # whatever a server answers, and PyJWT makes of it
            self._error = str(error)
        answered.set()


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Keys come from the address that the site names, and from no other."""

    def redirect_request(self, *args: Any) -> None:
        """Return nothing to ask instead."""


def fetch(url: str) -> str:
    """Return the body at this address. Raises OSError, HTTPException or ValueError.

    There is one deadline for the whole answer: a server may send each byte just in time.
    """
    end, parts, size = time.monotonic() + FETCH_TIMEOUT, [], 0
    opener = urllib.request.build_opener(NoRedirects)
    with opener.open(url, timeout=FETCH_TIMEOUT) as response:
        while part := response.read1(65536):
            parts.append(part)
            size += len(part)
            if size > LARGEST_KEY_SET or time.monotonic() > end:
                raise ValueError("Its answer is too long, or takes too long.")
    return b"".join(parts).decode()


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
    """Return whether a token says that it lets programs in.

    ID tokens say who somebody is, may have our audience, and need not say that they are ID tokens.
    """
    kind = str(header.get("typ", "jwt")).lower()
    use = str(claims.get("typ", claims.get("token_use", ""))).lower()
    if {"at_hash", "c_hash"} & claims.keys() or use not in ACCESS_TOKEN_USES | {""}:
        return False
    names_scopes = bool({"scope", "scp"} & claims.keys()) and "nonce" not in claims
    return kind in ACCESS_TOKEN_TYPES or (kind == "jwt" and (bool(use) or names_scopes))


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
