from __future__ import annotations

import mcp_django as mcp
from tests.sites.parcels.models import Guarded, Tracked, Versioned

mcp.register(
    Guarded,
    Tracked,
    Versioned,
    fields=["id", "name", "size"],
    level=mcp.Level.WRITE,
    actions=["grow"],
)
