"""Rows in the form of a record: those that are named change, and all others stay as they are."""

from __future__ import annotations

import pytest

from mcp_django.levels import Level
from tests.clients import CheckedClient
from tests.workshop.admin import PartInline
from tests.workshop.models import Part, Thing

pytestmark = pytest.mark.django_db


def update(client, thing, *rows, **values):
    return client.call_tool(
        "update_record",
        model="workshop.thing",
        pk=thing.pk,
        values=values,
        inlines={"parts": list(rows)},
    )


def rows_of(thing):
    return {row["id"]: row for row in thing.parts.values()}


def test_named_rows_change_and_the_rest_stays_bit_for_bit(client, thing, snapshot):
    first, second, third = thing.parts.order_by("pk")
    before, whole = rows_of(thing), snapshot(thing)

    answer = update(
        client, thing, {"pk": first.pk, "quantity": 7}, {"pk": second.pk, "delete": True},
        {"name": "new"},
    )  # fmt: skip

    assert not answer.is_error, answer.text
    after = rows_of(thing)
    assert after[first.pk] == before[first.pk] | {"quantity": 7}
    assert after[third.pk] == before[third.pk]
    assert second.pk not in after
    assert Part.objects.get(name="new").quantity == 1
    assert {**snapshot(thing), "parts": 0} == {**whole, "parts": 0}
    assert answer.structured["changed"] == ["parts"]


def test_a_new_row_of_nothing_but_defaults_is_refused_and_not_dropped(client, thing):
    answer = update(client, thing, {})

    assert answer.is_error
    assert "parts-3.name: This field is required." in answer.text


def test_faults_name_the_row_and_the_field(client, thing, snapshot):
    first, *_ = thing.parts.order_by("pk")
    before = snapshot(thing)

    answer = update(
        client, thing, {"pk": first.pk, "quantity": "x", "thing": 1}, {"pk": 10**6, "quantity": 1},
        title="new",
    )  # fmt: skip

    assert "parts-0: 'thing' is not a field that you can set." in answer.text
    assert "You can set: name, quantity, at." in answer.text
    assert "parts-0.quantity: 'x' is not a number." in answer.text
    assert "parts: There is no row with the key 1000000." in answer.text
    assert snapshot(thing) == before

    answer = update(client, thing, {"pk": first.pk, "quantity": 1.5}, {"quantity": 3})

    assert "parts-0.quantity: Enter a whole number." in answer.text
    assert "parts-3.name: This field is required." in answer.text
    assert snapshot(thing) == before


def test_a_row_of_another_record_is_no_row(client, thing):
    other = Thing.objects.create(title="other", number=5)
    theirs = Part.objects.create(thing=other, name="theirs")

    answer = update(client, thing, {"pk": theirs.pk, "quantity": 9})

    assert f"parts: There is no row with the key {theirs.pk}." in answer.text
    theirs.refresh_from_db()
    assert theirs.quantity == 1


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"delete": True}], "Name the key of the row to delete."),
        ([{"pk": "first", "delete": "yes"}], "delete is true or false."),
        ([{"pk": "first"}, {"pk": "first"}], "two changes of the row"),
        ([{"pk": [1]}], "There is no row with the key A list."),
        ([{"name": "a"}, {"name": "b"}, {"name": "c"}], "at most 5 rows"),
        ([{"pk": "first", "pin": "1234"}], "'pin' is not a field that you can set."),
        ([{"pk": "first", "id": 9}], "'id' is not a field that you can set."),
        ([{"pk": "first", "DELETE": True}], "'DELETE' is not a field that you can set."),
        ([{"name": str(at)} for at in range(201)], "At most 200 rows"),
    ],
)
def test_bad_rows_are_refused(rows, words, client, thing, snapshot):
    before = snapshot(thing)
    first = thing.parts.order_by("pk")[0].pk
    given = [{**row, "pk": first} if row.get("pk") == "first" else row for row in rows]

    answer = update(client, thing, *given)

    assert answer.is_error
    assert words in answer.text
    assert snapshot(thing) == before


@pytest.mark.parametrize("inlines", [{"parts": {}}, {"parts": ["x"]}, {"parts": 5}, []])
def test_what_is_no_list_of_rows_is_refused(inlines, client, thing):
    answer = client.call_tool(
        "update_record", model="workshop.thing", pk=thing.pk, inlines=inlines
    )

    assert answer.is_error


@pytest.mark.parametrize("prefix", ["scraps", "nonsense"])
def test_rows_of_a_hidden_model_do_not_exist(prefix, client, thing, snapshot):
    before = snapshot(thing)

    answer = client.call_tool(
        "update_record", model="workshop.thing", pk=thing.pk,
        inlines={prefix: [{"text": "new"}]},
    )  # fmt: skip

    assert answer.text.startswith(
        f"Nothing was saved.\n'{prefix}' is not an inline that you can set."
    )
    assert answer.text.endswith("You can set: parts.")
    assert snapshot(thing) == before


@pytest.mark.exposure(Part={"level": Level.READ})
def test_rows_of_a_model_that_one_may_only_read_cannot_be_set(client, thing):
    answer = update(client, thing, {"name": "new"})

    assert "You can set: nothing." in answer.text


def test_rows_obey_the_rights_that_the_user_has_on_them(make_user, thing, snapshot):
    clerk = make_user(
        "clerk", "view_thing", "change_thing", "view_part", "add_part", is_staff=True
    )
    client = CheckedClient(user=clerk)
    first = thing.parts.order_by("pk")[0]
    before = snapshot(thing)

    changed = update(client, thing, {"pk": first.pk, "quantity": 9})
    deleted = update(client, thing, {"pk": first.pk, "delete": True})

    assert "parts: The rows here are read-only for you." in changed.text
    assert "parts: You may not delete rows here." in deleted.text
    assert snapshot(thing) == before
    assert not update(client, thing, {"name": "new"}).is_error
    assert thing.parts.count() == 4


def test_who_may_not_add_rows_adds_none(make_user, thing):
    clerk = make_user(
        "clerk", "view_thing", "change_thing", "view_part", "change_part", is_staff=True
    )

    answer = update(CheckedClient(user=clerk), thing, {"name": "new"})

    assert "parts: You may not add rows here." in answer.text
    assert thing.parts.count() == 3


def test_rules_over_all_rows_see_the_rows_that_were_not_named(client, thing, monkeypatch):
    from django.core.exceptions import ValidationError
    from django.forms import BaseInlineFormSet

    class AtMostTen(BaseInlineFormSet):
        def clean(self):
            super().clean()
            if sum(form.cleaned_data.get("quantity", 0) for form in self.forms) > 10:
                raise ValidationError("More than ten in all.")

    monkeypatch.setattr(PartInline, "formset", AtMostTen)
    first, *_ = thing.parts.order_by("pk")

    refused = update(client, thing, {"pk": first.pk, "quantity": 9})

    assert "parts: More than ten in all." in refused.text
    assert not update(client, thing, {"pk": first.pk, "quantity": 8}).is_error


# What the page fills in


@pytest.fixture
def prepopulate(monkeypatch):
    def prepopulate(**fields):
        monkeypatch.setattr(PartInline, "prepopulated_fields", fields)

    return prepopulate


def test_new_rows_have_their_prepopulated_fields_filled_in_as_on_the_page(
    client, thing, prepopulate
):
    prepopulate(pin=["name"])

    answer = update(client, thing, {"name": "Big Wheel Öl"}, {"name": "Nut"})

    assert not answer.is_error, answer.text
    pins = dict(thing.parts.values_list("name", "pin"))
    # No longer than the column.
    assert pins["Big Wheel Öl"] == "big-whee"
    assert pins["Nut"] == "nut"


def test_rows_of_a_new_record_have_them_as_well(client, prepopulate):
    prepopulate(pin=["name", "quantity"])

    answer = client.call_tool(
        "create_record",
        model="workshop.thing",
        values={"title": "My Title"},
        inlines={"parts": [{"name": "Nut", "quantity": 3}]},
    )

    assert not answer.is_error, answer.text
    assert Part.objects.get().pin == "nut-3"
    assert Thing.objects.get().slug == "my-title"


def test_stored_rows_keep_theirs(client, thing, prepopulate):
    prepopulate(pin=["name"])
    first = thing.parts.earliest("pk")
    before = rows_of(thing)

    answer = update(client, thing, {"pk": first.pk, "name": "other"})

    assert not answer.is_error, answer.text
    assert rows_of(thing) == {**before, first.pk: {**before[first.pk], "name": "other"}}


def test_what_is_sent_or_there_from_the_start_is_not_filled_in(client, thing, prepopulate):
    # The form of a new row shows a quantity of 1.
    prepopulate(name=["quantity"], quantity=["name"], pin=["at"])
    thing.parts.all().delete()

    answer = update(client, thing, {"name": "mine", "quantity": 4}, {"quantity": 5})
    other = update(client, thing, {"name": "third"})

    assert answer.is_error is other.is_error is False, answer.text + other.text
    new = thing.parts.order_by("pk").values_list("name", "quantity", "pin")
    assert list(new) == [("mine", 4, ""), ("5", 5, ""), ("third", 1, "")]
