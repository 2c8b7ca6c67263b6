"""Questions to clients, in every kind of store."""

from __future__ import annotations

import pytest

from mcp_django.stores.bounds import MOST_QUESTIONS
from mcp_django.stores.interface import StoreFull

ANSWER = b'{"result": "\xc3\xa9"}'


def test_the_first_answer_reaches_whoever_asked_once(store, session, ask):
    ask()
    assert store.take_answer("q1") is None

    assert store.answer("s1", "q1", ANSWER)
    assert not store.answer("s1", "q1", b"another")

    assert store.take_answer("q1") == ANSWER
    assert store.take_answer("q1") is None
    assert not store.answer("s1", "q1", b"another")


@pytest.mark.parametrize("id", ["q2", "Q1", "", "q1 ", "\x00", "\ud800", "q" * 100_000])
def test_an_answer_to_what_was_never_asked_is_not_kept(store, session, ask, id):
    ask()

    assert not store.answer("s1", id, ANSWER)

    assert store.take_answer("q1") is None


@pytest.mark.parametrize("gone", ["no session", "another session", "withdrawn", "ended", "dead"])
def test_a_question_that_is_not_open_takes_no_answer(store, clock, add_session, ask, gone):
    if gone != "no session":
        add_session("s1")
    add_session("s2")
    ask(session="s1")
    if gone == "withdrawn":
        store.withdraw("q1")
        store.withdraw("q1")
    if gone == "ended":
        store.end_session("s1")
    if gone == "dead":
        clock.pass_by(seconds=15)

    assert not store.answer("s2" if gone == "another session" else "s1", "q1", ANSWER)

    assert store.take_answer("q1") is None


def test_an_answer_that_nobody_took_ends_with_its_session(store, session, ask):
    ask()
    store.answer("s1", "q1", ANSWER)

    store.end_session("s1")

    assert store.take_answer("q1") is None
    store.withdraw("q1")


def test_a_question_is_open_for_an_hour_at_most_while_its_process_lives(
    store, clock, session, ask
):
    ask("q1")
    clock.pass_by(seconds=1)
    ask("q2")
    for seconds in (1200, 1200, 1199):
        clock.pass_by(seconds=seconds)
        store.see("s1")
        store.renew("hub")

    assert not store.answer("s1", "q1", ANSWER)
    assert store.answer("s1", "q2", ANSWER)


@pytest.mark.thorough
def test_a_session_has_so_many_open_questions(store, clock, add_session, ask):
    add_session("s1")
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
