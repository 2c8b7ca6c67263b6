"""A project with an admin site of its own beside the default one."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.urls import path

import mcp_django.admin

office = admin.AdminSite(name="office")
office.register(get_user_model())
mcp_django.admin.register(office)

urlpatterns = [
    path("admin/", admin.site.urls),
    path("office/", office.urls),
]
