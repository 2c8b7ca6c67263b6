"""A site that already has an ASGI application, and another path."""

from __future__ import annotations

# docs: start asgi_around
import os

from django.core.asgi import get_asgi_application

from mcp_django.asgi import get_mcp_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mysite.settings")
django_application = get_asgi_application()  # or whatever serves the site today
application = get_mcp_application(http=django_application, path="assistants/mcp")
# docs: end asgi_around
