from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction

from mcp_django.models import PersonalToken
from mcp_django.subscriptions.outbox import publish
from mcp_django.testing import Client, listening
from tests.changed import list_changed
from tests.shop.models import Order

pytestmark = pytest.mark.django_db
COLLECTION = "django://objects/shop.order"


@pytest.mark.parametrize("inline", [True, False])
def test_a_change_is_heard_of_in_every_revision(staff, revision, inline, transactional_db):
    order = Order.objects.create(number="1")
    uri = f"{COLLECTION}/{order.pk}"

    with Client(user=staff, revision=revision, inline=inline).listen(
        uri, lists=["tools"]
    ) as events:
        order.save()
        first = next(events)
        publish({list_changed("prompts")})
        publish({list_changed("tools")})

        assert [first, next(events)] == [uri, "tools"]


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_change_in_the_transaction_of_the_test_is_heard_of_by_who_sees_it_there(
    staff, revision, django_capture_on_commit_callbacks
):
    order = Order.objects.create(number="1")

    with Client(user=staff, revision=revision).listen(COLLECTION) as events:
        with django_capture_on_commit_callbacks(execute=True):
            order.save()

        assert transaction.get_connection().in_atomic_block
        assert next(events) == COLLECTION


@pytest.mark.asyncio
@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.django_db(transaction=True)
async def test_async_tests_wait_for_changes(staff, revision, inline):
    order = await Order.objects.acreate(number="1")
    client = await sync_to_async(Client)(user=staff, revision=revision, inline=inline)

    async with client.alisten(COLLECTION) as events:
        await order.asave()

        assert await anext(events) == COLLECTION


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(
    ("uri", "token", "sentence"),
    [("django://objects/shop.ledger", None, "HTTP 200"), (COLLECTION, "mcp_none", "HTTP 401")],
    ids=["unseen resource", "unknown token"],
)
def test_a_subscription_that_is_refused_fails(staff, revision, uri, token, sentence):
    client = Client(user=staff, revision=revision)
    client.token = token or client.token

    with pytest.raises(AssertionError, match=sentence), client.listen(uri):
        pytest.fail("It was not refused.")


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_changes_end_with_their_stream_and_fail_where_none_comes(staff, revision, monkeypatch):
    client = Client(user=staff, revision=revision)

    with client.listen(COLLECTION, lists=["tools"]) as events:
        PersonalToken.objects.get().revoke()
        ended = list(events)
    monkeypatch.setattr(listening, "PATIENCE", 0.01)
    silent = client.as_user(staff).listen(COLLECTION)
    with silent as events, pytest.raises(AssertionError, match="Nothing came within"):
        next(events)

    assert ended == []
