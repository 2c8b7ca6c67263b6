"""Hostile paths, values and shapes through the front door: each is refused in words."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from mcp_django.exceptions import NotFound, ToolError
from mcp_django.exposure.query.arguments import FindRecords
from mcp_django.exposure.tools.records import RECORD_TOOLS
from tests.nasty.hostile import HIDDEN, KEYS, PATHS, SHAPES, SHOWN, VALUES
from tests.nasty.models import Odd, Order, Seat, Tricky
from tests.nasty.site import caller, numbers, page, record

pytestmark = pytest.mark.django_db

ARGUMENTS = FindRecords.__struct_fields__

PLACES: dict[str, Any] = {
    "filters": lambda path: {"filters": {path: "1"}},
    "exclude": lambda path: {"exclude": {path: "1"}},
    "any_of": lambda path: {"any_of": [{"number": "x"}, {path: "1"}]},
    "order_by": lambda path: {"order_by": [path]},
    "fields": lambda path: {"fields": [path]},
    "argument": lambda path: {path if path not in ARGUMENTS else "x": "1"},
}


@pytest.mark.parametrize("place", PLACES)
def test_a_hostile_path_is_refused_without_naming_anything_hidden(place):
    who = caller()
    for path in PATHS:
        if place in ("order_by", "fields") and path in SHOWN:
            continue
        with pytest.raises(ToolError) as caught:
            ask(who, PLACES[place](path))

        sentence = str(caught.value)
        others = sentence.replace(ascii(path)[1:50], "")
        assert not [name for name in HIDDEN if name in others], sentence
        assert len(sentence) < 700


def ask(who, arguments):
    """Every check of the query itself, and through the tool what no query has an argument for."""
    if arguments.keys() <= {*ARGUMENTS} - {"model"}:
        page(who, Order, **arguments)
    else:
        RECORD_TOOLS["find_records"].call(None, who, {"model": "nasty.order", **arguments})


def refusal(who, **arguments):
    """The sentence that refuses a call, or None where it ran. Anything else is raised."""
    try:
        with transaction.atomic():
            ask(who, arguments)
    except ToolError as error:
        return str(error)
    return None


@pytest.mark.thorough
@pytest.mark.parametrize("keys", [KEYS[at::4] for at in range(4)], ids=str)
def test_a_hostile_value_is_refused_in_words_or_simply_finds_nothing(order, keys):
    who = caller()
    refusals = [
        refusal(who, **{place: {key: value}}, fields=["id"], limit=2)
        for key in keys
        for value in VALUES
        for place in ("filters", "exclude")
    ]

    assert None in refusals
    assert not [one for one in refusals if one is not None and not 10 < len(one) < 1500]


def test_a_hostile_shape_is_refused():
    who = caller()
    for arguments in SHAPES:
        with pytest.raises(ToolError) as caught:
            ask(who, arguments)

        assert len(str(caught.value)) < 1500, arguments


@pytest.mark.thorough
def test_a_hostile_search_finds_nothing_or_is_refused(order):
    refusals = [refusal(caller(), search=value, limit=1) for value in VALUES]

    assert None in refusals
    assert max(len(one or "") for one in refusals) < 1500


@pytest.mark.parametrize("model", [Order, Tricky, Seat, Odd])
def test_a_hostile_key_of_a_record_is_simply_not_found(model):
    who = caller()
    for value in [*VALUES, "explode", [1, "x"], [1, 2, 3], [[1], [2]]]:
        with transaction.atomic(), pytest.raises(NotFound):
            record(who, model, value)


@pytest.fixture
def order(shop):
    return shop.a1


def test_many_conditions_in_one_call_are_fine(order):
    filters = dict.fromkeys(("number__contains", "customer__name__contains"), "1")

    assert numbers(filters=filters, any_of=[{"tags__slug": "x"}] * 8, search="a b c d") == []
