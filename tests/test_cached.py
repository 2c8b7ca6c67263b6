from __future__ import annotations

from threading import Thread

import pytest

from mcp_django.cached import Cached
from tests.waiting import PATIENCE


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
