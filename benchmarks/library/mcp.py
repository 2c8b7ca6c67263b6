from __future__ import annotations

import mcp_django as mcp
from benchmarks.library.functions import FUNCTIONS
from benchmarks.library.models import Author, Book

#: Together with the functions that are called, fifty.
TOOLS = 50 - len(FUNCTIONS)

mcp.register(Author, fields=["id", "name"])


@mcp.register(Book)
class BookExposure(mcp.ModelExposure):
    fields = ["id", "title", "author", "author__name", "year", "pages", "price", "added"]


def count_pages(author: str, since: int = 1900, until: int = 2025) -> int:
    """Count the pages of all books of an author between two years.

    Args:
        author: The author's name as the record shows it.
        since: First year.
        until: Last year.
    """
    books = Book.objects.filter(author__name=author, year__range=(since, until))
    return sum(books.values_list("pages", flat=True))


for number in range(TOOLS):
    mcp.tool(name=f"measured_{number}", read_only=True, permission="library.view_book")(
        count_pages
    )

for function in FUNCTIONS.values():
    mcp.tool(read_only=True, permission="library.view_book")(function)
