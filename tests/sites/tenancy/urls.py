"""The URLs of the site, which do not have the endpoint: its server routes it."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from tests.depot.admin import site as depot

urlpatterns = [path("admin/", admin.site.urls), path("depot/", depot.urls)]
