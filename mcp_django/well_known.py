"""Where clients learn who issues tokens: `path("", include("mcp_django.well_known"))`.

Only sites that take tokens of an authorization server need it.
"""

from __future__ import annotations

from django.urls import re_path

from mcp_django.transports.http.metadata import protected_resource

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
