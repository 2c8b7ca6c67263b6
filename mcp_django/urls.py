"""The endpoint for a URLconf: `path("mcp", include("mcp_django.urls"))`."""

from __future__ import annotations

from django.urls import re_path

from mcp_django.conf import get_config
from mcp_django.transports.health import health_view
from mcp_django.transports.wsgi import mcp_view

app_name = "mcp_django"
urlpatterns = [
    re_path(r"^(?:/)?$", mcp_view, name="endpoint"),
]
if get_config().health:
    # A site whose endpoint is at the root may have a page of this name.
    urlpatterns.append(re_path(r"^(?:/)?health$", health_view, name="health"))
