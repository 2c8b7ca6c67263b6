"""What only the store in Redis has to care about."""

from __future__ import annotations

import socket
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from mcp_django.signing import digest_of

pytestmark = pytest.mark.needs("redis", "channels_redis")


@pytest.fixture
def store(redis):
    return redis


@pytest.fixture
def at(configure):
    """A store at an address."""

    def make(url):
        from mcp_django.stores.redis import RedisStore

        configure(STORE_URL=url)
        return RedisStore()

    return make


def seconds_left(store):
    """By key, without the prefix; -1 where it stays for ever."""
    keys = [key.decode() for key in store.client.scan_iter(f"{store.prefix}*")]
    return {key.removeprefix(store.prefix): store.client.ttl(key) for key in keys}


#: Sessions of the principal whose they all are.
THEIRS = f"principal:{digest_of('default/user:1/')}"


@pytest.fixture
def filled(filled, store, open_log):
    """With a stream that ended, and no other beside it."""
    open_log("l2")
    store.append("l2", [b"a"], is_final=True)
    store.hide_stream("t1")


@pytest.mark.usefixtures("filled")
def test_all_that_is_kept_for_a_session_expires_with_it(store):
    left = seconds_left(store)

    # The set of all sessions stays, and is pruned.
    assert left.pop("sessions") == -1
    assert left.pop("lease:hub") in range(10, 16)
    assert {key for key, seconds in left.items() if seconds in range(290, 302)} == {
        "log:l2",
        "events:l2",
    }
    assert THEIRS in left
    assert len(left) == 10
    assert all(0 < seconds <= 3601 for seconds in left.values())


@pytest.mark.usefixtures("filled")
def test_use_puts_the_end_off_but_for_streams_that_ended(store, clock):
    for key in seconds_left(store):
        store.client.expire(f"{store.prefix}{key}", 200)
    clock.pass_by(minutes=1)

    store.see("s1")

    left = seconds_left(store)
    put_off = {key for key, seconds in left.items() if seconds > 200}
    assert put_off == {
        "session:s1",
        "subscriptions:s1",
        "logs:s1",
        "questions:s1",
        "log:l1",
        "events:l1",
        THEIRS,
    }


@pytest.mark.usefixtures("filled")
def test_pruning_clears_up_after_what_has_expired(store):
    store.client.delete(f"{store.prefix}log:l1", f"{store.prefix}events:l1")
    assert store.prune() == 0
    assert store.client.lrange(f"{store.prefix}logs:s1", 0, -1) == [b"l2"]
    store.client.delete(f"{store.prefix}session:s1")

    store.prune()

    # Both go by themselves.
    assert seconds_left(store).keys() == {"lease:hub", THEIRS}


@pytest.mark.parametrize(("url", "word"), [("", "STORE_URL"), ("http://127.0.0.1", "scheme")])
def test_an_address_that_is_none_is_a_mistake_in_the_settings(at, url, word):
    with pytest.raises(ImproperlyConfigured, match=word):
        at(url)


@pytest.mark.thorough
def test_a_redis_that_hangs_is_an_error(at):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        store = at(f"redis://127.0.0.1:{mute.getsockname()[1]}/0")

        with pytest.raises(Exception, match=r"(?i)timeout"):
            store.session("s1")

        store.client.close()


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("use_tz", "now", "created"),
    [
        (False, datetime(2026, 1, 1), datetime(2026, 1, 1)),
        (True, datetime(2026, 1, 1, 1, tzinfo=BERLIN), datetime(2026, 1, 1, tzinfo=UTC)),
    ],
)
def test_times_are_those_of_the_site_whatever_the_zone_of_the_clock_and_of_the_caller(
    store, clock, add_session, settings, use_tz, now, created
):
    settings.USE_TZ, clock.now = use_tz, now
    add_session()

    with timezone.override("Asia/Tokyo"):
        session = store.session("s1")

    assert session.created == created
