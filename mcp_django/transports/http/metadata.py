"""Metadata that clients read before they have a credential."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import (
    Http404,
    HttpRequest,
    HttpResponseBase,
    HttpResponseNotAllowed,
    JsonResponse,
)

from mcp_django.auth.resource import endpoint_path, endpoint_url, issuers, metadata
from mcp_django.transports.http.endpoint import cors_headers, preflight, with_cors
from mcp_django.transports.http.middleware import response_of
from mcp_django.transports.http.wsgi import headers_of


@login_not_required
def protected_resource(request: HttpRequest, path: str | None = None) -> HttpResponseBase:
    """Answer with the metadata of the endpoint (RFC 9728), for its path and for no path at all.

    Raises Http404 for any other path, and where no authorization server issues tokens or
    PUBLIC_URL is missing.
    """
    own = endpoint_path().strip("/")
    is_ours = (path or "").removesuffix("/") in {"", own} and endpoint_url() and issuers()
    if not is_ours:
        raise Http404
    headers = headers_of(request)
    response: HttpResponseBase
    if (asked := preflight(request.method or "", headers)) is not None:
        response = response_of(asked)
    elif request.method in {"GET", "HEAD"}:
        response = JsonResponse(metadata())
    else:
        response = HttpResponseNotAllowed(["GET", "HEAD"])
    for name, value in with_cors(tuple(response.items()), cors_headers(headers)):
        response.headers[name] = value
    return response
