"""Everything that clients look for: `path("", include("mcp_django.oauth.urls"))`, at the root."""

from __future__ import annotations

from django.urls import include, re_path

from mcp_django import well_known
from mcp_django.oauth import views
from mcp_django.oauth.registration import register

patterns = [
    re_path(
        r"^\.well-known/oauth-authorization-server(?:/(?P<path>.*))?$",
        views.ServerMetadata.as_view(),
        name="server-metadata",
    ),
    # With a slash at the end and without: a redirect would lose what is posted.
    re_path(r"^oauth/authorize/?$", views.Authorize.as_view(), name="authorize"),
    re_path(r"^oauth/token/?$", views.IssueToken.as_view(), name="token"),
    re_path(r"^oauth/revoke/?$", views.RevokeToken.as_view(), name="revoke-token"),
    re_path(r"^oauth/register/?$", register, name="dcr-register"),
]
urlpatterns = [
    re_path("", include((patterns, "mcp_django_oauth"))),
    re_path("", include((well_known.urlpatterns, well_known.app_name))),
]
