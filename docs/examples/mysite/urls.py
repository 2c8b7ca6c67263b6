from __future__ import annotations

# docs: start urls
from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("mcp", include("mcp_django.urls")),
]
# docs: end urls
