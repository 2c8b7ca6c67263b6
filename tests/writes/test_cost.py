"""How often a call reads the record that it is about, and how far it walks.

Each figure is what the call needs today, with a margin for calls of functions. If a change makes
one of them larger, something is asked twice.
"""

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
def pk(request, thing):
    """The key of a record of the model that a test names."""
    tag = Tag.objects.first()
    Thing.objects.bulk_create([Thing(title=f"T{at}", tag=tag, number=at) for at in range(12)])
    Job.objects.create(tenant="b", name="old", tag=tag)
    return {"thing": thing.pk, "part": Part.objects.first().pk, "job": Job.objects.get().pk}


@pytest.mark.parametrize(
    ("tool", "model", "arguments", "reads", "statements"),
    [
        ("find_records", "thing", TEN, 1, 1),
        # The object for code of the admin and for the version, and the answer.
        ("get_record", "part", {}, 2, 2),
        ("get_record", "job", {}, 2, 2),
        # The row that is locked, what the answer shows before and after, and the version. On
        # SQLite an UPDATE that changes nothing locks, and the others are of the admin itself.
        ("update_record", "part", NAME, 4, 7),
        # Nobody waits for a hidden row: it is looked for before it is locked, and after.
        ("update_record", "job", NAME, 6, 9),
    ],
)
def test_a_call_reads_its_record_so_often_and_no_more(
    client, pk, tool, model, arguments, reads, statements
):
    named = {} if tool == "find_records" else {"pk": pk[model]}

    sent, _ = cost_of(client, tool, {"model": f"workshop.{model}", **named, **arguments})

    sent = [sql for sql in sent if not TRANSACTION.match(sql)]
    assert len(sent) <= statements, "\n".join(sent)
    begin = re.compile(rf"SELECT .*? FROM .workshop_{model}\W")
    assert sum(bool(begin.match(sql)) for sql in sent) == reads


@pytest.mark.parametrize(
    ("tool", "model", "arguments", "most"),
    [
        ("find_records", "thing", TEN, 460),
        ("get_record", "part", {}, 410),
        ("update_record", "part", NAME, 1180),
    ],
)
def test_a_call_walks_through_so_many_functions_of_ours(client, pk, tool, model, arguments, most):
    named = {} if tool == "find_records" else {"pk": pk[model]}

    _, calls = cost_of(client, tool, {"model": f"workshop.{model}", **named, **arguments})

    assert 0 < calls <= most
