"""Rows of the nasty schema: open ones, closed ones, and those that come and go unseen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db.models import GeneratedField

from tests.leaks.canaries import Canaries
from tests.leaks.site import ALL, HIDDEN, LEAKY, MASKED, NOTHING, OPEN, Viewer
from tests.nasty import models as m
from tests.nasty.site import EXPOSED

MODELS: tuple[Any, ...] = tuple({**EXPOSED, **LEAKY, User: None})
#: What callers see depends on these, or the rows could not be told apart by the test.
FIXED = {User: ("is_active", "is_staff", "is_superuser"), m.Tricky: ("key",)}


class World:
    """The rows. `closed` are the keys that some see and some do not; `ghosts` are some of them
    that nothing which anybody sees refers to."""

    def __init__(self, canaries: Canaries) -> None:
        self.canaries = canaries
        self.closed: dict[Any, list[Any]] = defaultdict(list)
        self.open: dict[Any, list[Any]] = defaultdict(list)
        self.ghosts: list[Any] = []
        #: A hidden value that conditions may aim at, by model and column.
        self.aims: dict[tuple[Any, str], Any] = {}
        fill(self)

    def add(self, model: Any, /, closed: bool = False, ghost: bool = False, **values: Any) -> Any:
        made = model._default_manager.create(**values)
        (self.closed if closed or ghost else self.open)[model].append(made.pk)
        for parent in {*model._meta.all_parents, model._meta.concrete_model} - {model}:
            (self.closed if closed or ghost else self.open)[parent].append(made.pk)
        if ghost:
            self.ghosts.append(made)
        return made

    def hide(self, viewer: Viewer, world: int) -> None:
        """Write what the viewer may not learn. The second world has no ghosts, either."""
        for model in MODELS:
            ghosts = {one.pk for one in self.ghosts if type(one) is model}
            keys = [*self.open[model], *self.closed[model]]
            for row, key in enumerate(keys):
                is_closed = key in self.closed[model]
                seen = viewer.sees(model)
                is_invisible = seen == NOTHING or (seen == OPEN and is_closed)
                parents = [viewer.sees(parent) == ALL for parent in model._meta.all_parents]
                if world == 2 and key in ghosts and is_invisible and not any(parents):
                    model._base_manager.filter(pk=key).delete()
                    continue
                values = {
                    field.attname: self.canaries.make(field, row=row, world=world)
                    for field in hidden_fields(model, is_invisible=is_invisible)
                }
                if values:
                    # Not `filter`: that of orders answers something else.
                    model._base_manager.filter(pk=key).update(**values)
                for name, value in values.items():
                    # The first row is one that others refer to, and so is the first closed one.
                    self.aims.setdefault((model, name), value)
        for name, content in self.canaries.files.items():
            if not default_storage.exists(name):
                default_storage.save(name, ContentFile(content))


def hidden_fields(model: Any, *, is_invisible: bool) -> Iterator[Any]:
    for field in model._meta.local_concrete_fields:
        is_fixed = (
            field in model._meta.pk_fields
            or field.is_relation
            or isinstance(field, GeneratedField)
            or field.name == "object_id"  # with the content type it is a foreign key
            or field.name in FIXED.get(model, ())
        )
        unseen = (*HIDDEN.get(model, ()), *MASKED.get(model, ()))
        if field.name in unseen or (is_invisible and not is_fixed):
            yield field


def fill(world: World) -> None:
    add = world.add
    tenants = [m.Tenant.objects.create(name=name) for name in ("open", "closed")]
    users = [
        add(User, username=f"user{n}", email=f"user{n}@example.org", closed=n == 2, ghost=n == 3)
        for n in range(4)
    ]
    people = [add(m.Person, username=f"p{n}", closed=n == 2, ghost=n == 3) for n in range(4)]
    m.Person.objects.filter(pk=people[1].pk).update(manager=people[2])
    regions = [add(m.Region, name=f"r{n}", closed=n == 1, ghost=n == 2) for n in range(3)]
    customers = [
        add(
            m.Customer, name=f"c{n}", country="FRDE"[n % 2 :][:2], tenant=tenants[n > 1],
            region=regions[n % 2], account_manager=people[n % 3], closed=n == 2, ghost=n == 3,
        )
        for n in range(4)
    ]  # fmt: skip
    tags = [add(m.Tag, slug=f"t{n}", closed=n == 2, ghost=n == 3) for n in range(4)]
    m.Tag.objects.filter(pk=tags[1].pk).update(parent=tags[2])
    m.Tag.objects.filter(pk=tags[0].pk).update(parent=tags[1])
    orders(world, customers, people, tags)
    for n in range(3):
        add(m.Seat, hall=1, number=n, label=f"s{n}", price=n, ghost=n == 2)
        add(m.Odd, word=f"w{n}", ghost=n == 2)
    grants(world, users)


def orders(world: World, customers: Any, people: Any, tags: Any) -> None:
    add = world.add
    made = [
        add(
            m.Order, number=f"A{n}", owner=people[n % 3], total=n, quantity=n, status="paid",
            customer=(customers[0], customers[2], None, customers[0], customers[1])[n],
            payload={"color": n}, attachment=f"open{n}.txt", closed=n == 3, ghost=n == 4,
        )
        for n in range(5)
    ]  # fmt: skip
    default_storage.save("open0.txt", ContentFile(b"for all"))
    made[0].tags.set(tags[:3])
    made[1].tags.set(tags[2:3])
    # The second of each is open and belongs to what is closed.
    for n, order in enumerate((made[0], made[3], made[1], made[0], made[1])):
        add(m.Line, order=order, sku=f"l{n}", amount=n, closed=n == 3, ghost=n == 4)
        add(m.Watch, order=order, person=people[n % 3], closed=n == 3, ghost=n == 4)
        add(m.Note, target=order, text=f"n{n}", author=people[n % 3], closed=n == 3, ghost=n == 4)
    for n in range(4):
        # A key that no record shows. It stays as it is: rows without it would be other rows.
        key = world.canaries.text(m.Tricky._meta.get_field("key"), n)
        world.aims[m.Tricky, "key"] = key
        order = made[(0, 3, 1, 0)[n]]
        add(m.Tricky, key=key, order=order, year=n % 2, contains=f"x{n}", ghost=n == 3)
    for n in range(3):
        add(m.RushOrder, number=f"R{n}", owner=people[0], courier=f"k{n}", ghost=n == 2)
    world.open[m.PaidOrder], world.closed[m.PaidOrder] = (
        world.open[m.Order],
        world.closed[m.Order],
    )


def grants(world: World, users: Any) -> None:
    """Application 2 is judged away from everybody, and its tokens with it."""
    applications = [
        world.add(
            m.Application, owner=users[(0, 2, 0)[n]], name=f"a{n}", client_id=f"id{n}",
            logo=f"open{n}.txt", closed=n == 2,
        )
        for n in range(3)
    ]  # fmt: skip
    for n in range(4):
        world.add(
            m.AccessToken, user=users[(0, 2, 1, 1)[n]], application=applications[(0, 0, 2, 2)[n]],
            scope=f"s{n}", closed=n == 2, ghost=n == 3,
        )  # fmt: skip
