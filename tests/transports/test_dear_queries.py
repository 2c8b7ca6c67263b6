"""Callers whose queries take as long as they may, beside a caller who reads one record."""

from __future__ import annotations

import asyncio
import time
from itertools import count
from statistics import median

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group, User

from mcp_django.levels import Level
from tests.clients import CheckedClient
from tests.databases import VENDOR
from tests.decisions import open_model
from tests.transports.wire import Connection

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.django_db(transaction=True),
    pytest.mark.database,
    pytest.mark.thorough,
]

#: The members of one group are counted for each of them: a hundred million.
MEMBERS = 10_000
DEAREST = {"model": "auth.user", "metrics": {"members": {"count": "groups__user"}}}
READS = 20
PAUSE = 0.05


def make_callers():
    for model in (User, Group):
        open_model(model, Level.READ)
    group = Group.objects.create(name="everybody")
    members = User.objects.bulk_create([User(username=f"n{n}") for n in range(MEMBERS)])
    User.groups.through.objects.bulk_create(
        [User.groups.through(user=user, group=group) for user in members]
    )
    people = [User.objects.create_superuser(name) for name in ("victim", "sam", "sid")]
    return [CheckedClient(user=user) for user in people], group.pk


async def seconds_of_reads(client, key):
    """The median of some reads, one after the other."""
    took = []
    for _ in range(READS):
        began = time.perf_counter()
        call = Connection.calling(client, "get_record", model="auth.group", pk=key)
        await call.whole()
        took.append(time.perf_counter() - began)
        assert '"name":"everybody"' in call.json["result"]["content"][0]["text"]
        await asyncio.sleep(PAUSE)
    return median(took)


async def attack(client, answers):
    """The dearest query, again as soon as it is over."""
    for _ in count():
        call = await Connection.calling(client, "aggregate_records", **DEAREST).whole()
        answers.append(call.json["result"])


@pytest.mark.parametrize("attackers", [1] if VENDOR == "sqlite" else [1, 2])
async def test_nobody_waits_for_the_dearest_query_of_somebody_else(
    fresh_lanes, configure, attackers
):
    configure(STATEMENT_TIMEOUT=1)
    (victim, *others), key = await sync_to_async(make_callers)()
    answers = []
    idle = await seconds_of_reads(victim, key)

    # As many at once as a lane has threads.
    attacks = [
        asyncio.create_task(attack(other, answers)) for other in others[:attackers] for _ in "1234"
    ]
    await asyncio.sleep(PAUSE)
    attacked = await seconds_of_reads(victim, key)
    for task in attacks:
        task.cancel()
    await asyncio.wait(attacks)

    assert answers
    assert all(answer["isError"] for answer in answers)
    assert attacked < 10 * idle
