from __future__ import annotations

# docs: start signin
from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("mcp_django.oauth.urls")),
]
# docs: end signin
# docs: start pages
urlpatterns += [path("assistants/", include("mcp_django.oauth.pages"))]
# docs: end pages
