"""Where clients learn who issues tokens: `path("", include("mcp_django.well_known"))`.

Only sites that take tokens of an authorization server need it.
"""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, JsonResponse
from django.urls import re_path
from django.views.decorators.http import require_safe

from mcp_django.auth.resource import endpoint_path, endpoint_url, issuers, metadata
from mcp_django.transports.wsgi import cross_origin


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


app_name = "mcp_django_well_known"
urlpatterns = [
    # RFC 9728, 3.1: the path of the resource stands behind the well-known one. Clients that know
    # nothing of it ask without.
    re_path(
        r"^\.well-known/oauth-protected-resource(?:/(?P<path>.*))?$",
        protected_resource,
        name="protected_resource",
    ),
]
