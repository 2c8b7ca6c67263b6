from __future__ import annotations

# docs: start asgi
import os

from mcp_django.asgi import get_mcp_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mysite.settings")
application = get_mcp_application()
# docs: end asgi
