"""A project with an admin site of its own beside the default one."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

import mcp_django.admin

office = admin.AdminSite(name="office")
mcp_django.admin.register(office)

urlpatterns = [
    path("admin/", admin.site.urls),
    path("office/", office.urls),
]
