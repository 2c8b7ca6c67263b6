from __future__ import annotations

from django.contrib import admin
from django.contrib.staticfiles.urls import staticfiles_urlpatterns
from django.urls import include, path

from demo_project import views

admin.site.site_header = "Flight desk"
admin.site.site_title = "Flight desk"
admin.site.index_title = "Operations"

urlpatterns = [
    path("", views.start, name="start"),
    path("admin/", admin.site.urls),
    path("", include("mcp_django.oauth.urls")),
    path("assistants/", include("mcp_django.oauth.pages")),
    path("media/<path:name>", views.report, name="report"),
    *staticfiles_urlpatterns(),
]
