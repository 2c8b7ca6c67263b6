"""What records of calls cost: the same calls with AUDIT on and off, in one process on one core.

python -m benchmarks.audit       # exits with 1 when a record is missing

Reads of single kinds, then 1,000 mixed calls of which 100 write. The CPU of the thread that writes
the records counts, and so does what it has left to do at the end.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import sys
import time
from typing import Any

from benchmarks.calls import KINDS, Kind
from benchmarks.in_process import CALLS, ROUNDS, call
from benchmarks.servers import SERVER_CORE, prepared

MIXED = 1000
TITLE = "Book that was renamed"


def rename(chance: random.Random) -> dict[str, Any]:
    return {"name": "rename_book", "arguments": {"pk": chance.randint(1, 100), "title": TITLE}}


WRITE = Kind(method="tools/call", params=rename, proof=b"renamed")


def mixed(number: int) -> Kind:
    if number % 10 == 0:
        return WRITE
    return KINDS[("get one", "page of 50", "resource", "50 tools", "get one")[number % 5]]


def offer_a_write() -> str:
    """A tool that writes, and a token that may call it."""
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Permission

    import mcp_django as mcp
    from benchmarks.library.models import Book
    from mcp_django.models import PersonalToken
    from mcp_django.principal import READ, WRITE

    @mcp.tool(permission="library.change_book", destructive=False)
    def rename_book(pk: int, title: str) -> str:
        """Give a book another title."""
        Book.objects.filter(pk=pk).update(title=title)
        return "renamed"

    user = get_user_model().objects.create_user("writer", is_staff=True)
    names = ["view_book", "view_author", "change_book"]
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    return PersonalToken.create(user=user, name="bench", scopes=[READ, WRITE])[1]


async def spent(application: Any, kinds: list[Kind], token: str) -> float:
    """CPU microseconds of one call, its record included."""
    from mcp_django.audit.records import records

    chance = random.Random(len(kinds))
    before = time.process_time()
    for kind in kinds:
        await call(application, kind, chance, token)
    while records.writer._waiting:  # noqa: ASYNC110  nobody tells
        await asyncio.sleep(0.2)
    return (time.process_time() - before) * 1e6 / len(kinds)


async def compare(application: Any, token: str) -> int:
    """Print the cost of each load. Returns how many calls were made with AUDIT on."""
    from django.conf import settings
    from django.test import override_settings

    loads = {
        name: [KINDS[name]] * (CALLS // KINDS[name].per)
        for name in ("50 tools", "get one", "page of 50")
    }
    loads["writes"] = [WRITE] * 100
    loads["mixed"] = [mixed(number) for number in range(MIXED)]
    recorded = 0
    for name, kinds in loads.items():
        pairs = []
        for number in range(ROUNDS + 1):
            found = {}
            for audit in (True, False) if number % 2 else (False, True):
                with override_settings(MCP_DJANGO={**settings.MCP_DJANGO, "AUDIT": audit}):
                    found[audit] = await spent(application, kinds, token)
                recorded += len(kinds) * audit
            if number:  # the first warms up
                pairs.append((found[True], found[False]))
        on, off = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(one / other for one, other in pairs)
        print(f"{name:11} with records {on:7.0f} us   without {off:7.0f} us   ratio {ratio:.3f}")
    return recorded


def main() -> int:
    os.sched_setaffinity(0, {SERVER_CORE})
    with prepared() as (environment, _):
        os.environ.update(environment)
        # Preparing and counting happen where no loop runs; settings change where one does.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
        from benchmarks import ours

        token = offer_a_write()
        made = asyncio.run(compare(ours.application, token))
        from mcp_django.audit.records import records
        from mcp_django.models import CallRecord

        rows, lost = CallRecord.objects.count(), records.writer.lost
    print(f"{made} calls, {rows} records, {lost} lost")
    return 0 if rows == made else 1


if __name__ == "__main__":
    sys.exit(main())
