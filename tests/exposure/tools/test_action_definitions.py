"""The tool of an action is described in at most 720 bytes, whatever the site wrote about it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.exposure.admin_bridge.compat import AdminAction, Place
from mcp_django.exposure.tools.actions import MOST_BYTES, action_definition
from mcp_django.protocol.render import tool_definition
from mcp_django.protocol.revisions import Revision


def action(menu="Ship", place=Place.CHANGELIST, doc=None, permissions=("change",), **attributes):
    def function(modeladmin, request, queryset):
        pass

    function.__doc__ = doc
    if permissions is not None:
        function.allowed_permissions = list(permissions)
    for name, value in attributes.items():
        setattr(function, f"mcp_{name}", value)
    return AdminAction(name="ship", function=function, description=menu, place=place)


def size(definition):
    return max(
        len(msgspec.json.encode(tool_definition(definition, revision.features)))
        for revision in Revision
    )


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (action("Ship them"), ("", "Ship them")),
        (action("Ship them", doc="Send parcels.\n\nMore."), ("Ship them", "Send parcels.")),
        (action("Ship", doc="Send."), ("Ship", "Send.")),
        (
            action("Ship", doc="For programmers.", description="For models."),
            ("Ship", "For models."),
        ),
        (
            action("Ship", permissions=None),
            ("", "Ship. Declares no permission: who may view the model may run it."),
        ),
    ],
)
def test_title_and_description_are_those_of_the_menu_and_the_docstring(written, told):
    made = action_definition("shop_order_ship", written)

    assert (made.title, made.description) == told


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (False, True, False)),
        ({"read_only": True}, (True, False, True)),
        ({"destructive": False}, (False, False, False)),
        ({"idempotent": True}, (False, True, True)),
    ],
)
def test_annotations_are_careful_unless_the_site_says_otherwise(given, expected):
    made = action_definition("ship", action(**given)).annotations

    assert (made.read_only, made.destructive, made.idempotent) == expected


def test_each_place_has_its_own_selection():
    properties = {
        place: list(action_definition("ship", action(place=place)).input_schema["properties"])
        for place in Place
    }

    rest = ["answer", "confirmation"]
    key = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
    chosen = action_definition("ship", action(place=Place.CHANGELIST)).input_schema
    assert chosen["properties"]["pks"]["items"] == key
    assert properties == {
        Place.CHANGELIST: ["pks", "filters", "exclude", "search", *rest],
        Place.CHANGE_FORM: ["pk", *rest],
        Place.RECORD_BUTTON: ["pk", *rest],
        Place.MODEL_BUTTON: rest,
    }


def test_a_declared_form_is_in_the_schema_where_it_fits():
    small = {"type": "object", "properties": {"carrier": {"type": ["string", "null"]}}}
    large = {"type": "object", "properties": {f"field_{n}": {} for n in range(100)}}

    shown = action_definition("ship", action(), answer=small).input_schema["properties"]
    left_out = action_definition("ship", action(), answer=large).input_schema["properties"]

    # One type at a time.
    carrier = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert shown["answer"] == {**small, "properties": {"carrier": carrier}}
    assert left_out["answer"] == {"type": "object"}


def test_a_declared_form_costs_the_end_of_a_long_description_and_not_all_of_it():
    form = {"type": "object", "properties": {"carrier": {"type": "string"}}}

    made = action_definition("ship", action(doc="Word " * 200), answer=form)

    assert made.input_schema["properties"]["answer"] == form
    assert len(made.description) > 40
    assert made.description.endswith("…")
    assert size(made) < MOST_BYTES


@pytest.mark.parametrize("doc", ["", "x", "Say it. " * 9, "\U0001f600" * 200, '"' * 300])
@pytest.mark.parametrize("title", ["", "\U0001f600" * 50, "\u4f60" * 50, '"' * 50])
def test_the_widest_characters_leave_a_definition_that_is_small(title, doc):
    written = action(title, Place.CHANGELIST, doc=doc, permissions=None)

    made = action_definition("a" * 40, written)

    assert size(made) < MOST_BYTES
    assert "Declares no permission" in made.description


@given(
    st.text(max_size=200),
    st.text(max_size=2000),
    st.sampled_from(Place),
    st.booleans(),
)
def test_no_definition_is_longer_than_720_bytes(description, doc, place, is_marked):
    written = action(description, place, doc=doc, permissions=None if is_marked else ())

    made = action_definition("a" * 40, written)

    assert size(made) < MOST_BYTES
