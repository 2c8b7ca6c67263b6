"""Whoever reads is answered while somebody else holds the lock of the database, or of our rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connections, transaction
from django.utils import timezone

from mcp_django.models import PersonalToken, Session
from mcp_django.protocol.revisions import Revision
from tests.served import SocketClient, served
from tests.waiting import PATIENCE, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.live, pytest.mark.thorough]
LEGACY = Revision.V2025_06_18


@pytest.fixture(scope="module")
def port(django_db_setup):
    """Of a server over the database of the tests."""
    with served("asgi", audit=False) as port:
        yield port


@pytest.fixture
def connect(staff, port):
    return lambda **options: SocketClient(port, user=staff, **options)


@pytest.fixture
def elsewhere():
    """Runs something in another thread, with a connection of its own."""

    def close(job):
        try:
            return job()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as threads:
        yield lambda job: threads.submit(close, job)


def lock_all():
    """On SQLite the transaction itself has the one lock."""
    list(PersonalToken.objects.select_for_update())
    list(Session.objects.select_for_update())


def read(client):
    answer = client.call_tool("find_records", model="shop.order")
    assert not answer.is_error, answer.text


def test_reads_of_everybody_are_answered_while_others_hold_the_locks(connect):
    clients = [connect(), connect(), connect(revision=LEGACY), connect(revision=LEGACY)]
    for client in clients[2:]:
        client.initialize()
    long_ago = timezone.now() - timedelta(minutes=5)
    PersonalToken.objects.update(last_used_at=long_ago)
    Session.objects.update(seen=long_ago)

    with transaction.atomic():
        lock_all()
        for client in clients:
            read(client)
            read(client)

    def all_noted():
        # A token is looked up once a second at most.
        for client in clients:
            read(client)
        tokens = PersonalToken.objects.filter(last_used_at__lte=long_ago)
        return not (tokens.exists() or Session.objects.filter(seen__lte=long_ago).exists())

    wait_until(all_noted)


def test_who_begins_a_session_meanwhile_holds_up_nobody_who_reads(connect, elsewhere):
    reader = connect()
    beginners = [connect(revision=LEGACY) for _ in range(4)]
    reader.discover()

    with transaction.atomic():
        lock_all()
        begun = [elsewhere(beginner.initialize) for beginner in beginners]
        for _ in range(5):
            read(reader)

    for beginning in begun:
        beginning.result(timeout=PATIENCE)
    assert Session.objects.count() == 4
