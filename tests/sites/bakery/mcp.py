from __future__ import annotations

import mcp_django as mcp
from tests.sites.bakery.models import (
    Cake,
    Category,
    Notice,
    Page,
    Pie,
    Product,
    Region,
    Tart,
    Tour,
)

mcp.register(Page, fields=["id", "title", "body"], level=mcp.Level.WRITE)
mcp.register(Tour, fields=["id", "name", "start", "stops", "price"], level=mcp.Level.WRITE)
mcp.register(Cake, Category, Region, fields=["id", "name"], level=mcp.Level.WRITE)
mcp.register(Pie, fields=["id", "name", "filling"], level=mcp.Level.WRITE)
mcp.register(Tart, fields=["id", "name", "diameter"], level=mcp.Level.WRITE)
mcp.register(Product, fields=["id", "title", "upc"], level=mcp.Level.WRITE)
mcp.register(Notice, fields=["id", "title", "text"], level=mcp.Level.WRITE)
