from __future__ import annotations

# docs: start metadata
from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("mcp", include("mcp_django.urls")),
    path("", include("mcp_django.well_known")),
]
# docs: end metadata
