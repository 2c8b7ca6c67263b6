"""Two states of the shop that differ only in what one person may not see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db.models import Field, QuerySet

from tests.fuzz.models import Customer, Label, Line, Memo, Order, Payment, Review, Vault
from tests.fuzz.rows import HIDDEN, MODELS, Person
from tests.leaks.canaries import Canaries

#: Hidden rows that the second state does not have. Of each parent it has others of their kind:
#: that something unseen goes along, or keeps a record from going, is told.
GONE: dict[Any, Any] = {
    Line: lambda rows: rows.filter(sku="sku 2"),
    Memo: lambda rows: rows.filter(text="memo 2"),
    # Judged one by one: that some are there shows in short pages, as docs/topics/rights.md says.
    Review: lambda rows: rows.none(),
    Payment: lambda rows: rows.filter(order__number="A-3").order_by("-pk")[:1],
    Order: lambda rows: rows.filter(number__in=["A-8", "A-9"]),
    Label: lambda rows: rows.filter(name="label 5"),
    Customer: lambda rows: rows.filter(name="customer 5"),
    Vault: lambda rows: rows.filter(text="vault 2"),
}


def unseen(person: Person, model: Any) -> QuerySet[Any]:
    """The rows that do not exist for this person."""
    rows: QuerySet[Any] = QuerySet(model)
    held = person.token.get("models", [model._meta.label_lower])
    is_held = model._meta.model_name in person.models and model._meta.label_lower in held
    if not is_held or model is Vault or not (person.is_staff or model is Memo):
        return rows
    return rows.none() if person.sees_hidden else rows.filter(is_hidden=True)


def hide(person: Person, canaries: Canaries, world: int) -> None:
    """Write what the person may not learn, as the first or as the second state has it."""
    gone: set[tuple[Any, Any]] = set()
    for model in (*MODELS, Vault):
        rows = unseen(person, model)
        keys = set(rows.values_list("pk", flat=True))
        absent = set(GONE[model](rows).values_list("pk", flat=True)) if world == 2 else set()
        gone |= {(model, key) for key in absent}
        for at, row in enumerate(QuerySet(model).order_by("pk")):
            values = {
                field.attname: canaries.make(field, row=at % 25, world=world)
                for field in hidden_fields(model, is_unseen=row.pk in keys)
            }
            if model is Review and values:
                # Behind the others in both states, or pages would be short in other places.
                values = {"text": f"z{values['text']}"}
            if values:
                QuerySet(model).filter(pk=row.pk).update(**values)
    # Children first, since some keep their parents from going.
    for model, key in sorted(gone, key=lambda fact: (fact[0] in (Order, Customer), str(fact))):
        QuerySet(model).filter(pk=key).delete()
    change_members(person, world)
    for name, content in canaries.files.items():
        if not default_storage.exists(name):
            default_storage.save(name, ContentFile(content))


def hidden_fields(model: Any, *, is_unseen: bool) -> Iterator[Field[Any, Any]]:
    for field in model._meta.concrete_fields:
        is_fixed = field.primary_key or field.is_relation or field.name == "is_hidden"
        if field.name in HIDDEN.get(model, ()) or (is_unseen and not is_fixed):
            yield field


def change_members(person: Person, world: int) -> None:
    """Orders lose and gain labels that the person cannot see."""
    labels = list(unseen(person, Label).order_by("pk"))
    for order in Order.objects.filter(number__in=["A-0", "A-1", "A-2"]):
        order.labels.remove(*labels)
        order.labels.add(*labels[world - 1 :: 2])


def hidden_facts(person: Person) -> frozenset[tuple[Any, ...]]:
    """Everything that the person cannot see, memberships and hidden columns too."""
    labels = unseen(person, Label).values("pk")
    members = Order.labels.through.objects.filter(label_id__in=labels)
    facts: set[tuple[Any, ...]] = set(members.values_list("order_id", "label_id"))
    for model in (*MODELS, Vault):
        rows = unseen(person, model)
        facts |= {(model, repr(values)) for values in rows.values_list()}
        if columns := HIDDEN.get(model):
            facts |= {(model, *values) for values in model.objects.values_list("pk", *columns)}
    return frozenset(facts)
