from __future__ import annotations

from django.urls import include, path

from tests.workshop.admin import site

urlpatterns = [path("back/", site.urls), path("mcp", include("mcp_django.urls"))]
