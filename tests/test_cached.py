from __future__ import annotations

from threading import Thread

import pytest

from mcp_django.cached import Cached
from tests.waiting import PATIENCE


def test_a_value_is_made_once_for_the_same_sources():
    cached: Cached[list[int]] = Cached()

    first = cached.get("a", 1, make=lambda before: [])

    assert cached.get("a", 1, make=lambda before: []) is first
    assert cached.get("a", 2, make=lambda before: []) is not first


def test_each_key_has_its_own_value():
    cached: Cached[str] = Cached()

    cached.get(1, key="one", make=lambda before: "value of one")
    cached.get(2, key="two", make=lambda before: "value of two")

    assert cached.known(1, key="one") == "value of one"
    assert cached.known(1, key="two") is None
    assert cached.known(1) is None


def test_what_is_stale_is_given_to_make_and_is_the_latest():
    cached: Cached[list[int]] = Cached()
    cached.get(1, make=lambda before: [1])

    assert cached.known(2) is None
    assert cached.latest() == [1]
    assert cached.get(2, make=lambda before: [*(before or ()), 2]) == [1, 2]


def test_what_make_raises_leaves_what_was_there():
    cached: Cached[int] = Cached()
    cached.get(1, make=lambda before: 1)

    with pytest.raises(ZeroDivisionError):
        cached.get(2, make=lambda before: 1 // 0)

    assert cached.known(1) == 1


def test_a_thread_never_waits_for_another_that_makes_the_same_value():
    cached: Cached[str] = Cached()

    def make(before):
        other = Thread(target=cached.get, args=(1,), kwargs={"make": lambda before: "other"})
        other.start()
        other.join(timeout=PATIENCE)
        assert cached.known(1) == "other"
        return "last"

    assert cached.get(1, make=make) == "last"
    assert cached.known(1) == "last"
