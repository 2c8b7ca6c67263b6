from __future__ import annotations

from mcp_django.asgi import get_mcp_application

application = get_mcp_application()
