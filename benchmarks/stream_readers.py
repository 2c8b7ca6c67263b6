"""People who may view books, each with a token. Prints a book they all see, and the tokens."""

from __future__ import annotations

import sys

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.contrib.auth.models import Permission  # noqa: E402

from benchmarks.streaming import first_book  # noqa: E402
from mcp_django.exposure.uris import object_uri  # noqa: E402
from mcp_django.models import PersonalToken  # noqa: E402
from mcp_django.principal import READ  # noqa: E402


def prepare(count: int) -> list[str]:
    users = get_user_model()._default_manager
    users.bulk_create(users.model(username=f"reader{n}", is_staff=True) for n in range(count))
    people = users.filter(username__startswith="reader", pk__gt=1)
    Permission.objects.get(codename="view_book").user_set.add(*people)
    return [PersonalToken.create(user=one, name="bench", scopes=[READ])[1] for one in people]


if __name__ == "__main__":
    print(object_uri("library.book", str(first_book().pk)))
    print("\n".join(prepare(int(sys.argv[1]))))
