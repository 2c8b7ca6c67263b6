"""The counts of a minute, in one process and in several that have one cache."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from django.core import mail
from django.core.cache.backends.locmem import LocMemCache

from mcp_django.auth import windows as module
from mcp_django.auth.windows import SharedCounts, Windows
from mcp_django.stores.last_used import uses
from tests.waiting import PATIENCE, wait_until


def test_the_counters_are_bounded_and_the_oldest_goes_first(clock):
    windows = Windows("calls", limit=lambda: 1, size=2, clock=clock)

    for key in "abc":
        windows.add(key)

    assert [windows.wait(key) for key in "abc"] == [None, 60, 60]


def test_threads_together_get_no_more_than_one_would(clock):
    windows = Windows("calls", limit=lambda: 50, clock=clock)

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(windows.take, ["key"] * 400))

    assert answers.count(None) == 50


@pytest.mark.parametrize(
    ("seconds", "wait"), [(0, 60), (59, 1), (60, None), (-1, 61), (-60, 120), (-61, None)]
)
def test_a_window_ends_with_its_minute_and_no_clock_that_is_set_back_a_little_begins_it_anew(
    clock, seconds, wait
):
    windows = Windows("calls", limit=lambda: 1, clock=clock)
    windows.take("key")

    clock.now += seconds

    assert windows.take("key") == wait


# Several processes


@pytest.fixture
def cache():
    return LocMemCache(uuid4().hex, {"OPTIONS": {"MAX_ENTRIES": 100_000}})


@pytest.fixture
def begin(cache, clock):
    """Begin to count as another process does. Exchanges are the test's to make."""

    def process(limit=50):
        shared = SharedCounts(lambda: cache)
        return Windows("calls", limit=lambda: limit, shared=shared, clock=clock)

    return process


def take(windows, times):
    return [windows.take("key") for _ in range(times)].count(None)


def exchange(*processes):
    for windows in processes:
        windows.shared.exchange()


def test_what_others_counted_is_missing_here_after_an_exchange(begin):
    one, two = begin(), begin()
    assert take(one, 20) + take(two, 20) == 40

    exchange(one, two, one, one)

    assert (take(one, 20), one.left("key"), two.left("key")) == (10, 0, 10)
    exchange(one, two)
    assert (take(one, 1), take(two, 1)) == (0, 0)
    assert two.wait("other") is None


def test_a_process_that_starts_anew_learns_what_was_counted_before(begin):
    before = begin()
    take(before, 30)
    exchange(before)

    anew = begin()
    take(anew, 1)
    exchange(anew)

    assert anew.left("key") == 19


def test_what_is_taken_back_is_taken_back_everywhere(begin):
    one, two = begin(), begin()
    one.add("key", 2.5)
    exchange(one)
    one.add("key", -1.5)
    two.add("key")

    exchange(one, two)

    assert two.left("key") == 48


def test_processes_that_exchange_at_once_lose_no_count(begin):
    processes = [begin(limit=1000) for _ in range(4)]

    def work(windows):
        for _ in range(25):
            windows.add("key")
            exchange(windows)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, processes))
    exchange(*processes)

    assert [windows.left("key") for windows in processes] == [900] * 4


def test_the_next_minute_begins_with_nothing_that_others_counted(begin, clock):
    one, two = begin(), begin()
    take(one, 30)
    exchange(one)

    clock.now += 60
    take(two, 1)
    exchange(two)

    assert two.left("key") == 49


def test_the_cache_holds_one_entry_with_so_many_keys_and_others_count_here(
    begin, cache, monkeypatch
):
    monkeypatch.setattr(module, "MOST_KEYS", 2)
    windows = begin(limit=2)
    for number in range(10):
        windows.add(f"key {number}")

    exchange(windows, windows)

    [document] = [cache.get(key.removeprefix(":1:")) for key in cache._cache]
    assert list(document.values()) == [1, 1]
    assert windows.left("key 9") == 1


def test_strangers_from_many_addresses_fill_no_document_of_the_users(begin, monkeypatch):
    monkeypatch.setattr(module, "MOST_KEYS", 2)
    one, two = begin(), begin()
    failures = Windows(
        "failures", limit=lambda: 1, shared=one.shared, clock=one.clock, is_of_strangers=True
    )
    for number in range(10):
        failures.add(f"192.0.2.{number}")
    exchange(one)

    take(one, 3)
    exchange(one, two)
    take(two, 1)
    exchange(two)

    assert two.left("key") == 46


def test_the_child_of_a_fork_does_not_count_again_what_its_parent_counted(begin):
    windows = begin()
    take(windows, 30)

    windows.shared.forget()
    exchange(windows)

    assert windows.left("key") == 50


# The thread


@pytest.fixture
def in_production(monkeypatch):
    """Exchange in the thread, and at once."""
    monkeypatch.setattr(module, "SHARED_AFTER", 0)
    monkeypatch.delattr(mail, "outbox")


def queue_is_empty():
    done = threading.Event()
    uses.queue("last", done.set)
    return done.wait(PATIENCE)


def test_a_process_that_runs_tests_asks_no_cache(begin, cache):
    take(begin(), 1)

    assert queue_is_empty()
    assert not cache._cache


@pytest.mark.usefixtures("in_production")
def test_a_cache_that_no_other_process_has_is_not_written(begin, cache):
    windows = begin()

    for _ in range(3):
        take(windows, 1)
        assert queue_is_empty()

    assert not cache._cache


@pytest.mark.usefixtures("in_production")
def test_where_the_cache_is_away_the_process_counts_for_itself_and_says_so_once(clock, caplog):
    asked = []

    def make():
        asked.append("asked")
        raise ConnectionError("the cache is away")

    windows = Windows("calls", limit=lambda: 5, shared=SharedCounts(make), clock=clock)
    for _ in range(3):
        windows.add("key")
        assert queue_is_empty()

    assert take(windows, 10) == 2
    wait_until(lambda: len(asked) >= 3)
    assert caplog.text.count("Each process counts for itself at the moment: the cache is") == 1
