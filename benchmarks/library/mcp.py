from __future__ import annotations

import mcp_django as mcp
from benchmarks.library.models import Author, Book

mcp.register(Author, fields=["id", "name"])


@mcp.register(Book)
class BookExposure(mcp.ModelExposure):
    fields = ["id", "title", "author", "author__name", "year", "pages", "price", "added"]
