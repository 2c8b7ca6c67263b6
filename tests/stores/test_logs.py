"""Event logs and leases, in every kind of store."""

from __future__ import annotations

import pytest

from mcp_django.stores.bounds import MOST_BYTES, MOST_EVENTS, MOST_LOGS
from mcp_django.stores.interface import Event, Log, Page, StoreFull

BYTES = bytes(range(256)) * 3


def test_events_are_read_as_they_were_appended(store, log):
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


@pytest.mark.parametrize(
    ("after", "missed"),
    [
        (2, [b"c"]),
        *((number, []) for number in (3, 4, 2**63, 10**40)),
        *((number, [b"a", b"b", b"c"]) for number in (-1, -(10**40))),
    ],
)
def test_a_client_that_comes_back_gets_what_it_missed(store, log, after, missed):
    store.append("l1", [b"a", b"b", b"c"])

    page = store.read("l1", session="s1", after=after)

    assert [event.data for event in page.events] == missed
    assert not page.has_gap


@pytest.mark.parametrize("gone", ["unknown", "ended", "idle"])
def test_a_log_that_is_not_there_takes_and_tells_nothing(
    store, clock, add_session, open_log, gone
):
    if gone != "unknown":
        add_session()
    open_log()
    store.append("l1", [b"a"])
    if gone == "ended":
        store.end_session("s1")
    if gone == "idle":
        clock.pass_by(minutes=30)

    assert store.read("l1", session="s1", after=0) is None
    assert store.append("l2", [b"b"]) == 0
    if gone != "idle":
        assert store.append("l1", [b"b"]) == 0
        assert not store.close_orphan("l1", b"end")


def test_a_log_is_found_by_its_own_session_only(store, add_session, open_log):
    add_session("s1")
    add_session("s2")
    open_log("l1", session="s1")

    assert store.read("l1", session="s2", after=0) is None
    assert store.read("l2", session="s1", after=0) is None


@pytest.mark.parametrize("events", [[], [b"a", b"b"]])
def test_a_final_log_takes_nothing_more(store, log, read, events):
    assert store.append("l1", events, is_final=True) == len(events)

    assert store.append("l1", [b"c"], is_final=True) == len(events)

    assert read() == events
    assert store.read("l1", session="s1", after=0).is_final


def test_a_final_log_is_kept_for_five_minutes(store, clock, log, read):
    store.append("l1", [b"a"], is_final=True)
    clock.pass_by(seconds=299)
    assert read() == [b"a"]

    clock.pass_by(seconds=1)

    assert store.read("l1", session="s1", after=0) is None


def test_a_log_says_which_request_it_answers(store, session):
    store.open_log(Log(key="l1", session="s1", owner="hub", request='"\\u0000 é"'))

    assert store.read("l1", session="s1", after=0).request == '"\\u0000 é"'


# Bounds


def test_a_log_keeps_so_many_events(store, log, read):
    events = [str(number).encode() for number in range(1, MOST_EVENTS + 11)]

    store.append("l1", events[:5])
    assert store.append("l1", events[5:]) == MOST_EVENTS + 10

    assert read() == events[10:]
    assert store.read("l1", session="s1", after=9).has_gap
    assert not store.read("l1", session="s1", after=10).has_gap


QUARTER, HUGE = b"x" * (MOST_BYTES // 4), b"x" * (MOST_BYTES + 1)


@pytest.mark.parametrize(
    ("events", "kept"),
    [
        ([QUARTER] * 4, [QUARTER] * 4),
        ([*[QUARTER] * 4, b"small"], [*[QUARTER] * 3, b"small"]),
        # The last one stays, however big.
        ([b"small", HUGE], [HUGE]),
        ([HUGE, b"next"], [b"next"]),
    ],
    ids=["full", "one more", "huge", "after the huge one"],
)
def test_a_log_keeps_so_many_bytes(store, log, read, events, kept):
    for event in events:
        store.append("l1", [event])

    assert read() == kept
    assert store.read("l1", session="s1", after=0).has_gap is (kept != events)


def test_a_session_with_many_logs_loses_the_oldest_that_has_ended(store, session, open_log, read):
    for number in range(MOST_LOGS):
        open_log(f"l{number}")
    for number in (7, 5):
        store.append(f"l{number}", [b"end"], is_final=True)

    open_log("new")

    assert store.read("l5", session="s1", after=0) is None
    assert read("l7") == [b"end"]
    assert store.append("new", [b"a"]) == 1


def test_a_session_with_many_logs_loses_one_that_nobody_adds_to_and_no_other(
    store, clock, session, open_log
):
    open_log("alone", owner="dead")
    clock.pass_by(seconds=15)
    for number in range(MOST_LOGS):
        open_log(f"l{number}")

    with pytest.raises(StoreFull):
        open_log("new")

    pages = {key: store.read(key, session="s1", after=0) for key in ("alone", "l0", "new")}
    assert [key for key, page in pages.items() if page is not None] == ["l0"]


# Leases


def test_the_lease_holds_for_all_logs_of_an_owner_that_renews_it_in_time(
    store, clock, session, open_log
):
    open_log("l1", owner="hub")
    open_log("l2", owner="hub")
    open_log("l3", owner="other")

    def orphaned():
        pages = [store.read(key, session="s1", after=0) for key in ("l1", "l2", "l3")]
        return [page.is_orphaned for page in pages]

    clock.pass_by(seconds=14)
    assert orphaned() == [False, False, False]
    store.renew("hub")
    clock.pass_by(seconds=1)
    assert orphaned() == [False, False, True]


def test_an_orphan_is_closed_once_and_its_owner_comes_back_too_late(store, clock, log, read):
    store.append("l1", [b"a"])
    assert not store.close_orphan("l1", b"lost")
    clock.pass_by(seconds=15)

    assert store.close_orphan("l1", b"lost")
    assert not store.close_orphan("l1", b"lost")
    store.renew("hub")
    assert store.append("l1", [b"late"]) == 2

    assert read() == [b"a", b"lost"]
    page = store.read("l1", session="s1", after=2)
    assert (page.is_final, page.is_orphaned) == (True, False)


def test_a_log_that_has_ended_is_no_orphan(store, clock, log):
    store.append("l1", [b"a"], is_final=True)

    clock.pass_by(seconds=15)

    assert not store.read("l1", session="s1", after=0).is_orphaned
    assert not store.close_orphan("l1", b"lost")
