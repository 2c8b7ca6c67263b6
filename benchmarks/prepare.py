"""Rows, a user who may view them, tokens, and what the lists answer. Prints the personal token."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.contrib.auth.models import Permission  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.utils import timezone  # noqa: E402

from benchmarks.calls import ACCESS_TOKEN, ROWS  # noqa: E402
from benchmarks.library.models import Author, Book  # noqa: E402
from benchmarks.settings import STATE  # noqa: E402
from mcp_django.auth.resource import endpoint_url  # noqa: E402
from mcp_django.models import PersonalToken  # noqa: E402
from mcp_django.oauth.models import Authorization  # noqa: E402
from mcp_django.oauth.toolkit import get_access_token_model, get_application_model  # noqa: E402
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
    allow_client(user)
    client = Client(token=secret)
    lists = {method: client.request(method) for method in LISTS}
    (STATE / "lists.json").write_text(json.dumps(lists, separators=(",", ":")))
    return secret


def allow_client(user: Any) -> None:
    """Store a consent and an access token, as if the user had allowed a client to read."""
    application = get_application_model().objects.create(
        client_id="bench",
        client_type="public",
        authorization_grant_type="authorization-code",
        redirect_uris="http://127.0.0.1/",
    )
    Authorization.grant(
        user=user,
        application=application,
        resource=endpoint_url(),
        scopes=[READ],
        code="",
        limits={},
    )
    get_access_token_model().objects.create(
        user=user,
        application=application,
        token=ACCESS_TOKEN,
        scope=READ,
        resource=[endpoint_url()],
        expires=timezone.now() + timedelta(days=1),
    )


if __name__ == "__main__":
    print(prepare())
