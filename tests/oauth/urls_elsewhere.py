"""The URLs are not at the root, so clients do not find them."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

urlpatterns = [path("admin/", admin.site.urls), path("api/", include("mcp_django.oauth.urls"))]
