from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connections, transaction
from django.http import HttpRequest
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.exceptions import ToolError
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.questions.confirmations import issue, redeem
from mcp_django.models import SpentConfirmation
from mcp_django.principal import SCOPES, Principal
from tests.shop.models import Memo
from tests.waiting import PATIENCE

ARGUMENTS = {"model": "shop.order", "pks": [1, 2]}
CALL = {"tool": "delete_record", "arguments": ARGUMENTS, "digest": "two orders"}
AGAIN = (
    " Nothing was changed. Call delete_record again without `confirmation`: "
    "it shows what would happen and gives a new one."
)
INVALID = "This confirmation is not valid." + AGAIN


def rights_of(user, **attributes):
    principal = Principal(
        user=user, scopes=frozenset(SCOPES), method="personal_token", **attributes
    )
    return Rights(HttpRequest(), principal)


def refusal(rights, token, **call):
    with pytest.raises(ToolError) as refused:
        redeem(rights, token, **{**CALL, **call})
    return str(refused.value)


@pytest.fixture
def rights(staff):
    return rights_of(staff)


def test_a_confirmation_is_short_enough_for_a_model_to_repeat(db, rights):
    assert len(issue(rights, **CALL)) == 22


@pytest.mark.django_db
def test_what_was_confirmed_is_done_once(rights):
    token = issue(rights, **CALL)

    redeem(rights, token, **CALL)

    said = refusal(rights, token)
    assert said == (
        "This confirmation was used already. Nothing was changed. Call delete_record again "
        "without `confirmation`: it shows what would happen and gives a new one."
    )


@pytest.mark.django_db
def test_the_token_itself_and_the_order_of_arguments_make_no_difference(rights):
    token = issue(rights, **CALL)

    sent = {"confirmation": token, **dict(reversed(ARGUMENTS.items()))}
    redeem(rights, token, **{**CALL, "arguments": sent})

    assert SpentConfirmation.objects.count() == 1


@pytest.mark.django_db
def test_each_preview_gives_a_confirmation_of_its_own(rights):
    first, second = issue(rights, **CALL), issue(rights, **CALL)

    redeem(rights, first, **CALL)
    redeem(rights, second, **CALL)

    assert SpentConfirmation.objects.count() == 2


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"arguments": {**ARGUMENTS, "pks": [1, 2, 3]}}, "was given for another call."),
        ({"arguments": {**ARGUMENTS, "pks": ["1", "2"]}}, "was given for another call."),
        ({"arguments": {**ARGUMENTS, "force": None}}, "was given for another call."),
        ({"arguments": {}}, "was given for another call."),
    ],
)
def test_other_arguments_need_another_confirmation(rights, change, reason):
    token = issue(rights, **CALL)

    assert refusal(rights, token, **change) == f"This confirmation {reason}" + AGAIN
    redeem(rights, token, **CALL)


@pytest.mark.django_db
def test_another_tool_needs_another_confirmation(rights):
    token = issue(rights, **CALL)

    said = refusal(rights, token, tool="cancel_orders")

    assert said.startswith("This confirmation was given for another call.")
    assert "Call cancel_orders again without `confirmation`" in said


@pytest.mark.django_db
def test_what_looks_different_by_now_has_to_be_confirmed_again(rights):
    token = issue(rights, **CALL)

    said = refusal(rights, token, digest="three orders")

    assert said == "What this call would do is no longer what was shown." + AGAIN


@pytest.mark.django_db
def test_a_confirmation_is_good_for_ten_minutes(rights, monkeypatch):
    token = issue(rights, **CALL)
    now = time.time()

    monkeypatch.setattr(time, "time", lambda: now + 601)

    assert refusal(rights, token) == "This confirmation is too old." + AGAIN
    monkeypatch.setattr(time, "time", lambda: now + 598)
    redeem(rights, token, **CALL)


@pytest.mark.django_db
def test_a_confirmation_of_somebody_else_is_like_one_that_was_made_up(rights, make_user):
    token = issue(rights, **CALL)
    others = (
        rights_of(make_user("eve", is_staff=True)),
        rights_of(rights.principal.user, client="another program"),
        rights_of(rights.principal.user, server="another server"),
    )

    assert {refusal(other, token) for other in others} == {INVALID}
    redeem(rights, token, **CALL)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "token",
    [
        *(True, 1, None, "", "true", "yes", [], {}, "é", "a:b:c", "x" * 9999),
        *("x" * 22, "é" * 22, "=" * 22, "." * 22, "A" * 21 + "="),
    ],
)
def test_what_is_no_token_confirms_nothing(rights, token):
    assert refusal(rights, token) == INVALID
    assert not SpentConfirmation.objects.exists()


@pytest.mark.django_db
def test_a_token_with_any_character_changed_confirms_nothing(rights):
    token = issue(rights, **CALL)

    for at in range(len(token)):
        changed = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
        assert refusal(rights, changed).endswith(AGAIN)
    assert not SpentConfirmation.objects.exists()


@given(token=st.text())
def test_any_text_is_refused_in_the_same_words(token):
    nobody = rights_of(type("User", (), {"pk": None}))

    assert refusal(nobody, token) == INVALID


@pytest.mark.django_db
def test_confirmations_outlive_a_new_secret_key_as_long_as_the_old_one_is_known(rights, settings):
    token = issue(rights, **CALL)

    settings.SECRET_KEY = "another"
    assert refusal(rights, token) == INVALID
    settings.SECRET_KEY_FALLBACKS = ["not-a-secret"]
    redeem(rights, token, **CALL)

    assert SpentConfirmation.objects.count() == 1


@pytest.mark.django_db
def test_a_refusal_leaves_the_transaction_of_the_caller_alive(rights):
    token = issue(rights, **CALL)
    redeem(rights, token, **CALL)

    with transaction.atomic():
        refusal(rights, token)
        Memo.objects.create(code="after")

    assert Memo.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_change_that_rolls_back_leaves_its_confirmation_unspent(rights):
    token = issue(rights, **CALL)

    with transaction.atomic():
        redeem(rights, token, **CALL)
        transaction.set_rollback(True)

    redeem(rights, token, **CALL)


def race(rights, token, *, threads=8, fails=frozenset()):
    """What came of redeeming one token in threads that start at the same time.

    Those numbered in `fails` roll back what they have done.
    """
    start = Barrier(threads)

    def run(number):
        start.wait(PATIENCE)
        try:
            with transaction.atomic():
                redeem(rights, token, **CALL)
                Memo.objects.create(code=f"memo-{number}")
                if number in fails:
                    return transaction.set_rollback(True)
            return "done"
        except ToolError as error:
            return str(error)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads)))


@pytest.mark.django_db(transaction=True)
def test_of_many_calls_with_one_confirmation_at_the_same_time_one_does_its_work(rights):
    token = issue(rights, **CALL)

    outcomes = race(rights, token)

    assert sorted(set(outcomes)) == ["This confirmation was used already." + AGAIN, "done"]
    assert outcomes.count("done") == 1
    assert Memo.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_call_that_rolls_back_in_a_race_leaves_the_confirmation_to_another(rights):
    token = issue(rights, **CALL)

    outcomes = race(rights, token, threads=4, fails={0, 1})

    assert outcomes.count("done") == 1
    assert Memo.objects.count() == 1
