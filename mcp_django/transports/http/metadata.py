"""Metadata that clients read before they have a credential."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from mcp_django.auth.resource import endpoint_path, endpoint_url, issuers, metadata
from mcp_django.transports.http.wsgi import cross_origin


@login_not_required
@cross_origin
@require_safe
def protected_resource(request: HttpRequest, path: str | None = None) -> JsonResponse:
    """Answer with the metadata of the endpoint (RFC 9728), for its path and for no path at all.

    Not found: any other path, and where no authorization server issues tokens or PUBLIC_URL is
    missing.
    """
    own = endpoint_path().strip("/")
    is_ours = (path or "").removesuffix("/") in {"", own} and endpoint_url() and issuers()
    if not is_ours:
        raise Http404
    return JsonResponse(metadata())
