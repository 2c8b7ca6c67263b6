"""What the function tools do. The floor calls the same functions, without a tool around them.

Twice each: a dict says nothing about its members, a Struct promises all of them.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec

from benchmarks.library.models import Book

COLUMNS = ("id", "title", "author_id", "author__name", "year", "pages", "price", "added")


class BookRow(msgspec.Struct):
    id: int
    title: str
    author_id: int
    author__name: str
    year: int
    pages: int
    price: Decimal
    added: datetime


class Shelf(msgspec.Struct):
    records: list[BookRow]


def book_dict(pk: int) -> dict[str, Any]:
    """One book by its key."""
    return Book.objects.values(*COLUMNS).get(pk=pk)


def book_struct(pk: int) -> BookRow:
    """One book by its key."""
    return BookRow(**book_dict(pk))


def books_dict(since: int, limit: int = 50) -> dict[str, Any]:
    """Books from a year on, latest first."""
    rows = Book.objects.filter(year__gte=since).order_by("-year", "pk")
    return {"records": list(rows.values(*COLUMNS)[:limit])}


def books_struct(since: int, limit: int = 50) -> Shelf:
    """Books from a year on, latest first."""
    return Shelf([BookRow(**row) for row in books_dict(since, limit)["records"]])


FUNCTIONS = {one.__name__: one for one in (book_dict, book_struct, books_dict, books_struct)}
