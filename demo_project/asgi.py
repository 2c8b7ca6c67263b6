from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "demo_project.settings")

from mcp_django.asgi import get_mcp_application

application = get_mcp_application()
