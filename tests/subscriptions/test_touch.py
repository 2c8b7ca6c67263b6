"""`mcp.touch`, where Django sends no signal."""

from __future__ import annotations

import pytest

import mcp_django as mcp
from mcp_django.exposure.uris import SITE
from mcp_django.subscriptions.outbox import add_sink, remove_sink
from mcp_django.subscriptions.topics import Change
from tests.nasty.models import Order as NastyOrder
from tests.nasty.models import Person, RushOrder, Seat
from tests.shop.models import Ledger, Memo, Order
from tests.waiting import PATIENCE

pytestmark = pytest.mark.django_db

MEMOS = "django://objects/shop.memo"


def memos(count):
    return Memo.objects.bulk_create(Memo(text="x", code=f"c{number}") for number in range(count))


@pytest.mark.parametrize("is_saved", [True, False])
def test_an_object_is_announced_as_a_save_would_and_without_a_key_as_its_collection(
    heard, committed, is_saved
):
    memo = Memo.objects.create(text="x", code="x") if is_saved else Memo(text="x")

    with committed():
        mcp.touch(memo)

    records = {Change(topic=f"{MEMOS}/{memo.pk}")} if is_saved else set()
    assert heard.changes == {Change(topic=MEMOS), *records}


def test_flush_returns_when_what_was_announced_is_handed_over(committed, request):
    batches = []
    add_sink(batches.append)
    request.addfinalizer(lambda: remove_sink(batches.append))
    with committed():
        mcp.touch("django://objects/shop.memo")

    is_done = mcp.flush(timeout=PATIENCE)

    assert is_done
    assert Change(topic=MEMOS) in frozenset().union(*batches)


@pytest.mark.parametrize(
    "rows",
    [
        Memo.objects.filter,
        lambda: Memo.objects,
        lambda: Memo.objects.order_by("pk")[:3],
        lambda: Memo.objects.values("text"),
        lambda: Memo.objects.filter(code="c0").union(Memo.objects.exclude(code="c0")),
    ],
    ids=["queryset", "manager", "sliced", "values", "combined"],
)
def test_a_queryset_is_announced_by_the_keys_that_it_has_now(heard, committed, rows):
    keys = [memo.pk for memo in memos(3)]

    with committed():
        mcp.touch(rows())
        Memo.objects.all().delete()

    assert {f"{MEMOS}/{key}" for key in keys} | {MEMOS} <= heard.topics


def test_more_records_than_can_be_named_are_any_of_the_model(heard, committed, monkeypatch):
    monkeypatch.setattr("mcp_django.subscriptions.receivers.MOST_RECORDS", 2)
    memos(3)

    with committed():
        mcp.touch(Memo.objects.all())

    assert heard.changes == {Change(topic=MEMOS, is_whole=True)}


def test_a_model_is_its_collection_every_record_and_how_many_there_are(heard, committed):
    with committed():
        mcp.touch(Memo)
        assert not heard.changes

    assert heard.changes == {
        Change(topic=MEMOS, is_whole=True),
        Change(topic=SITE, model="shop.memo"),
    }


@pytest.mark.parametrize(
    ("uri", "topics"),
    [
        (f"{MEMOS}/007", {f"{MEMOS}/7", MEMOS}),
        (MEMOS, {MEMOS}),
        (
            "django://objects/no.model/1",
            {"django://objects/no.model/1", "django://objects/no.model"},
        ),
        ("django://objects/nodot", {"django://objects/nodot"}),
        ("django://site", {SITE}),
        ("shop://reports/2026", {"shop://reports/2026"}),
    ],
)
def test_a_uri_is_announced_in_its_one_spelling(heard, committed, uri, topics):
    with committed():
        mcp.touch(uri)
        assert not heard.changes

    assert heard.topics == topics


def test_composite_keys_and_children_are_named_whole(heard, committed, expose):
    expose(Seat, "hall number")
    expose(RushOrder, "number")
    expose(NastyOrder, "number")
    Seat.objects.create(hall=1, number=2)
    rush = RushOrder.objects.create(
        owner=Person.objects.create(username="x"), number="R", courier="z"
    )

    with committed():
        mcp.touch(Seat.objects.all(), rush)

    assert {
        "django://objects/nasty.seat/1/2",
        f"django://objects/nasty.rushorder/{rush.pk}",
        f"django://objects/nasty.order/{rush.pk}",
    } <= heard.topics


def test_what_nobody_exposes_is_announced_to_nobody(heard, committed):
    with committed():
        mcp.touch(Ledger.objects.create(amount=1), Ledger, Ledger.objects.all())

    assert not heard.changes


@pytest.mark.parametrize("thing", [None, 5, "", object(), Memo._meta, [Memo], b"django://site"])
def test_anything_else_is_a_type_error_before_anything_is_announced(heard, committed, thing):
    with committed(), pytest.raises(TypeError, match="touch"):
        mcp.touch(Order, thing)

    assert not heard.changes
