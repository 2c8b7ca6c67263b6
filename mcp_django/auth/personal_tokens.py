"""`Authorization: Bearer mcp_...`, and nowhere else: not in the address, not in the body."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import DatabaseError, router
from django.http import HttpRequest
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from mcp_django.auth.users import is_active
from mcp_django.exceptions import AuthenticationFailed, ServiceUnavailable
from mcp_django.principal import DEFAULT_SERVER, Principal
from mcp_django.token_secrets import PREFIX, digest_of, is_well_formed

if TYPE_CHECKING:
    from mcp_django.models import PersonalToken


class PersonalTokens:
    """The tokens that users make for their programs.

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
        token = find(secret)
        now = timezone.now()
        if token is None or token.state(now=now) != "active" or not is_active(token.user):
            raise AuthenticationFailed
        token.mark_used(now=now)
        return principal_of(token)

    def challenge(self) -> str:
        return "Bearer"


def bearer_token(request: HttpRequest) -> str | None:
    scheme, _, rest = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    return rest.strip(" ") if scheme.lower() == "bearer" else None


@sensitive_variables("secret")
def find(secret: str) -> PersonalToken | None:
    """The token and its user, in one query. The index is over digests: timing tells nothing.

    A token that was revoked may still be good on a replica, so the database is asked that knows.
    Raises ServiceUnavailable where nobody has migrated.
    """
    # Settings import this file, and models cannot be imported by then.
    from mcp_django.models import PersonalToken

    tokens = PersonalToken.objects.using(router.db_for_write(PersonalToken)).select_related("user")
    try:
        return tokens.filter(digest=digest_of(secret), server=DEFAULT_SERVER).first()
    except DatabaseError as error:
        if is_missing_table(error):
            raise ServiceUnavailable("There is no table of tokens: manage.py migrate") from error
        raise


def is_missing_table(error: DatabaseError) -> bool:
    """SQLite: no such table. PostgreSQL: 42P01. MariaDB and MySQL: 1146."""
    state = getattr(error.__cause__, "sqlstate", None)
    return "no such table" in str(error) or state == "42P01" or error.args[:1] == (1146,)


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
    )
