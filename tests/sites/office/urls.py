from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from tests.sites.office.admin import office

urlpatterns = [
    path("admin/", admin.site.urls),
    path("office/", office.urls),
    path("mcp", include("mcp_django.urls")),
]
