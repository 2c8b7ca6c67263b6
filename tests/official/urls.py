from __future__ import annotations

from django.urls import include, path

from demo_project.urls import urlpatterns as of_the_desk

urlpatterns = [path("mcp", include("mcp_django.urls")), *of_the_desk]
