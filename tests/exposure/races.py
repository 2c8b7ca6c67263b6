"""Two threads that do the same at the same moment, each with a connection of its own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from django.db import connection, connections

from tests.databases import VENDOR
from tests.waiting import PATIENCE

#: Without it a database waits for a lock as long as tests would have to.
IMPATIENT = {
    "sqlite": "PRAGMA busy_timeout = 0",
    "postgresql": "SET lock_timeout = '50ms'",
    "mariadb": "SET SESSION innodb_lock_wait_timeout = 1",
}


def together(work, *, count=2):
    """What `work(number)` answers in each thread, or the exception that it raised."""
    barrier = threading.Barrier(count)

    def run(number):
        try:
            barrier.wait(PATIENCE)
            return work(number)
        except Exception as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(run, range(count)))


def elsewhere(work):
    """Run something in another thread, with a connection of its own that waits for nobody."""

    def run():
        with connection.cursor() as cursor:
            cursor.execute(IMPATIENT[VENDOR])
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(run).result(PATIENCE)
