from __future__ import annotations

from importlib.util import find_spec

from django.contrib import admin
from django.urls import include, path

from tests.depot.admin import site as depot
from tests.workshop.admin import site as workshop

has_oauth = find_spec("oauth2_provider") is not None
urlpatterns = [
    path("admin/", admin.site.urls),
    path("depot/", depot.urls),
    path("back/", workshop.urls),
    path("mcp", include("mcp_django.urls")),
    # The corner without extras has no authorization server.
    path("", include(f"mcp_django.{'oauth.urls' if has_oauth else 'well_known'}")),
]
if has_oauth:
    urlpatterns.append(path("assistants/", include("mcp_django.oauth.pages")))
