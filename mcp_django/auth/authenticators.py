"""What an authenticator is, those of the settings, and those that come with this package.

Settings import this file: nothing here may import models before first use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Any, Protocol, cast

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_backends, get_user_model
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, router
from django.http import HttpRequest
from django.http.request import split_domain_port
from django.utils import timezone
from django.utils.module_loading import import_string
from django.views.decorators.debug import sensitive_variables

from mcp_django.cached import Cached
from mcp_django.conf import get_config
from mcp_django.exceptions import AuthenticationFailed, ServiceUnavailable
from mcp_django.exposure.limits import is_missing_table
from mcp_django.principal import DEFAULT_SERVER, READ, SCOPES, Principal
from mcp_django.signing import digest_of
from mcp_django.stores.last_used import note_use
from mcp_django.stores.transactions import turns
from mcp_django.token_secrets import PREFIX, is_well_formed

if TYPE_CHECKING:
    from mcp_django.models import PersonalToken


class Authenticator(Protocol):
    """Recognizes one kind of credential.

    Four members are optional:
    - `header_only` (default False): only the Authorization header decides. The answer may be
      cached for a second, and is None without that header. Where all authenticators say so, the
      body of a request without the header is never read.
    - `guessable` (default True): not asked while the address of the client is held off for too
      many failures.
    - `issuer`: the authorization server that issues the credentials. Clients find it in the
      metadata of the endpoint.
    - `prepare()`: called once before first use. May raise ImproperlyConfigured.
    """

    def authenticate(self, request: HttpRequest) -> Principal | None:
        """Who presented this. None: not my kind of credential, ask the next.

        Raises AuthenticationFailed for a bad credential; then nobody else is asked.
        """

    def challenge(self) -> str | None:
        """A value for WWW-Authenticate, such as "Bearer", that tells clients what to present."""


#: The default, and what is added to it by another app.
PERSONAL_TOKENS = "mcp_django.auth.PersonalTokens"
BY_APP = {"mcp_django.oauth": "mcp_django.oauth.bearer.OAuthBearer"}


def configured_authenticators() -> Sequence[Any]:
    """Return the entries of the setting, or those that stand for it where it is missing."""
    chosen = get_config().authenticators
    if chosen is not None:
        return chosen
    return [PERSONAL_TOKENS, *(path for app, path in BY_APP.items() if apps.is_installed(app))]


def authenticators() -> tuple[Authenticator, ...]:
    """Those of the setting, in its order.

    Raises ServiceUnavailable when there are none, ImproperlyConfigured when one cannot be used.
    """
    entries = configured_authenticators()
    if not entries:
        raise ServiceUnavailable("MCP_DJANGO['AUTHENTICATORS'] is empty.")
    return _authenticators.get(get_config(), make=lambda before: tuple(map(prepared, entries)))


_authenticators: Cached[tuple[Authenticator, ...]] = Cached()


def prepared(configured: object) -> Authenticator:
    """One entry of the setting, ready for use. Raises ImproperlyConfigured."""
    found: Any = imported(configured) if isinstance(configured, str) else configured
    if isinstance(found, type):
        try:
            found = found()
        except TypeError as error:
            raise ImproperlyConfigured(
                f"{found.__name__} needs arguments: put an instance into the setting."
            ) from error
    if not all(callable(getattr(found, name, None)) for name in ("authenticate", "challenge")):
        raise ImproperlyConfigured(
            f"{configured!r} is no authenticator: it needs authenticate() and challenge()."
        )
    prepare = getattr(found, "prepare", None)
    if callable(prepare):
        prepare()
    return cast("Authenticator", found)


def imported(path: str, *, name: str = "") -> Any:
    """What a dotted path of the settings stands for. Raises ImproperlyConfigured."""
    try:
        return import_string(path)
    except (ImportError, ValueError) as error:
        raise ImproperlyConfigured(f"{name or repr(path)} cannot be imported: {error}.") from error


def known_scopes(scopes: Iterable[str], *, of: str) -> frozenset[str]:
    """Scopes that a site wrote into its settings. Raises ImproperlyConfigured for others."""
    found = frozenset([scopes] if isinstance(scopes, str) else scopes)
    unknown = sorted(found - set(SCOPES))
    if unknown:
        raise ImproperlyConfigured(
            f"{of} has the unknown scope {unknown[0]!r}. Use some of: {', '.join(SCOPES)}."
        )
    return found


# Whether a user may act at all: the site's own rule, asked anew for each credential.


def is_active(user: Any) -> bool:
    """Whether the user is active, and at least one backend that has a rule would let them in.

    `user_can_authenticate` is where sites refuse people who are banned or unconfirmed. A backend
    that lets inactive users log in does not open this door.
    """
    if not getattr(user, "is_active", False):
        return False
    asked = (getattr(backend, "user_can_authenticate", None) for backend in get_backends())
    rules = [rule for rule in asked if rule is not None]
    return not rules or any(rule(user) for rule in rules)


def active_user(username: str) -> Any:
    """The user of this name. Raises AuthenticationFailed where none may act."""
    users = get_user_model()
    user = None
    with suppress(users.DoesNotExist):
        user = users._default_manager.get_by_natural_key(username)
    if user is None or not is_active(user):
        raise AuthenticationFailed(f"There is no active user {username!r}.")
    return user


# Those that come with this package.


class PersonalTokens:
    """The tokens that users make for their programs: `Authorization: Bearer mcp_...`.

    Nothing else is read: not the address, not the body.

    Whatever is wrong with a token, the answer is the same: unknown, revoked, expired, mistyped, or
    of a user who may not act.
    """

    header_only = True
    guessable = False

    @sensitive_variables("secret")
    def authenticate(self, request: HttpRequest) -> Principal | None:
        secret = bearer_token(request)
        if secret is None or not secret.startswith(PREFIX):
            return None
        if not is_well_formed(secret):
            raise AuthenticationFailed
        token = find_token(secret)
        if token is None or token.state() != "active" or not is_active(token.user):
            raise AuthenticationFailed
        note_used(token)
        return principal_of(token)

    def challenge(self) -> str:
        return "Bearer"


def note_used(credential: Any) -> None:
    """Have `last_used_at` of a row written soon: it is for people, so once a minute is enough."""
    model, pk, now = type(credential), credential.pk, timezone.now()

    def write() -> None:
        with turns.alone(router.db_for_write(model)):
            model.objects.filter(pk=pk).update(last_used_at=now)

    before = credential.last_used_at
    if before is None or before <= now - timedelta(minutes=1):
        note_use((model, pk), write)


def bearer_token(request: HttpRequest) -> str | None:
    scheme, _, rest = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    return rest.strip(" ") if scheme.lower() == "bearer" else None


@sensitive_variables("secret")
def find_token(secret: str) -> PersonalToken | None:
    """The token and its user, in one query. The index is over digests: timing tells nothing.

    A token that was revoked may still be good on a replica, so the database is asked that knows.
    Raises ServiceUnavailable where nobody has migrated.
    """
    from mcp_django.models import PersonalToken

    tokens = PersonalToken.objects.using(router.db_for_write(PersonalToken)).select_related("user")
    try:
        return tokens.filter(digest=digest_of(secret), server=DEFAULT_SERVER).first()
    except DatabaseError as error:
        if is_missing_table(error):
            raise ServiceUnavailable("There is no table of tokens: manage.py migrate") from error
        raise


def principal_of(token: PersonalToken) -> Principal:
    return Principal(
        user=token.user,
        scopes=frozenset(token.scopes),
        method="personal_token",
        server=token.server,
        client=token.name,
        credential_id=str(token.pk),
        restriction=token.restriction,
        expires_at=token.expires_at,
        ends_at=token.expires_at,
    )


class DRF:
    """Asks one authentication class: `DRF("rest_framework.authentication.TokenAuthentication")`.

    DRF's credentials carry no scopes, so the site says here what they are good for. The class is
    asked anew for each call, unless `header_only=True` promises that it looks at nothing but the
    Authorization header, and recognizes nobody without one.
    """

    def __init__(
        self, path: str, *, scopes: Iterable[str] = (READ,), header_only: bool = False
    ) -> None:
        self.path = path
        self.scopes = scopes
        self.header_only = header_only
        self._wrapped: Any = None

    def prepare(self) -> None:
        """Import the class and refuse those that must not be used here."""
        self.scopes = known_scopes(self.scopes, of=f"DRF({self.path!r})")
        found = imported(self.path, name=f"DRF({self.path!r})")
        for base in found.__mro__:
            name = f"{base.__module__}.{base.__qualname__}"
            if base.__module__.startswith("oauth2_provider."):
                # It takes tokens from the query string and gives requests without scopes a pass.
                raise ImproperlyConfigured(
                    f"{name} does not check for whom a token was issued. "
                    "Use mcp_django.oauth.bearer.OAuthBearer."
                )
            if name == "rest_framework.authentication.SessionAuthentication":
                raise ImproperlyConfigured(
                    "Browsers send cookies by themselves, so no page may be trusted with them. "
                    "Use personal tokens in place of SessionAuthentication."
                )
        self._wrapped = found()

    def authenticate(self, request: HttpRequest) -> Principal | None:
        # type ignored: DRF ships no types.
        from rest_framework.exceptions import APIException  # type: ignore[import-untyped]
        from rest_framework.request import Request  # type: ignore[import-untyped]

        try:
            found = self._wrapped.authenticate(Request(request))
        except APIException as error:
            if error.status_code >= 500:
                raise
            # Its own sentence may tell an unknown user from a wrong password.
            raise AuthenticationFailed from error
        if found is None:
            return None
        if not is_active(found[0]):
            raise AuthenticationFailed
        return Principal(
            user=found[0],
            scopes=frozenset(self.scopes),
            method="drf",
            client=f"drf:{self.path.rpartition('.')[2]}",
        )

    def challenge(self) -> str | None:
        from rest_framework.request import Request

        header: str | None = self._wrapped.authenticate_header(Request(HttpRequest()))
        return header


#: A proxy stands between, so the address of the connection says nothing about the caller.
PROXY_HEADERS = ("HTTP_FORWARDED", "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_HOST", "HTTP_VIA")


class Anonymous:
    """Everybody may read what AnonymousUser may see. Never in place of a wrong credential."""

    guessable = False

    def authenticate(self, request: HttpRequest) -> Principal | None:
        if "HTTP_AUTHORIZATION" in request.META:
            return None
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
        user = active_user(self.username)
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
    address = parse_address(text)
    return address is not None and address.is_loopback


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address of a host, as one of IPv4 where IPv6 only wraps it, or None."""
    with suppress(ValueError):
        address = ip_address(text)
        return getattr(address, "ipv4_mapped", None) or address
    return None
