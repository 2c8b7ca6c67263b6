"""What is written: rows of parcels, and values for the fields of forms."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

from django import forms

from tests.fuzz.models import Customer, Label, Parcel
from tests.fuzz.values import HOSTILE, mutated

NUMBER = (int, float, str)
UUID = "12345678-1234-5678-1234-567812345678"
#: By field of a form, of which the first that fits decides: a name, the types of JSON that a
#: person can type or pick, with () for any, and values, of which the first three are right.
KINDS: dict[type[forms.Field], tuple[str, tuple[type, ...], list[Any]]] = {
    forms.JSONField: ("JSON", (), [{"a": 1}, [1, "x"], "text", 5, None, "", {}, [], 0, False,
        1e300, 10**30, 0.1, "\0", {"": ""}, "null", "{", {"a": "\ud800"}]),
    forms.EmailField: ("text", (str,), ["", "a@b.org", "", "a@b", " a@b.org ", "é@é.org"]),
    forms.URLField: ("text", (str,), ["", "https://x.org/a", "http://x.org", "x.org", "x:y",
        "https://", "http://[", " http://x.org", "//x.org", "javascript:1"]),
    forms.SlugField: ("text", (str,), ["s-1", "s_3", "S-4", "p-1", "a b", "é", " s "]),
    forms.UUIDField: ("text", (str,), [UUID, None, UUID.upper(), UUID.replace("-", ""), f" {UUID}",
        f"{{{UUID}}}", f"urn:uuid:{UUID}", UUID[1:]]),
    forms.GenericIPAddressField: ("text", (str,), ["10.0.0.1", "::1", None, "::ffff:1.2.3.4",
        "01.2.3.4", "FE80::1", " ::1 ", "1.2.3", "::1%eth0", "0:0:0:0:0:0:0:1"]),
    forms.DurationField: ("duration", (str,), ["P1DT2H", "1 02:00:00", None, "5", "-P1D", "P1Y",
        "999999999 00:00:00", "9999999999 0:0:0", "PT0.5S", "PT1e9S", " 5 "]),
    forms.SplitDateTimeField: ("moment", (str,), ["2026-05-01T10:00:00Z", "2026-07-01 10:00:00",
        "2026-07-01T10:00:00.000123+02:00", "2026-05-01", "2026-03-29T02:30:00",
        "2026-10-25T02:30:00", "2026-10-25T02:30:00+01:00", "2026-10-25T00:30:00Z",
        "0001-01-01T00:00:00+12:00", "9999-12-31T23:59:59-12:00", "20260501T100000Z",
        "05/01/2026 10:00", "2026-05-01T24:00:00"]),
    forms.DateField: ("day", (str,), ["2026-05-01", "2026-01-31", None, "2026-5-1", "20260501",
        "2026-W05-1", "05/01/2026", "2026-02-30", "0001-01-01", "May 1 2026", " 2026-05-01 ",
        "2026-05-01T10:00"]),
    forms.TimeField: ("time", (str,), ["10:00", "10:00:05.000001", None, "24:00", "10:00+02:00",
        "1:2", "10", "T10:00", "10:61", " 10:00 ", "10:00:00.0000001"]),
    forms.NullBooleanField: ("boolean", (bool,), [True, False, None, "true", "", 1, 0]),
    forms.BooleanField: ("checkbox", (bool,), [True, False, True, "true", "", 1, "on", None]),
    forms.ModelMultipleChoiceField: ("", (), [{"set": [1, 2]}, {"add": [3, 2]}, {"add": [5]}, None,
        {"remove": [1, 6]}, [], {}, {"set": []}, {"add": [1], "remove": [1]}, [1, 1], [1, 4],
        {"set": [1], "add": [2]}, {"set": ["label 1", 2, "2"]}, {"add": [99]}, {"set": [None]}]),
    forms.ModelChoiceField: ("", (), [1, 2, "3", 4, None, "", 99, "99", " 1", "label 1", "omer 2",
        "customer 2", 1.0, 1.5, "01", -1, 2**63, "A-1", "A-7", "er 1"]),
    forms.ChoiceField: ("choice", NUMBER, [None, "", 9, 1.0, "01", " 1", "Box", "x"]),
    forms.IntegerField: ("number", NUMBER, [3, "5", 7.0, "6.00", 0, -1, 2.5, "2.50", 0.1, 1e3, 51,
        "1e2", 5000.01, 5001, 32767, 32768, 2**63 - 1, 2**63, -(2**63), 10**30, 999999.99, 1000000,
        "0012", " 7 ", "1_0", "1,000", "٣", 1e9, 1e300, 5e-324, "NaN", "-0", -0.0, "", " ", "3.",
        ".5", "+4", 10**400, None]),
    forms.Field: ("text", (str,), ["new", "é✓漢", "a b", "", " padded ", "#", "a\nb", "\0",
        "face 0", "a\u2028b", "e\u0301", "\u202e", "x" * 30, "x" * 31, "\ud800",
        "\x7f", "\u200b", "\xa0", None, "parcel 1", "note", "face 1"]),
}  # fmt: skip


def kind_of(asked: forms.Field) -> tuple[str, tuple[type, ...], list[Any]]:
    return next(kind for known, kind in KINDS.items() if isinstance(asked, known))


def fill_parcels() -> None:
    labels, customers = Label.objects.order_by("pk"), Customer.objects.order_by("pk")
    for n in range(4):
        due = datetime(2026, 5, 1 + n, 12, tzinfo=UTC)
        values = {"title": f"parcel {n}", "code": f"p-{n}", "note": "note", "ip": "::1"}
        parcel = Parcel.objects.create(
            **values, count=3 + n, slot=n % 3 + 1, label=labels[n], due_at=due, size=n % 2 + 1
        )
        parcel.owners.set(customers[n : n + 2])
        parcel.labels.set(labels[n : n + 2])
        for m in range(2):
            parcel.stamps.create(face=f"face {m}", value=m + 1)


def draw(random: Random, page: Any) -> dict[str, Any]:
    """Arguments for a write on this page."""
    arguments: dict[str, Any] = {"model": page.model._meta.label_lower, "values": {}}
    if page.pk is not None:
        arguments["pk"] = random.choice([page.pk, str(page.pk)])
    if page.form is not None:
        arguments["values"] = row(random, page.form.fields, is_new=page.pk is None)
    if page.sets and random.random() < 0.4:
        arguments["inlines"] = {
            prefix: [inline_row(random, one) for _ in range(random.choice([0, 1, 1, 2, 3]))]
            for prefix, one in page.sets.items()
        }
    if random.random() < 0.06:
        part = random.choice(["values", "inlines"])
        arguments[part] = mutated(random, arguments.get(part, {}))
    return arguments


def inline_row(random: Random, formset: Any) -> dict[str, Any]:
    keys = [one.instance.pk for one in formset.initial_forms]
    found: dict[str, Any] = {}
    if keys and random.random() < 0.6:
        found["pk"] = random.choice([*keys * 4, str(keys[0]), 999, "x", None])
        if random.random() < 0.3:
            found["delete"] = random.choice([True, True, True, False, "true"])
    own = ("id", "DELETE", formset.fk.name)
    asked = {name: one for name, one in formset.empty_form.fields.items() if name not in own}
    return found | row(random, asked, is_new=not found)


def row(random: Random, asked: dict[str, Any], *, is_new: bool) -> dict[str, Any]:
    names = [name for name, one in asked.items() if not isinstance(one, forms.FileField)]
    values = {
        name: f"c-{random.randrange(9999)}" if name == "code" else value(random, asked[name], 0.3)
        for name in names
        if is_new and asked[name].required
    }
    for name in random.sample(names, min(len(names), random.choice([0, 1, 1, 2, 3, 8]))):
        values[name] = value(random, asked[name], 1)
    return values | ({random.choice(["id", "nothing", "pk"]): 1} if random.random() < 0.03 else {})


def value(random: Random, asked: Any, oddness: float) -> Any:
    choices = [key for key, _ in getattr(asked, "choices", ()) if kind_of(asked)[0] == "choice"]
    right = choices or kind_of(asked)[2][:3]
    chance = random.random() / oddness
    if chance > 0.5:
        return random.choice(right)
    if chance < 0.16:
        return random.choice(HOSTILE) if chance < 0.1 else mutated(random, random.choice(right))
    return random.choice(kind_of(asked)[2])
