from __future__ import annotations

from django.urls import include, path

urlpatterns = [path("mcp", include("mcp_django.urls"))]
