"""Each habit of a client gets an answer that this client can use, over the real application."""

from __future__ import annotations

import pytest

from mcp_django.levels import Level
from mcp_django.models import ExposedModel
from tests.clients import CheckedClient
from tests.clients_as_they_are.habits import HABITS, JSON, STREAM
from tests.docs.pages import ROOT, table

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: f"{habit.client}: {habit.sends}"[:60])
def test_a_client_gets_what_it_can_use(habit, make_user):
    ExposedModel.objects.create(label="shop.order", level=Level.WRITE)
    boss = make_user("boss", is_staff=True, is_superuser=True)
    client = CheckedClient(user=boss, revision=habit.revision)
    message = client.message(habit.method, {} if habit.params == [] else habit.params)
    if habit.params == []:
        message["params"] = []

    answer = client.post(message, headers={**client.routing_headers(message), **habit.headers})

    assert (answer.status, answer.headers["content-type"]) == (habit.status, habit.kind)
    assert habit.proof in answer.body.decode()


def test_the_page_about_clients_lists_each_habit():
    answers = {(200, JSON): "the answer", (200, STREAM): "the answer, as a stream of one event"}
    rows = [
        [
            habit.client,
            habit.sends,
            habit.source,
            answers.get((habit.status, habit.kind), f"{habit.status}"),
        ]
        for habit in HABITS
    ]

    assert table(ROOT / "docs" / "reference" / "clients.md", "## What they send") == rows
