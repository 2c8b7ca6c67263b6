from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.conf import settings
from django.core.cache import caches
from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache

from mcp_django.stores.sessions import OpenStream, Session, Store

CALLER = {"server": "default", "principal": "default/user:1/"}
START = datetime(2026, 1, 1, tzinfo=UTC if settings.USE_TZ else None)


def make_session(key, *, now, **fields):
    said = {**CALLER, "transport": "streamable_http", "revision": "2025-06-18", **fields}
    return Session(key=key, created=now, seen=now, **said)


class Clock:
    now = START

    def __call__(self):
        return self.now

    def pass_by(self, **time):
        self.now += timedelta(**time)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def decisions_are_known():
    """Stores ask for none, and these tests have only the tables of this package."""


@pytest.fixture
def locmem():
    return LocMemCache(uuid4().hex, {"OPTIONS": {"MAX_ENTRIES": 100_000}})


@pytest.fixture
def database():
    """The cache in the database, which no test empties by itself."""
    caches["database"].clear()
    return caches["database"]


@pytest.fixture
def redis():
    """A cache with keys of its own."""
    params = {**settings.CACHES["redis"], "KEY_PREFIX": f"test_{uuid4()}"}
    cache = RedisCache(params["LOCATION"], params)
    yield cache
    client = cache._cache.get_client(write=True)
    for key in client.scan_iter(f"{cache.key_prefix}*", count=1000):
        client.delete(key)
    client.connection_pool.disconnect()


#: Only our tables are emptied after a test: to empty those of all apps takes PostgreSQL seconds.
COMMITS = pytest.mark.django_db(transaction=True, available_apps=["mcp_django"])
#: Every kind, for the suite that holds for all.
KINDS = [
    "locmem",
    pytest.param("database", marks=COMMITS),
    pytest.param("redis", marks=pytest.mark.needs("redis", "channels_redis")),
]


@pytest.fixture(params=KINDS)
def cache(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def store(cache, clock):
    return Store(lambda: cache, clock=clock)


@pytest.fixture
def other(cache, clock):
    """What another process has."""
    return Store(lambda: cache, clock=clock)


@pytest.fixture
def add_session(store, clock):
    def add(key="s1", **fields):
        session = make_session(key, now=clock(), **fields)
        store.add_session(session)
        return session

    return add


@pytest.fixture
def open_log(store):
    def begin(key="l1", *, session="s1", owner="hub"):
        store.open_log(key, session=session, owner=owner)

    return begin


@pytest.fixture
def session(add_session):
    return add_session()


@pytest.fixture
def log(session, open_log):
    return open_log()


@pytest.fixture
def read(store):
    """What a client that comes back after an event is told: the data of events."""

    def since(key="l1", *, session="s1", after=0):
        return [event.data for event in store.read(key, session=session, after=after).events]

    return since


@pytest.fixture
def ask(store):
    def put(id="q1", *, session="s1", owner="hub"):
        store.ask(session, id, owner=owner)

    return put


@pytest.fixture
def show_stream(store, clock):
    def show(key="t1", **fields):
        said = {**CALLER, "owner": "hub", "kind": "listen", "revision": "2026-07-28", **fields}
        stream = OpenStream(key=key, opened=clock(), **said)
        store.show_stream(stream)
        return stream

    return show


@pytest.fixture
def filled(store, add_session, open_log, ask, show_stream):
    """A session with a log, a question and a subscription, and a stream beside it."""
    add_session("s1")
    open_log("l1")
    store.append("l1", [b"a"])
    ask("q1")
    store.subscribe("s1", "django://1", most=5)
    show_stream("t1")
    store.renew("hub")
