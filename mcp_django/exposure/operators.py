"""Which operators each kind of field has. Regular expressions have no entry: they do not exist."""

from __future__ import annotations

from typing import Any

from django.db import models

TEXT = (
    "exact", "iexact", "in", "isnull", "contains", "icontains",
    "startswith", "istartswith", "endswith", "iendswith",
)  # fmt: skip
ORDERED = ("exact", "in", "isnull", "gt", "gte", "lt", "lte", "range")
DISCRETE = ("exact", "in", "isnull")
OPERATORS: dict[str, tuple[str, ...]] = {
    "text": TEXT,
    "integer": ORDERED,
    "float": ORDERED,
    "decimal": ORDERED,
    "date": ORDERED,
    "datetime": ORDERED,
    "time": ORDERED,
    "duration": ORDERED,
    "boolean": ("exact", "isnull"),
    "uuid": DISCRETE,
    "ip": DISCRETE,
    "key": DISCRETE,
    "other": ("isnull",),
}
#: Transform -> lowest and highest value. MariaDB's years start at 1000, Python's end at 9999.
PARTS = {
    "year": (1000, 9998),
    "month": (1, 12),
    "day": (1, 31),
    "week_day": (1, 7),
    "quarter": (1, 4),
}
CLOCK = {"hour": (0, 23), "minute": (0, 59)}
TRANSFORMS: dict[str, dict[str, tuple[int, int]]] = {
    "date": PARTS,
    "datetime": {**PARTS, **CLOCK},
    "time": CLOCK,
}
PART_OPERATORS = ("exact", "in", "gt", "gte", "lt", "lte", "range")
#: `placed_at__date` is built as a range of instants, so it has no `in`.
DAY_OPERATORS = ("exact", "gt", "gte", "lt", "lte", "range")
#: What can be worked out of many values, beside how many there are.
SUMMED = ("sum", "avg", "min", "max")
RANKED = ("min", "max")
MEASURES: dict[str, tuple[str, ...]] = {
    "integer": SUMMED,
    "float": SUMMED,
    "decimal": SUMMED,
    "duration": SUMMED,
    "date": RANKED,
    "datetime": RANKED,
    "time": RANKED,
    "text": RANKED,
}
#: The first class that fits decides, so the special stand before the general.
KINDS: tuple[tuple[type[models.Field[Any, Any]], str], ...] = (
    (models.JSONField, "other"),
    (models.BinaryField, "other"),
    (models.FileField, "other"),
    (models.DateTimeField, "datetime"),
    (models.DateField, "date"),
    (models.TimeField, "time"),
    (models.DurationField, "duration"),
    (models.DecimalField, "decimal"),
    (models.FloatField, "float"),
    (models.BooleanField, "boolean"),
    (models.UUIDField, "uuid"),
    (models.GenericIPAddressField, "ip"),
    (models.IntegerField, "integer"),
    (models.CharField, "text"),
    (models.TextField, "text"),
)


def kind_of(field: Any) -> str:
    """The kind of a field; a class that we do not know may be asked for NULL only."""
    if field is None or field.is_relation:
        return "key"
    if isinstance(field, models.GeneratedField):
        return kind_of(field.output_field)
    return next((kind for known, kind in KINDS if isinstance(field, known)), "other")


def measures_of(field: Any) -> tuple[str, ...]:
    """A class of the site's own may store anything: cents, or what it has encrypted."""
    return () if hasattr(field, "from_db_value") else MEASURES.get(kind_of(field), ())


def transforms_of(kind: str) -> tuple[str, ...]:
    """Names that may stand between a path of this kind and its operator."""
    return (*TRANSFORMS.get(kind, ()), *(("date",) if kind == "datetime" else ()))


def target_of(field: Any) -> Any:
    """The field whose values a foreign key holds."""
    while field.is_relation:
        field = field.target_field
    return field
