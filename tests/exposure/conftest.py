from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace

import pytest

from tests.depot.models import Parcel
from tests.nasty import models
from tests.services import is_there

# It imports what a site without extras has not.
collect_ignore = [] if is_there("drf") else ["functions/test_drf.py"]
PAYLOAD = {"color": "red", "sizes": [1, 2]}


@pytest.fixture
def shop(db):
    """Four orders: A1 of Anne with most of what there is, A2 of Bert, A3 and R1 of nobody."""
    a, b = models.Tenant.objects.create(name="a"), models.Tenant.objects.create(name="b")
    boss = models.Person.objects.create(username="boss", password="pbkdf2$abc", salary=9)
    anne = models.Customer.objects.create(
        tenant=a, name="Anne", country="FR", account_manager=boss
    )
    bert = models.Customer.objects.create(tenant=b, name="Bert", country="DE")
    make = models.Order.objects.create
    a1 = make(
        owner=boss, customer=anne, number="A1", status="paid", total="10.00", quantity=1,
        api_token="t1", placed_at=datetime(2026, 1, 31, 23, 30, tzinfo=UTC),
    )  # fmt: skip
    a2 = make(owner=boss, customer=bert, number="A2", total="20.00", quantity=2, payload=PAYLOAD)
    a3 = make(owner=boss, customer=None, number="A3", status="paid", quantity=3)
    red, blue = (models.Tag.objects.create(slug=slug) for slug in ("red", "blue"))
    a1.tags.add(red, blue)
    a2.tags.add(blue)
    for order, sku in ((a1, "x"), (a1, "y"), (a2, "x")):
        models.Line.objects.create(order=order, sku=sku, amount=Decimal(5), cost=1)
    models.Watch.objects.create(order=a1, person=boss)
    models.Note.objects.create(target=a1, text="hello")
    models.Tricky.objects.create(key="a/b", year=2020, contains="abc", order=a1)
    r1 = models.RushOrder.objects.create(owner=boss, number="R1", courier="zed")
    return SimpleNamespace(
        a=a, b=b, boss=boss, anne=anne, bert=bert, a1=a1, a2=a2, a3=a3, r1=r1, red=red, blue=blue
    )


@pytest.fixture
def parcel(db):
    """A parcel in the depot, which waits."""
    return Parcel.objects.create(number="n1")
