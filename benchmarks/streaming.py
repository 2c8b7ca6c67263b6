"""The endpoint under measurement, and a way to have its process save a book."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async

from benchmarks.ours import application as endpoint

from benchmarks.library.models import Book  # isort: skip  # Django is set up by the line before


def first_book() -> Book:
    return Book.objects.order_by("pk")[:1].get()


@sync_to_async
def save() -> None:
    first_book().save()


async def application(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "http" or scope["path"] != "/save":
        await endpoint(scope, receive, send)
        return
    await save()
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})
