"""Registration by the client itself (RFC 7591), for clients that publish no document."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from mcp_django.auth.throttles import client_address, registrations
from mcp_django.oauth.client_metadata import (
    LARGEST_DOCUMENT,
    BadMetadata,
    ClientMetadata,
    read_metadata,
)
from mcp_django.oauth.toolkit import get_application_model, oauth2_settings
from mcp_django.transports.wsgi import cross_origin

#: After which a client that nobody has signed in with is deleted, and how many at once.
UNUSED, PRUNED_AT_ONCE = timedelta(days=1), 100


@csrf_exempt
@login_not_required
@cross_origin
@require_POST
@never_cache
def register(request: HttpRequest) -> JsonResponse:
    """Store a client for which people may sign in, and answer with its client_id."""
    if not oauth2_settings.DCR_ENABLED:
        return refusal("not_found", "Clients do not register themselves here.", status=404)
    wait = registrations.take(client_address(request))
    if wait is not None:
        return refusal("temporarily_unavailable", "Too many clients register.", status=429)
    if len(request.body) > LARGEST_DOCUMENT:
        return refusal("invalid_client_metadata", "The metadata are too long.", status=413)
    try:
        metadata = read_metadata(request.body)
        return JsonResponse(store_client(metadata), status=201)
    except BadMetadata as error:
        return refusal(error.code, str(error))
    except ValidationError as error:
        return refusal("invalid_client_metadata", " ".join(error.messages))


def refusal(code: str, description: str, *, status: int = 400) -> JsonResponse:
    return JsonResponse({"error": code, "error_description": description}, status=status)


def store_client(metadata: ClientMetadata) -> dict[str, Any]:
    """Store the client. Return the members of RFC 7591, 3.2.1. Raises ValidationError.

    There is no registration_access_token: a client that changes registers anew.
    """
    model = get_application_model()
    prune_unused_clients(model)
    method = metadata.token_endpoint_auth_method
    is_public = method not in {"client_secret_basic", "client_secret_post"}
    client = model(
        name=metadata.client_name,
        redirect_uris=" ".join(metadata.redirect_uris),
        client_type=model.CLIENT_PUBLIC if is_public else model.CLIENT_CONFIDENTIAL,
        authorization_grant_type=model.GRANT_AUTHORIZATION_CODE,
        registration_source=model.RegistrationSource.DCR,
    )
    secret = client.client_secret  # until save() makes a digest of it
    client.full_clean()
    client.save()
    answer: dict[str, Any] = {
        "client_id": client.client_id,
        "client_id_issued_at": int(client.created.timestamp()),
        "client_name": client.name,
        "redirect_uris": metadata.redirect_uris,
        "grant_types": metadata.grant_types,
        "response_types": metadata.response_types,
        "token_endpoint_auth_method": "none" if is_public else method,
    }
    if not is_public:
        answer |= {"client_secret": secret, "client_secret_expires_at": 0}
    return answer


def prune_unused_clients(model: Any) -> None:
    """Delete clients that registered themselves, and that nobody has signed in with since."""
    unused = model._default_manager.filter(
        registration_source=model.RegistrationSource.DCR,
        created__lt=timezone.now() - UNUSED,
        mcp_authorizations=None,
    )
    model._default_manager.filter(
        pk__in=list(unused.values_list("pk", flat=True)[:PRUNED_AT_ONCE])
    ).delete()
