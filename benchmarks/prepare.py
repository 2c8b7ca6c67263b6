"""Rows, a user who may view them, a token, and what the lists answer. Prints the token."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.contrib.auth.models import Permission  # noqa: E402
from django.core.management import call_command  # noqa: E402

from benchmarks.calls import ROWS  # noqa: E402
from benchmarks.library.models import Author, Book  # noqa: E402
from benchmarks.settings import STATE  # noqa: E402
from mcp_django.models import PersonalToken  # noqa: E402
from mcp_django.principal import READ  # noqa: E402
from mcp_django.testing import Client  # noqa: E402

LISTS = ("server/discover", "tools/list")


def prepare() -> str:
    call_command("migrate", verbosity=0, run_syncdb=True)
    chance = random.Random(1)
    authors = Author.objects.bulk_create(Author(name=f"Author {n}") for n in range(200))
    start = datetime(2026, 1, 1, tzinfo=UTC)
    Book.objects.bulk_create(
        (
            Book(
                title=f"Book {n} of many",
                author=chance.choice(authors),
                year=chance.randint(1900, 2025),
                pages=chance.randint(40, 900),
                price=Decimal(chance.randint(100, 9999)) / 100,
                added=start + timedelta(minutes=n),
            )
            for n in range(ROWS)
        ),
        batch_size=500,
    )
    user = get_user_model().objects.create_user("reader", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_book", "view_author"]))
    _, secret = PersonalToken.create(user=user, name="bench", scopes=[READ])
    client = Client(token=secret)
    lists = {method: client.request(method) for method in LISTS}
    (STATE / "lists.json").write_text(json.dumps(lists, separators=(",", ":")))
    return secret


if __name__ == "__main__":
    print(prepare())
