"""What every kind of store promises."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mcp_django.stores import sessions
from mcp_django.stores.sessions import (
    MOST_BYTES,
    MOST_EVENTS,
    MOST_LOGS,
    MOST_QUESTIONS,
    Event,
    OpenStream,
    Page,
    StoreFull,
)

HOSTILE = {
    "name": "\x00' OR 1=1 \ud800 \U0001f600",
    "version": "x" * 5000,
    "deep": [[{"a": None}]],
}
BYTES = bytes(range(256)) * 3
ANSWER = b'{"result": "\xc3\xa9"}'


def keys_of(records):
    return [record.key for record in records]


# What is gone


def end(store, clock):
    store.answer("s1", "q1", ANSWER)
    assert store.end_session("s1")
    assert store.append("l1", [b"b"]) == store.append("l2", [b"b"]) == 0


def forget(store, clock):
    clock.pass_by(minutes=30)


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("number", "leave"), [(1, end), (1, forget), (2, lambda store, clock: None)]
)
def test_of_a_session_that_is_gone_nothing_is_left_and_nothing_comes_back(
    store, clock, add_session, number, leave
):
    session, log, question = f"s{number}", f"l{number}", f"q{number}"
    leave(store, clock)

    store.see(session)
    store.update_session(session, is_initialized=True)
    store.unsubscribe(session, "django://1")
    store.withdraw("unknown")

    assert store.session(session) is None
    assert session not in keys_of(store.sessions())
    assert store.subscriptions(session) == frozenset()
    assert not store.subscribe(session, "django://2", most=5)
    assert store.read(log, session=session, after=0) is None
    assert not store.answer(session, question, ANSWER)
    assert store.take_answer(question) is None
    assert not store.end_session(session)
    if leave is end:
        # Nothing is its successor's.
        add_session("s1")
        assert store.subscriptions("s1") == frozenset()


# Sessions


def test_a_session_is_found_by_its_key_as_it_was_added(store, add_session):
    added = add_session(
        client=HOSTILE, capabilities={"roots": {"listChanged": True}}, user="1", log_level="error"
    )

    assert store.session("s1") == added
    assert store.session("") is None


@pytest.mark.parametrize(("changes", "seconds"), [({}, 1800), ({"SESSION_IDLE": 90}, 90)])
def test_use_is_written_once_a_minute_and_keeps_a_session_that_else_is_gone(
    store, clock, session, configure, changes, seconds
):
    configure(**changes)
    clock.pass_by(seconds=59)
    store.see("s1")
    assert store.session("s1").seen == session.seen
    clock.pass_by(seconds=1)
    for _ in range(5):
        store.see("s1")
        assert store.session("s1").seen == clock()
        clock.pass_by(seconds=seconds - 1)

    assert store.session("s1")
    clock.pass_by(seconds=1)

    assert store.session("s1") is None


def test_what_a_handshake_agrees_on_is_kept_with_what_was_there_before(store, add_session):
    before = add_session(revision="2024-11-05", log_level="error")
    store.subscribe("s1", "django://site", most=1)
    agreed = {"revision": "2025-11-25", "client": HOSTILE, "capabilities": {"roots": {}}}

    store.update_session("s1", **agreed)
    store.update_session("s1", is_initialized=True)
    store.update_session("s1", log_level="warning")

    changed = {**agreed, "is_initialized": True, "log_level": "warning"}
    assert store.session("s1") == replace(before, **changed)
    assert store.subscriptions("s1") == {"django://site"}


def test_subscriptions_are_the_sessions_own_by_case_and_of_any_length(store, add_session):
    add_session("s1")
    add_session("s2")
    uris = {"django://a", "django://A", "django://É", "django://" + "é" * 4000}

    for uri in uris:
        assert store.subscribe("s1", uri, most=5)

    assert store.subscriptions("s1") == uris
    assert store.subscriptions("s2") == frozenset()


@pytest.mark.parametrize(
    ("user", "others"), [("1", ()), ("", ("x1", "x2"))], ids=["user", "anonymous"]
)
def test_with_one_session_too_many_the_one_goes_that_was_not_heard_of_for_longest(
    store, clock, add_session, monkeypatch, user, others
):
    """Of anonymous callers those count together whose keys begin alike."""
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 3)
    for key in (*others, "a1", "a2", "a3"):
        add_session(key, user=user)
        clock.pass_by(minutes=2)
    store.see("a1")
    store.subscribe("a2", "test://b", most=9)

    add_session("a4", user=user)

    # Newest first.
    assert keys_of(store.sessions()) == ["a4", "a3", "a1", *reversed(others)]
    assert store.subscriptions("a2") == frozenset()


def test_sessions_of_others_and_those_that_are_over_do_not_count(
    store, clock, add_session, monkeypatch
):
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 3)
    add_session("old", user="1")
    clock.pass_by(minutes=31)
    add_session("other", user="2", principal="default/user:2/")
    add_session("ended", user="1")
    store.end_session("ended")

    for key in ("a", "b", "c"):
        add_session(key, user="1")

    assert {*keys_of(store.sessions())} == {"other", "a", "b", "c"}


# Event logs


def test_events_are_read_as_they_were_appended_and_by_no_other_session(
    store, session, add_session
):
    add_session("s2")
    store.open_log("l1", session="s1", owner="hub", request='"\\u0000 é"')

    assert store.append("l1", [b"a", BYTES]) == 2
    assert store.append("l1", [b"c"]) == 3

    assert store.read("l1", session="s1", after=0) == Page(
        events=[
            Event(number=1, data=b"a"),
            Event(number=2, data=BYTES),
            Event(number=3, data=b"c"),
        ],
        request='"\\u0000 é"',
        is_final=False,
        is_orphaned=False,
        has_gap=False,
    )
    assert store.read("l1", session="s2", after=0) is None


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


@pytest.mark.parametrize("events", [[], [b"a", b"b"]])
def test_a_final_log_takes_nothing_more_and_is_kept_for_five_minutes(
    store, clock, log, read, events
):
    assert store.append("l1", events, is_final=True) == len(events)
    assert store.append("l1", [b"c"], is_final=True) == len(events)

    clock.pass_by(seconds=299)
    assert read() == events
    assert store.read("l1", session="s1", after=0).is_final
    clock.pass_by(seconds=1)

    assert store.read("l1", session="s1", after=0) is None


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
    for key, owner in {"l1": "hub", "l2": "hub", "l3": "other"}.items():
        open_log(key, owner=owner)

    def orphaned():
        pages = [store.read(key, session="s1", after=0) for key in ("l1", "l2", "l3")]
        return [page.is_orphaned for page in pages]

    clock.pass_by(seconds=14)
    assert orphaned() == [False, False, False]
    store.renew("hub")
    clock.pass_by(seconds=1)
    assert orphaned() == [False, False, True]


def test_an_orphan_is_closed_once_and_its_owner_comes_back_too_late(
    store, clock, log, read, open_log
):
    open_log("ended")
    store.append("ended", [b"a"], is_final=True)
    store.append("l1", [b"a"])

    def close(key):
        return store.append(key, [b"lost"], is_final=True, if_orphan=True)

    assert close("l1") == 1
    clock.pass_by(seconds=15)

    assert [close(key) for key in ("l1", "l1", "ended")] == [2, 2, 1]
    store.renew("hub")
    assert store.append("l1", [b"late"]) == 2

    assert read() == [b"a", b"lost"]
    pages = [store.read(key, session="s1", after=0) for key in ("l1", "ended")]
    assert [(page.is_final, page.is_orphaned) for page in pages] == [(True, False)] * 2


# Questions


def test_the_first_answer_reaches_whoever_asked_once(store, session, ask):
    ask()
    assert store.take_answer("q1") is None

    assert store.answer("s1", "q1", ANSWER)
    assert not store.answer("s1", "q1", b"another")

    assert store.take_answer("q1") == ANSWER
    assert store.take_answer("q1") is None
    assert not store.answer("s1", "q1", b"another")


def withdraw(store, clock):
    store.withdraw("q1")
    store.withdraw("q1")


def die(store, clock):
    clock.pass_by(seconds=15)


@pytest.mark.parametrize(
    ("session_key", "key", "happen"),
    [
        *(
            ("s1", key, lambda store, clock: None)
            for key in ("q2", "Q1", "", "q1 ", "\x00", "\ud800", "q" * 100_000)
        ),
        ("s2", "q1", lambda store, clock: None),
        ("s1", "q1", withdraw),
        ("s1", "q1", die),
    ],
)
def test_a_question_that_is_not_open_takes_no_answer(
    store, clock, session, add_session, ask, session_key, key, happen
):
    add_session("s2")
    ask()
    happen(store, clock)

    assert not store.answer(session_key, key, ANSWER)

    assert store.take_answer("q1") is None


@pytest.mark.thorough
def test_a_session_has_so_many_open_questions(store, clock, session, add_session, ask):
    add_session("s2")
    for number in range(MOST_QUESTIONS):
        ask(f"dead{number}", owner="dead")
    clock.pass_by(seconds=15)
    for number in range(MOST_QUESTIONS):
        ask(f"q{number}")

    with pytest.raises(StoreFull):
        ask("more")

    assert not store.answer("s1", "more", ANSWER)
    ask("other", session="s2")
    store.answer("s1", "q0", ANSWER)
    ask("more")
    assert store.answer("s1", "more", ANSWER)


# Open streams


def test_streams_are_listed_as_they_become_newest_first_until_they_end(
    store, other, clock, show_stream
):
    first = show_stream("t1", user="1", client="\x00\ud800 é", session="s1", topics=("tools",))
    assert store.streams() == [first]
    first = replace(first, topics=("django://é", "b"))
    store.show_stream(first)
    clock.pass_by(seconds=5)
    last = show_stream("t3")
    show_stream("ended")

    store.hide_stream("ended")
    store.hide_stream("ended")
    store.renew("hub")

    assert store.streams() == other.streams() == [last, first]
    store.hide_stream("t1")
    store.hide_stream("t3")
    assert store.streams() == other.streams() == []


def test_of_another_process_streams_are_listed_while_it_lives(store, other, clock, show_stream):
    mine = show_stream("t1", owner="mine")
    store.renew("mine")
    theirs = OpenStream(**{**vars(mine), "key": "t2", "owner": "theirs"})
    other.show_stream(theirs)
    assert store.streams() == [mine]
    other.renew("theirs")
    clock.pass_by(seconds=14)
    store.renew("mine")

    assert store.streams() == [mine, theirs]
    assert other.streams() == [theirs, mine]
    clock.pass_by(seconds=1)
    assert store.streams() == [mine]
