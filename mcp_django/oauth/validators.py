"""The rules of MCP for codes and tokens, added to those of django-oauth-toolkit.

They hold for every request that asks for a scope of the endpoint, on whatever URL it comes. Other
requests are the site's own, and stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

from django.views.decorators.debug import sensitive_variables
from oauthlib.oauth2.rfc6749 import errors

from mcp_django.auth.authenticators import is_active
from mcp_django.auth.resource import endpoint_url
from mcp_django.oauth.models import Authorization
from mcp_django.oauth.toolkit import (
    OAuth2Validator,
    cimd,
    get_application_model,
    get_grant_model,
    is_self_registered,
    may_ask,
)
from mcp_django.principal import SCOPES
from mcp_django.signing import digest_of

#: Limits of a consent, which the page where people consent fills in while it answers a signed-in
#: user. None everywhere else.
consent_page: ContextVar[dict[str, Any] | None] = ContextVar("mcp_django_consent", default=None)

DEFAULT_PORTS = {"http": 80, "https": 443}


def canonical(address: object) -> str | None:
    """Return the one way to write an address of an endpoint, or None for what is no such address.

    MCP 2026-07-28, authorization, canonical server URI: scheme and host in any case, no fragment,
    and a slash at the end says nothing.
    """
    if (
        not isinstance(address, str)
        or not address.isascii()
        or set(address) & set("#?\\@% \t\r\n")
    ):
        return None
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    default = DEFAULT_PORTS.get(parts.scheme)
    if default is None or not host or {".", ".."} & set(parts.path.split("/")):
        return None
    host = f"[{host}]" if ":" in host else host
    netloc = host if port in {None, default} else f"{host}:{port}"
    return f"{parts.scheme}://{netloc}{parts.path.rstrip('/')}"


def asks_for_endpoint(request: Any) -> bool:
    """Return whether a request of oauthlib asks for a scope of the endpoint."""
    asked = request.scopes or (request.scope or "").split()
    return not set(SCOPES).isdisjoint(asked)


def resource_of(request: Any, resources: Iterable[object]) -> list[str]:
    """Return the resource of a token for the endpoint: the endpoint, named or not.

    Raises CustomOAuth2Error, `invalid_target` of RFC 8707, 2, for any other.
    """
    endpoint = endpoint_url()
    spellings = {endpoint, canonical(endpoint)} - {None}
    if not endpoint or any({named, canonical(named)}.isdisjoint(spellings) for named in resources):
        raise errors.CustomOAuth2Error(
            error="invalid_target",
            description=f"The resource must be {endpoint}.",
            request=request,
        )
    return [endpoint]


class Validator(OAuth2Validator):  # type: ignore[misc]  # untyped base
    # Clients.

    def _load_application(self, client_id: str, request: Any) -> Any:
        """Return the client, or None for one that the site does not know or want.

        Only the page where people consent reads a client's document. Otherwise everybody could
        make this server call addresses, without signing in.
        """
        if consent_page.get() is not None or not cimd.is_cimd_client_id(client_id):
            client = super()._load_application(client_id, request)
        else:
            clients = get_application_model()._default_manager.filter(client_id=client_id)
            client = None if "\0" in client_id else clients.first()
        is_wanted = client is not None and may_ask(client) and client.is_usable(request)
        request.client = client if is_wanted else None
        return request.client

    def validate_grant_type(
        self, client_id: str, grant_type: str, client: Any, request: Any, *args: Any, **kwargs: Any
    ) -> Any:
        by_person = grant_type in {"authorization_code", "refresh_token"}
        if is_self_registered(request.client) and not by_person:
            return False
        return super().validate_grant_type(client_id, grant_type, client, request)

    def is_pkce_required(self, client_id: str, request: Any) -> bool:
        required: bool = super().is_pkce_required(client_id, request)
        return required or is_self_registered(request.client) or asks_for_endpoint(request)

    # Resources and scopes.

    def validate_scopes(
        self, client_id: str, scopes: Any, client: Any, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        allowed: bool = super().validate_scopes(client_id, scopes, client, request)
        if allowed and asks_for_endpoint(request):
            # Before a person is asked.
            named = [value for name, value in request.uri_query_params if name == "resource"]
            resource_of(request, named)
            if request.code_challenge is not None and request.code_challenge_method != "S256":
                raise errors.InvalidRequestError(
                    description="The code_challenge_method must be S256.", request=request
                )
        return allowed

    def _create_authorization_code(self, request: Any, code: Any, expires: Any = None) -> Any:
        if not asks_for_endpoint(request):
            return super()._create_authorization_code(request, code, expires)
        limits = consent_page.get()
        if not limits or not is_active(request.user):
            raise errors.AccessDeniedError(
                description="Nobody has consented on the page for it.", request=request
            )
        request.resource = resource_of(request, getattr(request, "resource", None) or [])
        Authorization.grant(
            user=request.user,
            application=request.client,
            resource=request.resource[0],
            scopes=list(request.scopes),
            code=code["code"],
            limits=limits,
        )
        return super()._create_authorization_code(request, code, expires)

    def _check_and_set_request_resource(self, request: Any) -> None:
        """Raise an OAuth2Error unless the token that is about to be stored may be."""
        if not asks_for_endpoint(request):
            super()._check_and_set_request_resource(request)
            return
        if request.grant_type == "client_credentials" and service_user(request.client) is None:
            raise errors.UnauthorizedClientError(
                description="The client acts for no user of this site.", request=request
            )
        named = [value for name, value in request.decoded_body or () if name == "resource"]
        request.resource = resource_of(request, named)
        request.decoded_body = [pair for pair in request.decoded_body if pair[0] != "resource"]
        super()._check_and_set_request_resource(request)

    # Codes and refresh tokens.

    @sensitive_variables("code")
    def validate_code(
        self, client_id: str, code: str, client: Any, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        if "\0" in code:  # PostgreSQL raises an error
            return False
        if super().validate_code(client_id, code, client, request):
            return not asks_for_endpoint(request) or holds_consent(request)
        if not get_grant_model().objects.filter(code=code).exists():
            # OAuth 2.1, 4.1.3: what a code bought ends when somebody comes with it again.
            spent = Authorization.objects.filter(application=client, code_digest=digest_of(code))
            for authorization in spent:
                authorization.end()
        return False

    @sensitive_variables("refresh_token")
    def validate_refresh_token(
        self, refresh_token: str, client: Any, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        if not super().validate_refresh_token(refresh_token, client, request):
            return False
        token = request.refresh_token_instance
        return endpoint_url() not in token.resource or holds_consent(request)


def holds_consent(request: Any) -> bool:
    """Return whether the user of a request of oauthlib allows its client the endpoint, and may."""
    authorization = Authorization.objects.filter(
        user=request.user, application=request.client, resource=endpoint_url()
    ).first()
    return authorization is not None and authorization.holds_for(request.user)


def service_user(application: Any) -> Any:
    """Return the user for whom a program acts that signs in by itself, or None.

    Such a program is entered by staff, with a secret, as the property of a user. It never acts for
    a superuser: programs for other parts of a site were entered with no thought of assistants.
    """
    is_service = (
        not is_self_registered(application)
        and application.client_type == application.CLIENT_CONFIDENTIAL
        and application.authorization_grant_type == application.GRANT_CLIENT_CREDENTIALS
    )
    user = application.user if is_service else None
    return user if user is not None and is_active(user) and not user.is_superuser else None
