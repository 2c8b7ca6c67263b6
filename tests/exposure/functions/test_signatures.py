from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

import jsonschema_rs
import msgspec
import pytest
from django.db import models
from django.utils.translation import gettext_lazy as _
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.exposure.functions.json_schemas import (
    TEXTS,
    Examples,
    for_clients,
    input_schema,
    of_arguments,
    subschemas,
)
from mcp_django.exposure.functions.signatures import parse_docstring
from tests.exposure.function_tools import accepts


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Status(models.TextChoices):
    PAID = "paid", _("Paid")
    OPEN = "open", _("Open")


class Size(models.IntegerChoices):
    SMALL = 1
    LARGE = 2


class Line(msgspec.Struct):
    """One line of an order."""

    number: int
    price: Decimal
    parts: list[Line] = []


@dataclass
class Address:
    city: str
    tags: list[str] = field(default_factory=list)


class Period(TypedDict, total=False):
    since: date
    until: date


#: Its `inspect` compares the members of a Literal with each other.
OLD_MSGSPEC = msgspec.__version__.startswith("0.21.")
ANNOTATIONS = [
    int, float, bool, str, bytes, date, datetime, time, timedelta, UUID, Decimal, Any, dict, list,
    Colour, Status, Size, Line, Address, Period,
    int | None, datetime | None, Status | None, int | str | None, Literal["a", "b"],
    list[Line], set[Colour], tuple[int, str], tuple[int, ...], tuple[Decimal, datetime],
    dict[str, Decimal], dict[str, list[Size]], dict[int, str],
    pytest.param(
        Literal[None, 2],
        marks=pytest.mark.xfail(
            OLD_MSGSPEC, reason="msgspec 0.21 cannot describe it", raises=TypeError
        ),
    ),
    Annotated[int, msgspec.Meta(ge=5, le=9)],
    Annotated[int, msgspec.Meta(gt=5, multiple_of=4)],
    Annotated[float, msgspec.Meta(lt=-2)],
    Annotated[int, msgspec.Meta(le=-3)],
    Annotated[str, msgspec.Meta(min_length=9, max_length=12)],
    Annotated[str, msgspec.Meta(max_length=2)],
    Annotated[str, msgspec.Meta(pattern="^[A-Z]{2}$", examples=["FR"])],
    Annotated[list[int], msgspec.Meta(min_length=3)],
    Annotated[dict[str, int], msgspec.Meta(min_length=2)],
    Annotated[datetime, msgspec.Meta(tz=True)],
    Annotated[datetime, msgspec.Meta(tz=False)],
]  # fmt: skip


def schema_of(annotation: Any, **options: Any) -> dict[str, Any]:
    options = {"defaults": {}, "descriptions": {}, **options}
    return input_schema({"value": annotation}, **options)


@pytest.mark.parametrize("annotation", ANNOTATIONS, ids=str)
def test_every_type_has_a_schema_and_an_example_that_both_sides_accept(annotation):
    schema = schema_of(annotation)

    readable = []
    for text in TEXTS:
        example = Examples(text=text).make(schema["properties"]["value"])
        try:
            msgspec.convert(example, annotation)
        except msgspec.ValidationError:
            continue
        readable.append(example)

    assert readable
    assert accepts(schema, {"value": readable[0]})
    assert not accepts(schema, {})


def test_titles_that_repeat_a_name_are_left_out_and_descriptions_in_the_annotation_win():
    told = Annotated[int, msgspec.Meta(title="How many", description="From the annotation.")]

    schema = input_schema(
        {"a": int, "b": told, "c": Line},
        defaults={},
        descriptions={"a": "A.", "b": "B.", "c": "C.", "unknown": "U.", "empty": ""},
    )

    texts = {name: one["description"] for name, one in schema["properties"].items()}
    assert texts == {"a": "A.", "b": "From the annotation.", "c": "C."}
    assert "title" not in schema
    assert "title" not in schema["properties"]["c"]
    assert schema["properties"]["b"]["title"] == "How many"


@pytest.mark.parametrize(
    ("annotation", "default"), [(int, None), (str, _("lazy")), (int, object()), (str, "\ud800")]
)
def test_a_default_that_clients_could_not_send_is_not_shown(annotation, default):
    assert (
        "default" not in schema_of(annotation, defaults={"value": default})["properties"]["value"]
    )


# Docstrings

GOOGLE = """What was sold
    between two days.

    Refunds are left out.

    Args:
        since: The first day,
            inclusive.
        until (date, optional): The last day. Note: inclusive, too.

        **country: ISO code.

    Returns:
        One line per day.
    """

REST = """What was sold.

    :param since: The first day,
        inclusive.
    :type since: date
    :param date until: The last day.
    :arg country: ISO code
    :returns: One line per day.
    :raises ValueError:

    Refunds are left out.
    """


FIRST = {"since": "The first day, inclusive."}


@pytest.mark.parametrize(
    ("docstring", "text", "parameters"),
    [
        (
            GOOGLE,
            "What was sold between two days.\n\nRefunds are left out.\n\n"
            "Returns: One line per day.",
            {**FIRST, "until": "The last day. Note: inclusive, too.", "country": "ISO code."},
        ),
        (
            REST,
            "What was sold.\n\nRefunds are left out.",
            {**FIRST, "until": "The last day.", "country": "ISO code"},
        ),
        ("", "", {}),
        ("Sum.\n:param: nothing", "Sum.", {}),
        ("Sum.\n:param a: The day.\nMore.", "Sum.\n\nMore.", {"a": "The day."}),
        ("Sum.\n\nArgs:\n    all of them\n    a: The day.", "Sum.", {"a": "The day."}),
        ("A.\nArgs:\n    a: The day.\n        format: ISO.", "A.", {"a": "The day. format: ISO."}),
        ("Args:\n    a: 1\n:param b: 2\n    c: still 2", "", {"a": "1", "b": "2 c: still 2"}),
    ],
)
def test_the_text_is_told_from_what_is_said_about_each_parameter(docstring, text, parameters):
    assert parse_docstring(docstring) == (text, parameters)


@given(st.text(alphabet=":*() \n\tArgsparam_x"))
def test_any_text_is_read(text):
    assert "  " not in parse_docstring(text)[0]


# Schemas in words that every client reads

NAMED = {"title": "A", "default": None}


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ({"type": ["string"]}, {"type": "string"}),
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"enum": ["a", None]}, {"enum": ["a", None]}),
        ({"type": "object"}, {"additionalProperties": True, "type": "object"}),
        (
            {"properties": {}, "type": "object"},
            {"properties": {}, "type": "object", "required": []},
        ),
        ({"$ref": "#/properties/b"}, {"type": "integer"}),
        ({"$ref": "#/properties/b", "title": "B"}, {"type": "integer", "title": "B"}),
        ({"$ref": "#b", "minimum": 2}, {"type": "integer", "minimum": 2}),
        (
            {"type": "array", "items": {"$ref": "#/properties/a"}},
            {
                "type": "array",
                "items": {
                    "type": "array",
                    "items": {"description": "The same again."},
                },
            },
        ),
        (
            {**NAMED, "type": ["string", "null"], "maxLength": 3},
            {**NAMED, "anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}]},
        ),
    ],
)
def test_clients_are_told_one_type_at_a_time_and_the_items_of_arrays(written, told):
    number = {"$anchor": "b", "type": "integer"}
    schema = {"type": "object", "properties": {"a": written, "b": number}}

    shown = of_arguments(schema)

    assert shown == {
        "type": "object",
        "properties": {"a": told, "b": {"type": "integer"}},
        "required": [],
    }


def test_a_schema_of_the_site_that_points_into_itself_is_told_as_it_is():
    numbers = {"type": ["array", "null"], "items": {"type": "integer"}}
    schema = {
        "type": "object",
        "properties": {"a": numbers, "b": {"$ref": "#/properties/a/items"}},
    }

    assert for_clients(schema) == schema


TYPES = ["string", "number", "integer", "boolean", "null", "array", "object"]
KEYWORDS = st.fixed_dictionaries(
    {"type": st.lists(st.sampled_from(TYPES), min_size=1, max_size=4, unique=True)},
    optional={
        "minLength": st.integers(0, 2),
        "format": st.sampled_from(["date", "uuid"]),
        "maximum": st.integers(-1, 2),
        "items": st.just({"type": ["integer", "null"]}),
        "minItems": st.integers(0, 2),
        "properties": st.just({"a": {"type": ["string", "null"]}}),
        "additionalProperties": st.just(False),
        "required": st.just(["a"]),
        "enum": st.just(["", 1, None]),
        "anyOf": st.just([{"minLength": 1}, {"type": "null"}]),
        "unevaluatedProperties": st.just(False),
    },
)
LEAVES = st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from(["", "ab", 0.5])
VALUES = LEAVES | st.lists(LEAVES, max_size=2) | st.dictionaries(st.sampled_from("ab"), LEAVES)


@given(KEYWORDS, VALUES)
def test_what_clients_are_told_allows_what_the_schema_allows(schema, value):
    told = for_clients({"type": "object", "properties": {"a": schema}})["properties"]["a"]

    assert not any(isinstance(inner.get("type"), list) for _, inner in subschemas(told))
    assert jsonschema_rs.is_valid(told, value, validate_formats=True) == jsonschema_rs.is_valid(
        schema, value, validate_formats=True
    )
