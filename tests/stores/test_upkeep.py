"""Open streams and pruning, in every kind of store."""

from __future__ import annotations

from dataclasses import replace

import pytest


def test_a_stream_is_shown_as_it_is_and_as_it_becomes(store, show_stream):
    stream = show_stream(
        user="1", client="\x00\ud800 é", session="s1", topics=("django://é", "tools")
    )
    assert store.streams() == [stream]

    changed = replace(stream, topics=("a", "b"))
    store.show_stream(changed)

    assert store.streams() == [changed]


def test_streams_are_shown_newest_first_until_they_end_or_their_process_does(
    store, clock, show_stream
):
    show_stream("t1", owner="alive")
    show_stream("t2", owner="dead")
    clock.pass_by(seconds=5)
    show_stream("t3", owner="alive")
    show_stream("ended", owner="alive")
    clock.pass_by(seconds=10)

    store.hide_stream("ended")
    store.hide_stream("ended")

    assert [stream.key for stream in store.streams()] == ["t3", "t1"]


@pytest.fixture
def fill(store, add_session, open_log, show_stream, ask):
    """A session with a log, a question and subscriptions, and a stream beside it."""
    add_session("s1")
    open_log("l1")
    store.append("l1", [b"a"])
    ask("q1")
    store.subscribe("s1", "django://1", most=5)
    show_stream("t1")


@pytest.mark.usefixtures("fill")
def test_what_is_in_use_is_not_pruned(store, read):
    assert store.prune() == 0

    assert store.session("s1")
    assert store.subscriptions("s1") == {"django://1"}
    assert read() == [b"a"]
    assert len(store.streams()) == 1
    assert store.answer("s1", "q1", b"yes")


@pytest.mark.usefixtures("fill")
def test_an_idle_session_is_pruned_with_all_that_is_its_own(store, clock, add_session, open_log):
    clock.pass_by(minutes=20)
    add_session("s2")
    open_log("l2", session="s2")
    clock.pass_by(minutes=10)

    # The session, its log and its question, and the stream of a process that is gone.
    assert store.prune() == 4
    assert store.prune() == 0

    assert [session.key for session in store.sessions()] == ["s2"]
    assert store.append("l2", [b"a"]) == 1


def test_logs_that_ended_are_pruned_before_their_session(store, clock, session, open_log):
    open_log("l1")
    open_log("l2")
    store.append("l1", [b"a"], is_final=True)
    clock.pass_by(seconds=300)

    assert store.prune() == 1

    assert store.append("l2", [b"a"]) == 1


@pytest.mark.usefixtures("fill")
def test_what_a_dead_process_leaves_is_pruned_but_for_logs_that_clients_may_ask_for(store, clock):
    clock.pass_by(seconds=15)

    # The question and the stream.
    assert store.prune() == 2

    assert store.read("l1", session="s1", after=0).is_orphaned


def test_one_new_session_in_a_hundred_prunes(store, clock, dice, add_session):
    add_session("old")
    clock.pass_by(minutes=30)
    dice.next = 0.01
    add_session("s1")
    assert store.prune() == 1
    add_session("older")
    clock.pass_by(minutes=30)
    dice.next = 0.0099

    add_session("s2")

    assert store.prune() == 0
