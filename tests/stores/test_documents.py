"""What documents in a cache do where others are in the way."""

from __future__ import annotations

import pytest
from django.core.cache.backends.db import DatabaseCache
from django.core.cache.backends.locmem import LocMemCache
from django.db import OperationalError, connection, transaction

from mcp_django.protocol.errors import ProtocolError
from mcp_django.stores import documents
from mcp_django.stores.documents import Documents
from mcp_django.stores.sessions import Store
from tests.stores.conftest import COMMITS


@pytest.fixture
def documents_of(locmem):
    return Documents(lambda: locmem)


# Locks


@pytest.mark.parametrize("is_same_process", [True, False])
def test_a_lock_that_somebody_has_is_waited_for_but_not_for_long(
    documents_of, locmem, monkeypatch, caplog, is_same_process
):
    monkeypatch.setattr(documents, "PATIENCE", 0.05)
    others = documents_of if is_same_process else Documents(lambda: locmem)
    with (
        others.locked("x"),
        pytest.raises(ProtocolError, match=r"busy\. Try again later\.") as raised,
        documents_of.locked("x"),
    ):
        pass

    assert raised.value.status == 503
    assert "others are in the way" in caplog.text
    with documents_of.locked("x") as put:
        put("x", 1, 60)
    assert others.get("x") == 1


def test_who_had_a_lock_for_too_long_writes_nothing_and_leaves_it_to_others(
    documents_of, locmem, monkeypatch
):
    monkeypatch.setattr(documents, "LAST_OF_LOCK", documents.LOCK)

    with pytest.raises(ProtocolError, match="busy"), documents_of.locked("x") as put:
        put("x", 1, 60)

    assert documents_of.get("x") is None
    assert not documents_of.add("lock:x", 1, 60)


def test_the_lock_of_a_process_that_died_expires(documents_of, locmem):
    with documents_of.locked("x"):
        [left] = [at for key, at in locmem._expire_info.items() if "lock:x" in key]

    assert left is not None


# A database


class BusyCache(DatabaseCache):
    """Fails as Django's does when others write: with an error, or without a word."""

    def __init__(self, *failures):
        super().__init__("mcp_cache", {})
        self.failures = list(failures)

    def set(self, *args, **kwargs):
        failure = self.failures.pop(0) if self.failures else None
        if failure is None:
            super().set(*args, **kwargs)
        elif failure != "silence":
            raise failure


LOCKED = OperationalError("database is locked")


@COMMITS
@pytest.mark.parametrize("failures", [["silence"], [LOCKED, LOCKED], ["silence", LOCKED]])
def test_what_was_not_written_is_written_again(failures):
    cache = BusyCache(*failures)

    Documents(lambda: cache).put("x", {"a": b"\x00"}, 60)

    assert DatabaseCache("mcp_cache", {}).get("mcp:2:x") == {"a": b"\x00"}
    cache.clear()


@COMMITS
@pytest.mark.parametrize("gone", [OperationalError("no such host"), ConnectionError("Redis")])
def test_a_cache_that_is_gone_is_neither_asked_again_nor_said_to_be_busy(gone, caplog):
    cache = BusyCache(gone, LOCKED)

    with pytest.raises(ProtocolError, match=r"^Sessions cannot be used now") as raised:
        Documents(lambda: cache).put("x", 1, 60)

    assert (raised.value.status, raised.value.headers) == (503, (("Retry-After", "5"),))
    assert cache.failures == [LOCKED]
    assert f"The cache of sessions cannot be used: {gone!r}" in caplog.text


@COMMITS
@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("update_session", ["s1"]),
        ("end_session", ["s1"]),
        ("append", ["l1", [b"a"]]),
        ("subscribe", ["s1", "django://1"]),
    ],
)
def test_a_caller_inside_of_a_transaction_is_told(database, method, arguments):
    store = Store(lambda: database)
    options = {"most": 5} if method == "subscribe" else {}

    with transaction.atomic(), pytest.raises(RuntimeError, match="not written in a transaction"):
        getattr(store, method)(*arguments, **options)


@pytest.mark.django_db
def test_the_transaction_round_a_test_of_django_does_not_count(database):
    assert connection.in_atomic_block

    with Documents(lambda: database).locked("x") as put:
        put("x", 1, 60)

    assert database.get("mcp:2:x") == 1


# Costs


class CountingCache(LocMemCache):
    def __init__(self):
        super().__init__("counting", {"OPTIONS": {"MAX_ENTRIES": 1000}})
        self.operations = []


for operation in ("get", "get_many", "set", "add", "touch", "delete"):

    def counted(self, key, *args, operation=operation, **kwargs):
        self.operations.append(operation)
        if operation == "get_many":
            return {name: LocMemCache.get(self, name) for name in key if self.has_key(name)}
        return getattr(LocMemCache, operation)(self, key, *args, **kwargs)

    setattr(CountingCache, operation, counted)

#: What is done with a session, ten of its logs and ten of its questions, and what that costs.
LOCK, UNLOCK = "add", "delete"
COSTS = [
    (lambda store: store.session("s1"), ["get"]),
    (lambda store: store.subscriptions("s1"), ["get"]),
    # Within the minute after it was seen.
    (lambda store: store.see("s1"), ["get"]),
    (lambda store: store.append("l1", [b"a"] * 50), [LOCK, "get", "get", "set", UNLOCK]),
    (lambda store: store.read("l1", session="s1", after=0), ["get", "get", "get_many"]),
    (lambda store: store.renew("hub"), ["set"]),
]


@pytest.fixture
def cache(request):
    return CountingCache()


@pytest.mark.parametrize(("work", "operations"), COSTS)
def test_the_costs_do_not_grow(store, cache, session, open_log, ask, work, operations):
    for number in range(10):
        open_log(f"l{number}")
        ask(f"q{number}")
    cache.operations.clear()

    work(store)

    assert cache.operations == operations
