"""URLs of a site with a second admin, which has pages of ours as well."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import UserAdmin
from django.urls import path

import mcp_django.admin

other = admin.AdminSite(name="other")
other.register(get_user_model(), UserAdmin)
mcp_django.admin.register(other)

urlpatterns = [path("admin/", admin.site.urls), path("other/", other.urls)]
