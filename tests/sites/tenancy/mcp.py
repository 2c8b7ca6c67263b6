from __future__ import annotations

from crum import get_current_user

import mcp_django as mcp
from tests.sites.tenancy.models import Delivery

mcp.register(Delivery, fields=["id", "name"], level=mcp.Level.WRITE)


@mcp.tool(read_only=True, permission=lambda request: True)
def current_user() -> str:
    """Say who calls, as the code of the site knows it."""
    return get_current_user().get_username()
