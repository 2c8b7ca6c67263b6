"""Each habit of a client gets an answer that this client can use, over the real application."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from mcp_django.levels import Level
from mcp_django.models import ExposedModel
from tests.asgi import application
from tests.clients import CheckedClient
from tests.clients_as_they_are.habits import HABITS
from tests.docs.pages import ROOT, table

pytestmark = pytest.mark.django_db


def send(habit, token):
    """Send what the client sends, and return the answer."""
    client = CheckedClient(
        token=token, revision=habit.revision, application=application, path=habit.path
    )
    if habit.in_session:
        client.initialize()
    if habit.verb != "POST":
        return client.http(habit.verb, headers={**client.session_headers(), **habit.headers})
    message = client.message(habit.method, habit.params)
    headers = {**client.routing_headers(message), **habit.headers}
    members = (message | habit.members).items()
    return client.post(
        {name: value for name, value in members if value is not UNSET}, headers=headers
    )


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: f"{habit.client}: {habit.sends}"[:60])
def test_a_client_gets_what_it_can_use(habit, make_user):
    ExposedModel.objects.create(label="shop.order", level=Level.WRITE)
    boss = make_user("boss", is_staff=True, is_superuser=True)
    token = CheckedClient(user=boss).token
    if habit.after is not None:
        send(habit.after, token)

    answer = send(habit, token)

    headers = {name.lower(): value for name, value in answer.headers.items()}
    assert (answer.status, headers.get("content-type", "")) == (habit.status, habit.kind)
    lines = [f"{name}: {value}" for name, value in headers.items()]
    assert habit.proof in "\n".join([*lines, answer.body.decode()])


def test_the_page_about_clients_lists_each_habit():
    rows = [
        [habit.client, habit.version, habit.sends, habit.source, habit.gets] for habit in HABITS
    ]

    assert table(ROOT / "docs" / "reference" / "clients.md", "## What they send") == rows
