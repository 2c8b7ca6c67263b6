"""Event logs and leases, in every kind of store."""

from __future__ import annotations

import pytest

from mcp_django.stores.bounds import MOST_BYTES, MOST_EVENTS, MOST_LOGS
from mcp_django.stores.interface import Event, Log, Page, StoreFull

BYTES = bytes(range(256)) * 3


def test_events_are_read_as_they_were_appended(store, add_session, open_log):
    add_session()
    open_log()

    assert store.append("l1", [b"a", BYTES]) == 2
    assert store.append("l1", [b"c"]) == 3

    assert store.read("l1", session="s1", after=0) == Page(
        events=[
            Event(number=1, data=b"a"),
            Event(number=2, data=BYTES),
            Event(number=3, data=b"c"),
        ],
        is_final=False,
        is_orphaned=False,
        has_gap=False,
    )


def test_a_client_that_comes_back_gets_what_it_missed(store, add_session, open_log, read):
    add_session()
    open_log()
    store.append("l1", [b"a", b"b", b"c"])

    assert read(after=2) == [b"c"]
    assert read(after=3) == []


@pytest.mark.parametrize("after", [4, 10**6, 2**63, 10**40])
def test_a_number_that_was_never_given_finds_nothing_and_is_no_gap(
    store, add_session, open_log, after
):
    add_session()
    open_log()
    store.append("l1", [b"a", b"b", b"c"])

    page = store.read("l1", session="s1", after=after)

    assert list(page.events) == []
    assert not page.has_gap


@pytest.mark.parametrize("after", [-1, -(10**40)])
def test_a_number_below_all_finds_everything(store, add_session, open_log, read, after):
    add_session()
    open_log()
    store.append("l1", [b"a"])

    assert read(after=after) == [b"a"]
    assert not store.read("l1", session="s1", after=after).has_gap


def test_a_log_is_found_by_its_own_session_only(store, add_session, open_log):
    add_session("s1")
    add_session("s2")
    open_log("l1", session="s1")

    assert store.read("l1", session="s2", after=0) is None
    assert store.read("l2", session="s1", after=0) is None
    assert store.read("l1", session="s1", after=0) is not None


def test_an_empty_log_ends_without_an_event(store, add_session, open_log):
    add_session()
    open_log()

    assert store.append("l1", [], is_final=True) == 0

    page = store.read("l1", session="s1", after=0)
    assert page.is_final
    assert list(page.events) == []


def test_a_final_log_takes_nothing_more(store, add_session, open_log, read):
    add_session()
    open_log()
    assert store.append("l1", [b"a", b"b"], is_final=True) == 2

    assert store.append("l1", [b"c"], is_final=True) == 2

    assert read() == [b"a", b"b"]


def test_a_log_that_is_not_there_takes_nothing(store, add_session, open_log):
    add_session()
    open_log()
    store.append("l1", [b"a"])
    store.end_session("s1")

    assert store.append("l1", [b"b"]) == 0
    assert store.append("l2", [b"b"]) == 0
    assert store.read("l1", session="s1", after=0) is None
    assert not store.close_orphan("l1", b"end")


def test_no_log_begins_without_a_session(store, open_log):
    open_log()

    assert store.append("l1", [b"a"]) == 0
    assert store.read("l1", session="s1", after=0) is None


def test_a_log_goes_with_its_idle_session(store, clock, add_session, open_log):
    add_session()
    open_log()
    store.append("l1", [b"a"])

    clock.pass_by(minutes=30)

    assert store.read("l1", session="s1", after=0) is None


def test_a_final_log_is_kept_for_five_minutes(store, clock, add_session, open_log, read):
    add_session()
    open_log()
    store.append("l1", [b"a"], is_final=True)
    clock.pass_by(seconds=299)
    assert read() == [b"a"]

    clock.pass_by(seconds=1)

    assert store.read("l1", session="s1", after=0) is None


def test_a_log_says_which_request_it_answers(store, add_session):
    add_session()
    store.open_log(Log(key="l1", session="s1", owner="hub", request='"\\u0000 é"'))
    store.open_log(Log(key="l2", session="s1", owner="hub"))

    assert store.read("l1", session="s1", after=0).request == '"\\u0000 é"'
    assert store.read("l2", session="s1", after=0).request == "null"


# Bounds


def test_a_log_keeps_so_many_events(store, add_session, open_log, read):
    add_session()
    open_log()
    events = [str(number).encode() for number in range(1, MOST_EVENTS + 11)]

    store.append("l1", events[:5])
    assert store.append("l1", events[5:]) == MOST_EVENTS + 10

    assert read() == events[10:]
    assert store.read("l1", session="s1", after=9).has_gap
    assert not store.read("l1", session="s1", after=10).has_gap
    assert store.append("l1", [b"one more"]) == MOST_EVENTS + 11
    assert store.read("l1", session="s1", after=10).has_gap


def test_a_log_keeps_so_many_bytes(store, add_session, open_log, read):
    add_session()
    open_log()
    quarter = b"x" * (MOST_BYTES // 4)

    store.append("l1", [quarter] * 4)
    assert len(read()) == 4
    store.append("l1", [b"small"])

    assert read() == [quarter] * 3 + [b"small"]
    assert store.read("l1", session="s1", after=0).has_gap


def test_the_last_event_stays_however_big(store, add_session, open_log, read):
    add_session()
    open_log()
    huge = b"x" * (MOST_BYTES + 1)

    store.append("l1", [b"small", huge])

    assert read() == [huge]
    store.append("l1", [b"next"])
    assert read() == [b"next"]


def test_a_session_with_many_logs_loses_the_oldest_that_has_ended(
    store, add_session, open_log, read
):
    add_session()
    for number in range(MOST_LOGS):
        open_log(f"l{number}")
    for number in (7, 5):
        store.append(f"l{number}", [b"end"], is_final=True)

    open_log("new")

    assert store.read("l5", session="s1", after=0) is None
    assert read("l7") == [b"end"]
    assert store.append("new", [b"a"]) == 1


def test_a_session_with_many_logs_loses_one_that_nobody_adds_to(
    store, clock, add_session, open_log
):
    add_session()
    open_log("alone", owner="dead")
    clock.pass_by(seconds=15)
    for number in range(MOST_LOGS - 1):
        open_log(f"l{number}")

    open_log("new")

    assert store.read("alone", session="s1", after=0) is None


def test_a_session_has_so_many_logs_that_go_on(store, add_session, open_log):
    add_session()
    for number in range(MOST_LOGS):
        open_log(f"l{number}")

    with pytest.raises(StoreFull):
        open_log("new")

    assert store.read("l0", session="s1", after=0) is not None
    assert store.read("new", session="s1", after=0) is None


# Leases


def test_a_log_is_orphaned_when_its_owner_has_been_silent_for_longer_than_its_lease(
    store, clock, add_session, open_log
):
    add_session()
    open_log()
    clock.pass_by(seconds=14)
    assert not store.read("l1", session="s1", after=0).is_orphaned

    clock.pass_by(seconds=1)

    assert store.read("l1", session="s1", after=0).is_orphaned


def test_the_lease_holds_for_all_logs_of_an_owner_that_renews_it(
    store, clock, add_session, open_log
):
    add_session()
    open_log("l1", owner="hub")
    open_log("l2", owner="hub")
    open_log("l3", owner="other")
    clock.pass_by(seconds=10)

    store.renew("hub")
    clock.pass_by(seconds=10)

    orphaned = [store.read(key, session="s1", after=0).is_orphaned for key in ("l1", "l2", "l3")]
    assert orphaned == [False, False, True]


def test_an_orphan_is_closed_once(store, clock, add_session, open_log, read):
    add_session()
    open_log()
    store.append("l1", [b"a"])
    assert not store.close_orphan("l1", b"lost")
    clock.pass_by(seconds=15)

    assert store.close_orphan("l1", b"lost")
    assert not store.close_orphan("l1", b"lost")

    assert read() == [b"a", b"lost"]
    page = store.read("l1", session="s1", after=2)
    assert (page.is_final, page.is_orphaned) == (True, False)


def test_an_owner_that_comes_back_too_late_adds_nothing(store, clock, add_session, open_log, read):
    add_session()
    open_log()
    clock.pass_by(seconds=15)
    store.close_orphan("l1", b"lost")

    store.renew("hub")

    assert store.append("l1", [b"late"]) == 1
    assert read() == [b"lost"]


def test_a_log_that_has_ended_is_no_orphan(store, clock, add_session, open_log):
    add_session()
    open_log()
    store.append("l1", [b"a"], is_final=True)

    clock.pass_by(seconds=15)

    assert not store.read("l1", session="s1", after=0).is_orphaned
    assert not store.close_orphan("l1", b"lost")
