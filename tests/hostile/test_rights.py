"""Rules of the site that code of the site can get out of the way without meaning to."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from mcp_django.exceptions import QueryError
from mcp_django.exposure.query.arguments import FindRecords
from mcp_django.exposure.query.find import find_records
from mcp_django.testing import Client
from tests.nasty import models
from tests.nasty.site import caller, registry
from tests.waiting import PATIENCE

pytestmark = pytest.mark.django_db


@pytest.fixture
def orders():
    owner = models.Person.objects.create(username="boss")
    return [models.Order.objects.create(owner=owner, number=f"A{n}") for n in (1, 2, 3)]


SIGHTS = {
    "all": {},
    "no total": {"shown": {models.Order: ["id", "number"]}},
    "one row": {"narrow": {models.Order: lambda rows: rows.filter(number="A1")}},
    "no customers": {"may": lambda perm: "customer" not in perm},
    "one customer": {"narrow": {models.Customer: lambda rows: rows.filter(name="x")}},
}
CALLS = [
    {},
    {"fields": ["number"]},
    {"fields": ["number", "customer"], "order_by": ["-number"]},
    {"filters": {"number": "A1"}},
    {"filters": {"customer__name__isnull": True}, "limit": 2},
    {"order_by": ["total"]},
    {"search": "A"},
]


def answer(who, arguments):
    try:
        asked = FindRecords(model="nasty.order", **arguments)
        found = find_records(who, who.registry.exposures[models.Order], asked)
    except QueryError as refusal:
        return str(refusal)
    return found.encoded


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
def test_callers_of_different_rights_share_no_answers_in_threads(orders):
    expected = {
        (name, at): answer(caller(**sight, tables=registry()), call)
        for name, sight in SIGHTS.items()
        for at, call in enumerate(CALLS)
    }
    shared = registry()
    together = threading.Barrier(4)

    def ask(start):
        together.wait(timeout=PATIENCE)
        jobs = list(expected) * 3
        jobs = jobs[start:] + jobs[:start]
        try:
            return [
                (name, at)
                for name, at in jobs
                if answer(caller(**SIGHTS[name], tables=shared), CALLS[at]) != expected[name, at]
            ]
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        wrong = [one for found in threads.map(ask, (0, 11, 23, 31)) for one in found]

    assert len(set(expected.values())) > 10
    assert wrong == []


def test_a_model_that_nobody_exposes_answers_like_one_that_does_not_exist(staff):
    client = Client(user=staff)
    secret = ("shop.ledger", "auth.user", "mcp_django.personaltoken", "sessions.session")
    for tool in ("describe_model", "find_records"):
        said = {
            json.dumps(client.call_tool(tool, model=label).text.replace(label, ""))
            for label in (*secret, "no.model")
        }

        assert len(said) == 1
