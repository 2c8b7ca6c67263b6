"""An action that refuses a call shows the caller's own call, repaired, or no call at all."""

from __future__ import annotations

import msgspec
import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.exposure.functions.arguments import repaired
from tests.depot.models import Parcel, Van

# Of packages that were written for Django 6.0.
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore:Overriding get_action"),
]


@pytest.fixture
def parcel(db):
    return Parcel.objects.create(number="n1", tenant="acme")


@pytest.fixture
def van(db):
    return Van.objects.create(plate="B-1")


def shown_call(client, name, **arguments):
    """The arguments of the call that the refusal shows, or None."""
    refused = client.call_tool(name, **arguments)
    assert refused.is_error, refused.text
    _, _, text = refused.text.partition(f" A valid call: {name} ")
    return msgspec.json.decode(text) if text else None


@pytest.mark.parametrize(
    ("action", "wrong", "right"),
    [
        ("mark_shipped", {"filter": {"number": "n1"}}, {"filters": {"number": "n1"}}),
        ("mark_shipped", {"pkss": ["{pk}"]}, {"pks": ["{pk}"]}),
        ("mark_shipped", {"pks": 0}, {"pks": [0]}),
        ("mark_shipped", {"pk": 0}, {"pks": [0]}),
        (
            "ship_declared",
            {"pks": [0], "carrier": "ups"},
            {"pks": [0], "answer": {"carrier": "ups"}},
        ),
    ],
)
def test_a_refused_action_shows_the_callers_own_call_which_works(
    boss, parcel, action, wrong, right
):
    def with_key(arguments):
        text = msgspec.json.encode(arguments).decode()
        key = str(parcel.pk)
        text = text.replace('"{pk}"', f'"{key}"').replace("[0]", f"[{key}]")
        return msgspec.json.decode(text.replace(":0", f":{key}"))

    tool = f"depot_parcel_{action}"

    shown = shown_call(boss, tool, **with_key(wrong))
    answer = boss.call_tool(tool, **shown)

    assert shown == with_key(right)
    assert not answer.is_error, answer.text


def test_the_one_key_of_a_list_is_the_key_of_a_button(boss, van):
    shown = shown_call(boss, "depot_van_drive", pks=[van.pk])
    answer = boss.call_tool("depot_van_drive", **shown)

    assert shown == {"pk": van.pk}
    assert not answer.is_error


@pytest.mark.parametrize(
    "wrong",
    [
        {"minutes": 15},
        {"filter": {}},
        {"pks": [1], "filter": {"number": "n1"}},
        {"pk": 999_999},
        {"filter": {"number": "nobody"}},
        {"filter": {"nummber": "n1"}},
        {"filter": "n1"},
        {"filters": {"number": "n1"}, "filter": {"number": "n2"}},
        {"pk": 1, "color": "red"},
        {"pks": True},
        {"exclud": {"number": "n" * 500}},
    ],
    ids=repr,
)
def test_a_call_that_would_still_be_refused_is_not_shown(boss, parcel, wrong):
    assert shown_call(boss, "depot_parcel_mark_shipped", **wrong) is None


@pytest.mark.parametrize(
    "wrong",
    [{"carrier": "nobody"}, {"carrier": "ups", "answer": {"carrier": "dhl"}}, {"copies": 2}],
)
def test_an_answer_that_does_not_fit_its_form_is_not_shown(boss, parcel, wrong):
    arguments = {"pks": [parcel.pk], **wrong}

    assert shown_call(boss, "depot_parcel_ship_declared", **arguments) is None


def test_a_record_that_does_not_exist_for_the_caller_is_in_no_call_that_is_shown(
    boss, clerk, parcel
):
    user = get_user_model().objects.get(username="clerk")
    user.groups.add(Group.objects.create(name="another tenant"))

    of_boss = shown_call(boss, "depot_parcel_mark_shipped", pk=parcel.pk)
    of_clerk = shown_call(clerk, "depot_parcel_mark_shipped", pk=parcel.pk)

    assert of_boss == {"pks": [parcel.pk]}
    assert of_clerk is None


SCHEMA = {
    "properties": {
        "pks": {"type": "array", "items": {"type": "integer"}},
        "pk": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "answer": {"type": "object", "properties": {"minutes": {"type": "integer"}}},
        "dry_run": {"type": "boolean"},
        "share": {"type": "number"},
        "anything": True,
    }
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ({"minutes": "15"}, {"answer": {"minutes": 15}}),
        ({"answer": {}, "minutes": 15}, {"answer": {"minutes": 15}}),
        ({"answer": 5, "minutes": 15}, None),
        ({"dry_run": "No"}, {"dry_run": False}),
        ({"dry_run": "perhaps"}, {"dry_run": "perhaps"}),
        ({"share": "0.5", "minutes": "soon"}, {"share": 0.5, "answer": {"minutes": "soon"}}),
        ({"anything": [5]}, {"anything": [5]}),
    ],
)
def test_values_are_read_as_their_property_declares_them(wrong, right):
    assert repaired(wrong, SCHEMA) == right


NAMES = st.sampled_from([*SCHEMA["properties"], "minutes", "dryrun", "answers"]) | st.text()


@given(st.dictionaries(NAMES, VALUES))
def test_any_arguments_are_repaired_to_names_that_the_tool_has_or_not_at_all(arguments):
    made = repaired(arguments, SCHEMA)

    assert made is None or made.keys() <= SCHEMA["properties"].keys()
