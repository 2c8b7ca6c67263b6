from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from tests.depot.admin import site as depot
from tests.workshop.admin import site as workshop

urlpatterns = [
    path("admin/", admin.site.urls),
    path("depot/", depot.urls),
    path("back/", workshop.urls),
    path("mcp", include("mcp_django.urls")),
    path("", include("mcp_django.well_known")),
]
