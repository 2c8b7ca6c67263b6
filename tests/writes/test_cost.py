"""How often a call reads its record, and how far it walks: more says that it asks twice."""

from __future__ import annotations

import re

import pytest

from tests.costs import cost_of
from tests.workshop.models import Job, Part, Tag, Thing

#: How a transaction is begun and ended depends on the database.
TRANSACTION = re.compile("BEGIN|SAVEPOINT|RELEASE|COMMIT")
TEN = {"filters": {"title__startswith": "T", "tag__isnull": False}, "limit": 10}
NAME = {"values": {"name": "x"}}


@pytest.fixture
def keys(thing):
    tag = Tag.objects.first()
    Thing.objects.bulk_create([Thing(title=f"T{at}", tag=tag, number=at) for at in range(12)])
    job = Job.objects.create(tenant="b", name="old", tag=tag)
    return {"part": {"pk": Part.objects.first().pk}, "job": {"pk": job.pk}}


@pytest.mark.parametrize(
    # Calls are a tenth above what was measured: caches of a process are filled by other tests.
    ("tool", "model", "arguments", "reads", "statements", "calls"),
    [
        ("find_records", "thing", TEN, 1, 1, 500),
        # The object for code of the admin and for the version, and the answer.
        ("get_record", "part", {}, 2, 2, 450),
        ("get_record", "job", {}, 2, 2, 640),
        # The row that is locked, what the answer shows before and after, and the version. On
        # SQLite an UPDATE that changes nothing locks, and the others are of the admin itself.
        ("update_record", "part", NAME, 4, 7, 1300),
        # Nobody waits for a hidden row: it is looked for before it is locked, and after.
        ("update_record", "job", NAME, 6, 9, 1300),
    ],
)
def test_a_call_costs_so_much_and_no_more(
    client, configure, keys, tool, model, arguments, reads, statements, calls
):
    configure(KEEP_CHANGES=[])
    arguments = {"model": f"workshop.{model}", **keys.get(model, {}), **arguments}

    sent, walked = cost_of(client, tool, arguments)

    sent = [sql for sql in sent if not TRANSACTION.match(sql)]
    of_record = re.compile(rf"SELECT .*? FROM .workshop_{model}\W")
    assert sum(bool(of_record.match(sql)) for sql in sent) == reads
    assert len(sent) <= statements, "\n".join(sent)
    assert 0 < walked <= calls
