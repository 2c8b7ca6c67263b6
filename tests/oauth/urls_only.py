"""Nobody has a page to sign in."""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [path("", include("mcp_django.oauth.urls"))]
