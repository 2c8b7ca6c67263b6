"""The endpoint for a URLconf: `path("mcp", include("mcp_django.urls"))`."""

from __future__ import annotations

from django.urls import re_path

from mcp_django.transports.wsgi import mcp_view

app_name = "mcp_django"
urlpatterns = [re_path(r"^(?:/)?$", mcp_view, name="endpoint")]
