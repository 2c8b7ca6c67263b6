"""Access tokens of the authorization server of this site, as credentials for the endpoint."""

from __future__ import annotations

import hashlib
from typing import Any

from django.db import DatabaseError, router
from django.db.models import F, FilteredRelation, Q
from django.http import HttpRequest
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from mcp_django.auth.authenticators import bearer_token, note_used
from mcp_django.auth.resource import bearer_challenge, endpoint_url
from mcp_django.exceptions import AuthenticationFailed, ServiceUnavailable
from mcp_django.exposure.limits import is_missing_table
from mcp_django.oauth.models import Authorization
from mcp_django.oauth.toolkit import get_access_token_model, issuer
from mcp_django.oauth.validators import service_user
from mcp_django.principal import SCOPES, Principal


class OAuthBearer:
    """`Authorization: Bearer ...` with an access token for the endpoint, and for nothing else.

    A token of another kind is left to the next authenticator. One of this server that has expired,
    was made for another resource, or whose user may not act any more, is refused.
    """

    header_only = True
    guessable = False

    @property
    def issuer(self) -> str:
        return issuer()

    @sensitive_variables("secret")
    def authenticate(self, request: HttpRequest) -> Principal | None:
        secret = bearer_token(request)
        token = find_access_token(secret) if secret else None
        if token is None:
            return None
        if token.expires <= timezone.now() or token.resource != [endpoint_url()]:
            raise AuthenticationFailed
        consent = self._consent_to(token)
        scopes = frozenset(SCOPES).intersection(token.scope.split(), consent.scopes)
        if not scopes:
            raise AuthenticationFailed
        return Principal(
            user=token.user or consent.user,
            scopes=scopes,
            method="oauth",
            client=f"oauth:{token.application.client_id}",
            credential_id=str(token.pk),
            restriction=consent.restriction,
            grantable=frozenset(SCOPES),
            expires_at=min(filter(None, (token.expires, consent.expires_at))),
            ends_at=consent.expires_at,
        )

    def _consent_to(self, token: Any) -> Authorization:
        """Return who allowed what. Raises AuthenticationFailed where it does not hold any more."""
        if token.application is None or not token.application.is_usable(None):
            raise AuthenticationFailed
        if token.user is None:
            user = service_user(token.application)
            if user is None:
                raise AuthenticationFailed
            return Authorization(user=user, scopes=list(SCOPES))
        # Django sets it where there is a row.
        consent: Authorization | None = getattr(token, "consent", None)
        if consent is None or not consent.holds_for(token.user):
            raise AuthenticationFailed
        note_used(consent)
        return consent

    def challenge(self) -> str:
        return bearer_challenge()


@sensitive_variables("secret")
def find_access_token(secret: str) -> Any:
    """Return the token with its user, client and consent, in one query, or None.

    The index is over digests: timing tells nothing. Raises ServiceUnavailable where nobody has
    migrated.
    """
    model = get_access_token_model()
    authorizations = "application__mcp_authorizations"
    tokens = model._default_manager.using(router.db_for_write(model)).annotate(
        consent=FilteredRelation(
            authorizations,
            condition=Q(
                **{
                    f"{authorizations}__user": F("user"),
                    f"{authorizations}__resource": endpoint_url(),
                }
            ),
        ),
    )
    digest = hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
    try:
        return (
            tokens.select_related("user", "application__user", "consent")
            .filter(token_checksum=digest)
            .first()
        )
    except DatabaseError as error:
        if is_missing_table(error):
            raise ServiceUnavailable("There are no tables of tokens: manage.py migrate") from error
        raise
