"""What a save costs its caller when changes are announced, and what it costs to tell a thousand.

python -m benchmarks.saves       # exits with 1 when a save costs more than LIMIT

The same saves with and without our receivers, in one process on one core. CPU, and not the clock:
first of the thread that saves, then with the thread that hands over.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.servers import SERVER_CORE, prepared

ROUNDS, SAVES = 15, 400
PRINCIPALS = 1000
#: Microseconds that announcing may add to a save.
LIMIT = 100


def one_record(books: list[Any]) -> None:
    for _ in books:
        books[0].save()


def many_records(books: list[Any]) -> None:
    for book in books:
        book.save()


def hidden_fields(books: list[Any]) -> None:
    for book in books:
        book.save(update_fields=["pages"])


def one_transaction(books: list[Any]) -> None:
    from django.db import transaction

    with transaction.atomic():
        many_records(books)


def spent(work: Callable[[list[Any]], None], books: list[Any]) -> tuple[float, float]:
    """CPU microseconds of a save: of its caller, and of the whole process."""
    from mcp_django.subscriptions.outbox import outbox

    caller, process = time.thread_time(), time.process_time()
    work(books)
    caller = time.thread_time() - caller
    outbox.flush()
    process = time.process_time() - process
    return caller * 1e6 / len(books), process * 1e6 / len(books)


def switch(*, is_on: bool) -> None:
    from django.db.models.signals import m2m_changed, post_delete, post_save

    from mcp_django.subscriptions import receivers

    if is_on:
        receivers.connect()
        return
    names = (("saved", post_save), ("deleted", post_delete), ("related", m2m_changed))
    for name, signal in names:
        signal.disconnect(dispatch_uid=f"mcp_django.subscriptions.{name}")


def compare() -> float:
    """Print the cost of each load. Returns the largest."""
    from benchmarks.library.models import Book
    from mcp_django.subscriptions.outbox import add_sink

    add_sink(lambda batch: None)
    books = list(Book.objects.all()[:SAVES])
    added = []
    for work in (one_record, many_records, hidden_fields, one_transaction):
        pairs = []
        for number in range(ROUNDS + 1):
            found = {}
            for is_on in (True, False) if number % 2 else (False, True):
                switch(is_on=is_on)
                found[is_on] = spent(work, books)
            if number:  # the first warms up
                pairs.append((found[True], found[False]))
        silent = statistics.median(one for _, (one, _) in pairs)
        caller, process = (
            statistics.median(on[at] - off[at] for on, off in pairs) for at in (0, 1)
        )
        added.append(caller)
        name = work.__name__.replace("_", " ")
        print(f"{name:16} {silent:5.0f} us, announced {caller:5.1f} more, all {process:6.1f} more")
    return max(added)


def tell_a_thousand() -> None:
    """Print the CPU of one event about one record for a thousand people."""
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Permission
    from django.test import RequestFactory

    from benchmarks.library.models import Book
    from mcp_django.exposure.permissions import Rights
    from mcp_django.exposure.uris import object_uri
    from mcp_django.principal import READ, Principal
    from mcp_django.subscriptions.admission import Existence, admit_all

    users = get_user_model()
    users.objects.bulk_create(
        users(username=f"reader{number}", is_staff=True) for number in range(PRINCIPALS)
    )
    readers = users.objects.filter(username__startswith="reader")
    Permission.objects.get(codename="view_book").user_set.set(readers)
    uri = object_uri("library.book", Book.objects.values_list("pk", flat=True)[0])
    people = [Principal(user=user, scopes=frozenset({READ}), method="bench") for user in readers]
    for name in ("cold", "warm"):
        existence = Existence()
        before = time.process_time()
        for principal in people:
            request = RequestFactory().get("/mcp")
            request.user = principal.user
            admit_all(Rights(request, principal), [uri], existence=existence)
        print(f"{PRINCIPALS} people, {name:4}  {time.process_time() - before:6.3f} s CPU")


def main() -> int:
    os.sched_setaffinity(0, {SERVER_CORE})
    with prepared() as (environment, _):
        os.environ.update(environment)
        import django

        django.setup()
        most = compare()
        switch(is_on=False)
        tell_a_thousand()
    return 0 if most <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
