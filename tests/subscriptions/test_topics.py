"""The one spelling of what a subscription is about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.exposure.paths import spell
from mcp_django.exposure.uris import object_uri
from mcp_django.subscriptions.topics import object_topic, topic_of
from tests.nasty.models import Odd, Seat, Tricky
from tests.shop.models import Order

ORDER_5 = "django://objects/shop.order/5"


@pytest.mark.parametrize(
    ("uri", "topic"),
    [
        ("django://site", "django://site"),
        ("django://site?x=1", "django://site"),
        ("django://models/Shop.Order", "django://models/shop.order"),
        ("django://objects/Shop.Order/5", ORDER_5),
        ("django://objects/shop%2Eorder/%35", ORDER_5),
        ("django://objects/shop.order/0005", ORDER_5),
        ("django://objects/shop.order?status=paid&status=new", "django://objects/shop.order"),
        ("django://files/shop.order/05/scan", ORDER_5),
        ("django://objects/nasty.seat/01/2", "django://objects/nasty.seat/1/2"),
        ("django://objects/nasty.seat/01%2F2", "django://objects/nasty.seat/1/2"),
        ("django://objects/nasty.tricky/a%2fb", "django://objects/nasty.tricky/a%2Fb"),
        ("django://objects/nasty.rushorder/05", "django://objects/nasty.rushorder/5"),
        # A key that cannot be one stays as it is.
        ("django://objects/Shop.Order/x%20y", "django://objects/shop.order/x%20y"),
        ("django://objects/No.Model/05", "django://objects/no.model/05"),
        ("django://objects/nodot/05", "django://objects/nodot/05"),
        ("django://objects/nasty.seat/1", "django://objects/nasty.seat/1"),
        ("django://objects/nasty.odd/explode", "django://objects/nasty.odd/explode"),
        # What is no thing of ours is its own topic.
        ("shop://reports/2026", "shop://reports/2026"),
        ("https://example.com/A", "https://example.com/A"),
        ("django://nothing/x", "django://nothing/x"),
        ("django://files/shop.order/scan", "django://files/shop.order/scan"),
        ("django://objects/shop.order/%zz", "django://objects/shop.order/%zz"),
        ("django://site#part", "django://site#part"),
        ("", ""),
    ],
)
def test_every_spelling_of_a_uri_has_one_topic(uri, topic):
    assert topic_of(uri) == topic


@given(st.text())
def test_any_text_has_a_topic_that_is_its_own_topic(text):
    for uri in (text, f"django://{text}", f"django://objects/{text}"):
        assert topic_of(topic_of(uri)) == topic_of(uri)


def test_a_record_has_the_topic_that_its_uri_has_whatever_code_assigned():
    assert object_topic(Order, [5]) == object_topic(Order, ["05"]) == ORDER_5
    assert object_topic(Seat, [1, "2"]) == topic_of("django://objects/nasty.seat/1/2")
    assert object_topic(Tricky, ["a/b"]) == topic_of(object_uri("nasty.tricky", "a/b"))
    assert object_topic(Odd, ["w"]) == topic_of("django://objects/nasty.odd/w")
    assert object_topic(Order, ["x"]) == "django://objects/shop.order/x"


def test_equal_values_are_spelled_alike():
    east = timezone(timedelta(hours=2))

    assert spell(Decimal("5.00")) == spell(Decimal("5")) == "5"
    assert spell(Decimal("500")) == "500"
    assert spell(Decimal("nan")) == "NaN"
    assert spell(datetime(2026, 1, 1, 12, tzinfo=east)) == spell(
        datetime(2026, 1, 1, 10, tzinfo=UTC)
    )
    assert spell(datetime(2026, 1, 1, 12)) == "2026-01-01 12:00:00"
