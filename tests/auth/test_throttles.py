from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.test import RequestFactory

from mcp_django.auth.throttles import Windows, client_address, retry_after
from mcp_django.principal import Principal


def principal(user):
    return Principal(user=user, scopes=frozenset(), method="x")


def test_a_caller_has_so_many_calls_a_minute_and_waiting_is_not_prolonged(settings, clock):
    settings.MCP_DJANGO = {"CALLS_PER_MINUTE": 2}
    alice, bob, anybody = map(principal, (User(pk=1), User(pk=2), AnonymousUser()))

    first = retry_after(alice)
    clock.now += 15
    answers = [first, *(retry_after(alice) for _ in range(3))]
    others = [retry_after(bob), retry_after(anybody)]
    clock.now += 45

    assert answers == [None, None, 45, 45]
    assert others == [None, None]
    assert retry_after(alice) is None


def test_the_counters_are_bounded_and_the_oldest_goes_first(clock):
    windows = Windows(limit=lambda: 1, size=2, clock=clock)

    for key in "abc":
        windows.add(key)

    assert len(windows) == 2
    assert windows.wait("a") is None
    assert windows.wait("c") == 60


def test_threads_together_get_no_more_than_one_would(clock):
    windows = Windows(limit=lambda: 50, clock=clock)

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(windows.take, ["key"] * 400))

    assert answers.count(None) == 50


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("unix:", "unix:"),
        ("x" * 8000, "x" * 64),
    ],
)
def test_addresses_of_one_host_count_as_one(address, counted):
    assert client_address(RequestFactory().get("/", REMOTE_ADDR=address)) == counted
