"""A site with Channels routers of its own."""

from __future__ import annotations

# docs: start asgi_router
import os

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application
from django.urls import re_path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mysite.settings")
django_application = get_asgi_application()

# After get_asgi_application(), which sets Django up.
from mcp_django.routing import http_urlpatterns

application = ProtocolTypeRouter(
    {"http": URLRouter([*http_urlpatterns, re_path(r"", django_application)])}
)
# docs: end asgi_router
