from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, transaction

from mcp_django.exceptions import ToolError
from mcp_django.exposure.questions.idempotency import KEPT, answer_of, once, prune_promises
from mcp_django.models import IdempotentAnswer, SpentConfirmation
from mcp_django.principal import Principal
from mcp_django.stores import transactions
from tests.exposure.races import elsewhere, together
from tests.library.models import Author

pytestmark = pytest.mark.database


def caller(client="claude"):
    return Principal(user=AnonymousUser(), scopes=frozenset(), method="test", client=client)


def create(name="Ann", *, key="k1", principal=None, tool="create_record", arguments=None):
    def work():
        made = Author.objects.create(name=name)
        return {"pk": made.pk, "price": Decimal("1.50"), "at": datetime(2026, 1, 1, tzinfo=UTC)}

    return once(
        principal or caller(),
        tool=tool,
        key=key,
        arguments={"name": name} if arguments is None else arguments,
        work=work,
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    "other",
    [{"key": "k2"}, {"tool": "run_action"}, {"principal": caller("cursor")},
     {"principal": caller("c" * 500)}],
)  # fmt: skip
def test_another_key_tool_or_caller_is_another_call(other):
    create()

    create(**other)

    assert Author.objects.count() == 2


@pytest.mark.django_db
@pytest.mark.parametrize("fault", [ToolError("No."), IntegrityError("of the work")])
def test_work_that_fails_leaves_no_key_and_may_be_tried_again(fault):
    def fail():
        Author.objects.create(name="half done")
        raise fault

    with pytest.raises(type(fault), match=str(fault)):
        once(caller(), tool="create_record", key="k1", arguments={"name": "Ann"}, work=fail)

    assert not IdempotentAnswer.objects.exists()
    assert not Author.objects.exists()
    assert create()["pk"]


@pytest.mark.django_db
@pytest.mark.parametrize("answer", [None, False, 0, [], "", {"a": [None]}])
def test_any_answer_is_kept(answer):
    def answered():
        return once(caller(), tool="t", key="k", arguments={}, work=lambda: answer)

    assert answered() == answer
    assert answered() == answer
    assert IdempotentAnswer.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    "key", ["", "x" * 65, "a\x00", "a\nb", "\ud800", "\u00e9", None, 7, ["k"]]
)
def test_what_is_no_key_is_refused_before_anything_is_done(key):
    with pytest.raises(ToolError, match="must be a text of 1 to 64 ASCII characters"):
        create(key=key)

    assert not Author.objects.exists()


def test_an_answer_that_was_pruned_at_this_moment_is_asked_for_again():
    with pytest.raises(ToolError, match="Send it again"):
        answer_of(None, "digest", rights="")


# Many at once: see tests/writes/test_races.py, too


@pytest.mark.django_db(transaction=True)
def test_where_the_first_fails_while_the_second_waits_the_second_does_the_work():
    def work(number):
        def first_fails():
            if number == 0:
                raise ToolError("No.")
            return Author.objects.create(name="Ann").pk

        return once(caller(), tool="t", key="k", arguments={}, work=first_fails)

    answers = together(work)

    assert isinstance(answers[0], (ToolError, int))
    assert Author.objects.get().pk == answers[1]


@pytest.mark.django_db(transaction=True)
def test_who_waits_too_long_for_the_first_is_told_to_send_the_call_again():
    def impatient():
        with pytest.raises(ToolError, match="Send the same call again"):
            create()

    with transaction.atomic():
        create()
        elsewhere(impatient)


# Forgotten in the end


@pytest.mark.django_db
def test_answers_and_spent_confirmations_go_when_nobody_can_use_them_any_more(monkeypatch):
    monkeypatch.setattr(transactions, "MOST_DELETED", 2)
    now = datetime(2026, 1, 31, tzinfo=UTC)
    for number in range(5):
        create(key=f"k{number}")
        SpentConfirmation.objects.create(
            digest=f"d{number}", expires_at=now - timedelta(seconds=1)
        )
    IdempotentAnswer.objects.update(created_at=now - KEPT - timedelta(seconds=1))
    IdempotentAnswer.objects.filter(key="k4").update(created_at=now - KEPT)
    SpentConfirmation.objects.filter(digest="d4").update(expires_at=now)

    assert prune_promises(now) == 8

    assert IdempotentAnswer.objects.get().key == "k4"
    assert SpentConfirmation.objects.get().digest == "d4"
    assert prune_promises(now) == 0
