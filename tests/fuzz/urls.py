from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from tests.fuzz.admin import site
from tests.library.admin import site as library
from tests.workshop.admin import site as workshop

urlpatterns = [
    path("admin/", admin.site.urls),
    path("fuzz/", site.urls),
    path("back/", workshop.urls),
    path("library/", library.urls),
    path("mcp", include("mcp_django.urls")),
]
