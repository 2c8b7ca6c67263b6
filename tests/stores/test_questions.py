"""Questions to clients, in every kind of store."""

from __future__ import annotations

import pytest

from mcp_django.stores.bounds import MOST_QUESTIONS
from mcp_django.stores.interface import Question, StoreFull

ANSWER = b'{"result": "\xc3\xa9"}'


@pytest.fixture
def ask(store):
    def put(id="q1", *, session="s1", owner="hub"):
        store.ask(Question(session=session, id=id, owner=owner))

    return put


def test_an_answer_reaches_whoever_asked_once(store, add_session, ask):
    add_session()
    ask()
    assert store.take_answer("q1") is None

    assert store.answer("s1", "q1", ANSWER)

    assert store.take_answer("q1") == ANSWER
    assert store.take_answer("q1") is None


def test_only_the_first_answer_counts(store, add_session, ask):
    add_session()
    ask()
    store.answer("s1", "q1", ANSWER)

    assert not store.answer("s1", "q1", b"another")

    assert store.take_answer("q1") == ANSWER
    assert not store.answer("s1", "q1", b"another")


@pytest.mark.parametrize("id", ["q2", "Q1", "", "q1 ", "\x00", "\ud800", "q" * 100_000])
def test_an_answer_to_what_was_never_asked_is_not_kept(store, add_session, ask, id):
    add_session()
    ask()

    assert not store.answer("s1", id, ANSWER)

    assert store.take_answer("q1") is None


def test_another_session_cannot_answer(store, add_session, ask):
    add_session("s1")
    add_session("s2")
    ask(session="s1")

    assert not store.answer("s2", "q1", ANSWER)

    assert store.answer("s1", "q1", ANSWER)


def test_a_question_that_was_withdrawn_is_not_open(store, add_session, ask):
    add_session()
    ask()

    store.withdraw("q1")
    store.withdraw("q1")

    assert not store.answer("s1", "q1", ANSWER)
    assert store.take_answer("q1") is None


def test_questions_end_with_their_session(store, add_session, ask):
    add_session()
    ask("q1")
    ask("q2")
    store.answer("s1", "q1", ANSWER)

    store.end_session("s1")

    assert store.take_answer("q1") is None
    assert not store.answer("s1", "q2", ANSWER)
    store.withdraw("q2")


def test_nobody_can_be_asked_without_a_session(store, ask):
    ask()

    assert not store.answer("s1", "q1", ANSWER)
    assert store.take_answer("q1") is None


def test_a_question_ends_with_the_process_that_asked(store, clock, add_session, ask):
    add_session()
    ask("q1", owner="dead")
    ask("q2", owner="alive")
    clock.pass_by(seconds=14)
    store.renew("alive")

    clock.pass_by(seconds=1)

    assert not store.answer("s1", "q1", ANSWER)
    assert store.answer("s1", "q2", ANSWER)


def test_a_question_is_open_for_an_hour_at_most(store, clock, add_session, ask):
    add_session()
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
        ask(f"q{number}")

    with pytest.raises(StoreFull):
        ask("more")

    assert not store.answer("s1", "more", ANSWER)
    ask("other", session="s2")
    store.answer("s1", "q0", ANSWER)
    ask("more")
    assert store.answer("s1", "more", ANSWER)


@pytest.mark.thorough
def test_questions_of_a_dead_process_leave_room(store, clock, add_session, ask):
    add_session()
    for number in range(MOST_QUESTIONS):
        ask(f"q{number}", owner="dead")
    clock.pass_by(seconds=15)

    ask("more")

    assert store.answer("s1", "more", ANSWER)
