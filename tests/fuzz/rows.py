"""The rows of the shop, and the people who ask."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.core.files.base import ContentFile
from django.db import connections
from django.test.utils import setup_databases, setup_test_environment, teardown_databases

from mcp_django.models import PersonalToken
from mcp_django.principal import READ, SCOPES
from tests.exposure.stored import make_prompt
from tests.fuzz.models import Customer, Label, Line, Memo, Order, Payment, Review, Vault
from tests.library.models import Author, Book, Copy
from tests.shop.models import Customer as ShopCustomer
from tests.shop.models import Memo as ShopMemo
from tests.shop.models import Order as ShopOrder
from tests.workshop.models import Keeper, Part, Tag, Thing

#: Everything in the shop that has hidden rows.
MODELS: tuple[Any, ...] = (Customer, Label, Order, Line, Memo, Payment, Review)
#: Columns that nobody may learn anything about.
HIDDEN: dict[Any, tuple[str, ...]] = {
    Customer: ("rating",),
    Order: ("margin", "draft"),
    Line: ("cost",),
}
#: An argument of a stored prompt.
ORDER = {"name": "order", "type": "object", "model": "fuzz.order", "required": True}
EVERY = tuple(model._meta.model_name for model in (*MODELS, Vault))
VERBS = ("view", "add", "change", "delete")


@dataclass(frozen=True, kw_only=True)
class Person:
    """Somebody with a token. Who is no superuser has the verbs for the models of the shop."""

    name: str
    models: tuple[str, ...] = EVERY
    verbs: tuple[str, ...] = VERBS
    sees_hidden: bool = False
    is_staff: bool = True
    is_superuser: bool = False
    scopes: tuple[str, ...] = SCOPES
    token: dict[str, Any] = field(default_factory=dict)

    def make(self) -> str:
        """The user, and the secret of a token."""
        user = User.objects.create(
            username=self.name, is_staff=self.is_staff, is_superuser=self.is_superuser
        )
        names = [f"{verb}_{model}" for verb in self.verbs for model in self.models]
        if self.sees_hidden:
            names.append("see_hidden")
        found = Permission.objects.filter(codename__in=names, content_type__app_label="fuzz")
        user.user_permissions.set(found)
        options = {"name": "fuzz", "scopes": list(self.scopes), **self.token}
        _, secret = PersonalToken.create(user=user, **options)
        return secret


PEOPLE = {
    one.name: one
    for one in (
        Person(name="boss", is_superuser=True),
        Person(name="insider", sees_hidden=True),
        Person(name="narrowed"),
        Person(name="narrowed reader", verbs=("view",), scopes=(READ,)),
        Person(name="clerk of orders", models=("order", "customer")),
        Person(name="held to orders", token={"models": ["fuzz.order"]}),
        Person(name="read-only", token={"read_only": True}),
        Person(name="outsider", is_staff=False, models=("memo",)),
    )
}


@contextmanager
def site() -> Iterator[None]:
    """Django set up, with a database of this process that is dropped at the end."""
    setup_test_environment(debug=False)
    old = setup_databases(verbosity=0, interactive=False)
    try:
        yield
    finally:
        connections.close_all()
        teardown_databases(old, verbosity=0)
        shutil.rmtree(settings.MEDIA_ROOT, ignore_errors=True)


def fill() -> None:
    """Of each parent two hidden rows and one that is not, so that some are left in any case."""
    customers = [
        Customer.objects.create(name=f"customer {n}", country="FRDE"[n % 2 :][:2], is_hidden=n > 2)
        for n in range(6)
    ]
    labels = [Label.objects.create(name=f"label {n}", is_hidden=n > 2) for n in range(6)]
    for n in (1, 2, 4):
        labels[n].parent = labels[n - 1]
        labels[n].save()
    for n in range(12):
        order = Order(
            number=f"A-{n}",
            customer=customers[n % 4],
            total=n * 10,
            status=Order.Status.values[n % 2],
            placed_at=datetime(2026, 1, 1 + n, 12, tzinfo=UTC) if n % 3 else None,
            details={"color": n % 2},
            is_hidden=n > 7,
        )
        order.contract.save(f"contract{n}.txt", ContentFile(f"contract of {n}".encode()))
        order.labels.set(labels[n % 3 :: 2])
        for m in range(3):
            # Two hidden orders have a row that is not, and two may be gone without a trace.
            rest = {"order": order, "is_hidden": m > 0 or n in (8, 9)}
            Line.objects.create(sku=f"sku {m}", amount=m + 1, **rest)
            Memo.objects.create(text=f"memo {m}", **rest)
            Review.objects.create(text=f"review {m}", **rest)
            Vault.objects.create(order=order, text=f"vault {m}")
            if n % 4 == 3:
                Payment.objects.create(amount=n, **rest)
    make_prompt("stored_order", "About {{ order.number }}.", arguments=[ORDER])


def fill_others() -> None:
    """Some rows of each of the other apps, for their forms."""
    tag = Tag.objects.create(name="red")
    things = [Thing.objects.create(title=f"thing {n}", number=n, tag=tag) for n in range(3)]
    Part.objects.create(thing=things[0], name="part")
    Keeper.objects.create(thing=things[1])
    author = Author.objects.create(name="Jane", country="GB")
    book = Book.objects.create(title="Emma", author=author)
    Copy.objects.create(book=book, number=1)
    customer = ShopCustomer.objects.create(name="Ada", country="FR")
    ShopOrder.objects.create(number="A-1", customer=customer)
    ShopMemo.objects.create(text="scanned", code="a")
