from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "demo_project.settings")

from mcp_django.asgi import get_mcp_application  # noqa: E402 - the settings come first

application = get_mcp_application()
