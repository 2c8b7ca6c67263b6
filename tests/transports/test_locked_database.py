"""Whoever reads is answered while somebody else holds the lock of the database, or of our rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

import pytest
from django.core.cache import caches
from django.db import connection, transaction
from django.utils import timezone

from mcp_django.models import PersonalToken
from mcp_django.protocol.revisions import Revision
from mcp_django.stores.sessions import get_store
from tests.served import SocketClient, served
from tests.waiting import PATIENCE, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.live, pytest.mark.thorough]
LEGACY = Revision.V2025_06_18


@pytest.fixture(scope="module")
def port(django_db_setup):
    """Of a server over the database of the tests."""
    with served("asgi", audit=False, session_cache="database") as port:
        yield port


def read(client):
    answer = client.call_tool("find_records", model="shop.order")
    assert not answer.is_error, answer.text


def test_reads_are_answered_while_others_hold_the_locks_for_which_new_sessions_wait(
    staff, port, configure
):
    caches["database"].clear()
    configure(SESSION_CACHE="database")
    connect = partial(SocketClient, port, user=staff)
    readers = [connect(), connect(), connect(revision=LEGACY), connect(revision=LEGACY)]
    beginners = [connect(revision=LEGACY) for _ in range(4)]
    for reader in readers[2:]:
        reader.initialize()
    long_ago = timezone.now() - timedelta(minutes=5)
    PersonalToken.objects.update(last_used_at=long_ago)
    store = get_store()
    for session in store.sessions():
        store.update_session(session.key, seen=long_ago)

    with ThreadPoolExecutor(4) as threads:
        with transaction.atomic():
            # On SQLite the transaction itself has the one lock.
            list(PersonalToken.objects.select_for_update())
            if connection.features.has_select_for_update:
                connection.cursor().execute("SELECT * FROM mcp_cache FOR UPDATE")
            begun = [threads.submit(beginner.initialize) for beginner in beginners]
            for reader in readers * 2:
                read(reader)
        for beginning in begun:
            beginning.result(timeout=PATIENCE)

    def all_noted():
        # A token is looked up once a second at most.
        for client in (*readers, *beginners):
            read(client)
        tokens = PersonalToken.objects.filter(last_used_at__lte=long_ago)
        seen = [session.seen for session in store.sessions()]
        return len(seen) == 6 and min(seen) > long_ago and not tokens.exists()

    wait_until(all_noted)
    assert len(store.sessions()) == 6
