"""Rows in the form of a record: those that are named change, and all others stay as they are."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.forms import BaseInlineFormSet

from mcp_django.levels import Level
from mcp_django.principal import READ, WRITE
from tests.clients import CheckedClient, call_with_token
from tests.workshop.admin import PartAdmin, PartInline, TagAdmin
from tests.workshop.models import Part, Remark, Thing
from tests.writes.calls import HIDINGS, changed, refusal
from tests.writes.calls import update as update_record

pytestmark = pytest.mark.django_db


def update(client, thing, *rows, **values):
    return update_record(client, thing, inlines={"parts": list(rows)}, **values)


def update_with_token(client, thing, *rows):
    call = {"model": "workshop.thing", "pk": thing.pk, "inlines": {"parts": list(rows)}}
    return call_with_token(client, "update_record", **call)


def rows_of(thing):
    return {row["id"]: row for row in thing.parts.values()}


def hide_by_cut(monkeypatch, model, **conditions):
    """Rows that Django cannot filter any more."""
    rows = model.objects.exclude(**conditions).order_by("pk")
    monkeypatch.setattr(PartAdmin, "get_queryset", lambda self, request: rows.all()[:100])


@pytest.mark.thorough
@pytest.mark.parametrize("hide", [None, *HIDINGS, hide_by_cut])
def test_named_rows_change_and_the_rest_stays_bit_for_bit_also_where_it_is_hidden(
    hide, client, thing, snapshot, monkeypatch
):
    first, second, third = thing.parts.order_by("pk")
    before, whole = rows_of(thing), snapshot(thing)
    if hide:
        hide(monkeypatch, Part, pk=second.pk)

    answer = update_with_token(
        client,
        thing,
        {"pk": third.pk, "quantity": 7},
        # As on a page, nobody reads the values of a row that goes.
        {"pk": first.pk, "delete": True, "quantity": "no number"},
        {"name": "new"},
    )

    assert not answer.is_error, answer.text
    new = Part.objects.get(name="new")
    assert new.quantity == 1
    assert {key: row for key, row in rows_of(thing).items() if key != new.pk} == {
        second.pk: before[second.pk],
        third.pk: before[third.pk] | {"quantity": 7},
    }
    assert {**snapshot(thing), "parts": 0} == {**whole, "parts": 0}
    assert list(answer.data["changed"]) == ["parts"]


@pytest.mark.thorough
def test_faults_name_the_row_and_the_field(client, thing, snapshot, monkeypatch):
    def clean(self):
        if self.quantity == 3:
            raise ValidationError("Not three.")

    monkeypatch.setattr(Part, "clean", clean)
    first, *_ = thing.parts.order_by("pk")
    before = snapshot(thing)

    of_names = update(
        client,
        thing,
        {"pk": first.pk, "quantity": "x", "thing": 1},
        {"pk": 10**6, "quantity": 1},
        title="new",
    )
    of_values = update(client, thing, {"pk": first.pk, "quantity": 1.5}, {"quantity": 3})

    assert (
        f"parts, your row 1 (key {first.pk}): 'thing' is not a field that you can set."
        in of_names.text
    )
    assert "You can set: name, quantity, at." in of_names.text
    assert f"parts, your row 1 (key {first.pk}): quantity: 'x' is not a number." in of_names.text
    assert "parts: There is no row with the key 1000000." in of_names.text
    assert f"parts, your row 1 (key {first.pk}): quantity: Enter a whole number." in of_values.text
    assert "parts, your row 2 (new): name: This field is required." in of_values.text
    assert "parts, your row 2 (new): Not three." in of_values.text
    assert snapshot(thing) == before


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        # Not dropped, as a browser would.
        ([{}], "parts, your row 1 (new): name: This field is required."),
        ([{"pk": "of another", "quantity": 9}], "parts: There is no row with the key "),
        ([{"delete": True}], "Name the key of the row to delete."),
        ([{"pk": "first", "delete": "yes"}], "delete is true or false."),
        ([{"pk": "first"}, {"pk": "first"}], "two changes of the row"),
        ([{"pk": [1]}], "There is no row with the key A list."),
        ([{"name": "a"}, {"name": "b"}, {"name": "c"}], "at most 5 rows"),
        ([{"pk": "first", "pin": "1234"}], "'pin' is not a field that you can set."),
        ([{"pk": "first", "id": 9}], "'id' is not a field that you can set."),
        ([{"pk": "first", "DELETE": True}], "'DELETE' is not a field that you can set."),
        ([{"name": str(at)} for at in range(201)], "At most 200 rows"),
        (["x"], ""),
    ],
    ids=lambda one: str(one)[:40],
)
def test_bad_rows_are_refused(rows, words, client, thing, snapshot):
    theirs = Part.objects.create(
        thing=Thing.objects.create(title="other", number=5), name="theirs"
    )
    keys = {"first": thing.parts.earliest("pk").pk, "of another": theirs.pk}
    before = snapshot(thing)
    rows = [
        {**row, "pk": keys.get(str(row["pk"]), row["pk"])} if "pk" in row else row for row in rows
    ]

    answer = refusal(update(client, thing, *rows))

    assert words in answer
    assert snapshot(thing) == before
    theirs.refresh_from_db()
    assert theirs.quantity == 1


@pytest.mark.parametrize("inlines", [{"parts": {}}, {"parts": 5}, [1]], ids=str)
def test_rows_come_in_a_list(inlines, client, thing):
    client.refusal("update_record", model="workshop.thing", pk=thing.pk, inlines=inlines)


@pytest.mark.thorough
@pytest.mark.parametrize("prefix", ["scraps", "nonsense"])
def test_rows_of_a_hidden_model_do_not_exist(prefix, client, thing, snapshot):
    before = snapshot(thing)

    answer = update_record(client, thing, inlines={prefix: [{"text": "new"}]})

    assert answer.text.startswith(
        f"Nothing was saved.\n'{prefix}' is not an inline that you can set."
    )
    assert answer.text.endswith("You can set: parts.")
    assert snapshot(thing) == before


@pytest.mark.exposure(Part={"level": Level.READ})
def test_rows_of_a_model_that_one_may_only_read_cannot_be_set(client, thing):
    answer = update(client, thing, {"name": "new"})

    assert "You can set: nothing." in answer.text


CHANGED, DELETED, NEW = (
    {"pk": "first", "quantity": 9},
    {"pk": "first", "delete": True},
    {"name": "n"},
)
READ_ONLY = "parts: The rows here are read-only for you."
NO_NEW, NO_DELETION = "parts: You may not add rows here.", "parts: You may not delete rows here."


@pytest.mark.parametrize(
    ("verbs", "row", "words"),
    [
        ("view add", CHANGED, READ_ONLY),
        ("view add", DELETED, NO_DELETION),
        ("view add", NEW, None),
        ("view change", NEW, NO_NEW),
        ("view change", CHANGED, None),
    ],
)
def test_rows_obey_the_rights_that_the_user_has_on_them(
    make_client, thing, snapshot, verbs, row, words
):
    on_rows = [f"{verb}_part" for verb in verbs.split()]
    client = make_client("view_thing", "change_thing", *on_rows)
    before = snapshot(thing)
    row = {**row, "pk": thing.parts.earliest("pk").pk} if "pk" in row else row

    answer = update(client, thing, row)

    assert answer.is_error is (words is not None)
    assert (words or "") in answer.text
    assert (snapshot(thing) == before) is answer.is_error


REFUSED_VALUE = [
    ("update_record", {"pk": 1, "values": {"title": "x" * 51}}),
    ("update_record", {"pk": 1, "values": {"title": "x" * 51}, "dry_run": True}),
    ("update_records", {"pks": [1], "values": {"title": "x" * 51}, "dry_run": True}),
    ("create_record", {"values": {"title": "x" * 51}}),
]


@pytest.mark.parametrize(
    ("call", "rows"),
    [
        *((REFUSED_VALUE[0], rows) for rows in ("view", "view add", "view change", "view delete")),
        *((call, "view") for call in REFUSED_VALUE[1:]),
    ],
    ids=str,
)
def test_a_refused_value_is_named_whatever_the_user_may_do_to_rows(
    make_client, thing, snapshot, call, rows
):
    on_rows = [f"{verb}_part" for verb in rows.split()]
    client = make_client("view_thing", "add_thing", "change_thing", *on_rows)
    before = snapshot(thing)
    tool, arguments = call
    named = {"pk": thing.pk, "pks": [thing.pk]}
    arguments = {name: named.get(name, value) for name, value in arguments.items()}

    refusal = client.refusal(tool, model="workshop.thing", **arguments)

    assert "title: Ensure this value has at most 50 characters (it has 51)." in refusal
    assert snapshot(thing) == before


@pytest.mark.thorough
def test_rules_over_all_rows_see_the_rows_that_were_not_named(client, thing, monkeypatch):
    class AtMostTen(BaseInlineFormSet):
        def clean(self):
            super().clean()
            if sum(form.cleaned_data.get("quantity", 0) for form in self.forms) > 10:
                raise ValidationError("More than ten in all.")

    monkeypatch.setattr(PartInline, "formset", AtMostTen)
    first, *_ = thing.parts.order_by("pk")

    refused = update(client, thing, {"pk": first.pk, "quantity": 9})
    changed(update(client, thing, {"pk": first.pk, "quantity": 8}))

    assert "parts: More than ten in all." in refused.text


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
    first = thing.parts.earliest("pk")
    before = rows_of(thing)
    rows = {"name": "Big Wheel Öl"}, {"name": "Nut"}, {"pk": first.pk, "name": "other"}

    changed(update(client, thing, *rows))

    pins = dict(thing.parts.values_list("name", "pin"))
    # No longer than the column.
    assert pins["Big Wheel Öl"] == "big-whee"
    assert pins["Nut"] == "nut"
    assert rows_of(thing)[first.pk] == {**before[first.pk], "name": "other"}


def test_rows_of_a_new_record_have_them_as_well(client, prepopulate):
    prepopulate(pin=["name", "quantity"])

    client.data(
        "create_record",
        model="workshop.thing",
        values={"title": "My Title"},
        inlines={"parts": [{"name": "Nut", "quantity": 3}]},
    )

    assert Part.objects.get().pin == "nut-3"
    assert Thing.objects.get().slug == "my-title"


@pytest.mark.thorough
def test_values_that_are_sent_or_there_from_the_start_are_not_filled_in(
    client, thing, prepopulate
):
    # The form of a new row shows a quantity of 1.
    prepopulate(name=["quantity"], quantity=["name"], pin=["at"])
    thing.parts.all().delete()

    answer = update(client, thing, {"name": "mine", "quantity": 4}, {"quantity": 5})
    other = update(client, thing, {"name": "third"})

    assert answer.is_error is other.is_error is False, answer.text + other.text
    new = thing.parts.order_by("pk").values_list("name", "quantity", "pin")
    assert list(new) == [("mine", 4, ""), ("5", 5, ""), ("third", 1, "")]


# Rows that the rules of their model hide


@pytest.fixture(params=[*HIDINGS, hide_by_cut])
def hidden(request, monkeypatch, thing):
    """The second part of the thing, which the rules for parts hide from everybody."""
    part = thing.parts.order_by("pk")[1]
    Part.objects.filter(pk=part.pk).update(pin="hidden")
    request.param(monkeypatch, Part, pin="hidden")
    return part


@pytest.mark.thorough
@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("change", [{"quantity": 666}, {"delete": True}, {"delete": "x"}, {}])
def test_a_hidden_row_is_answered_as_a_missing_one_and_stays(
    change, dry_run, client, thing, hidden
):
    before = rows_of(thing)

    answer, missing = (
        update_record(client, thing, dry_run=dry_run, inlines={"parts": [{"pk": pk, **change}]})
        for pk in (hidden.pk, 9999)
    )

    assert answer.is_error
    assert answer.text.replace(str(hidden.pk), "9999") == missing.text
    assert rows_of(thing) == before


def test_hidden_rows_stay_when_no_row_is_named(client, thing, hidden, snapshot):
    before = snapshot(thing)

    answer = update_record(client, thing, title="new")

    assert not answer.is_error, answer.text
    assert list(answer.data["changed"]) == ["title"]
    assert snapshot(thing) == before | {"title": "new"}


@pytest.mark.thorough
def test_faults_count_visible_rows_only(client, thing, hidden):
    last = thing.parts.order_by("pk").last()

    bad_row = update(client, thing, {"pk": last.pk, "quantity": "x"})
    too_many = update(client, thing, *({"name": str(at)} for at in range(4)))
    changed(update(client, thing, *({"name": str(at)} for at in range(3))))

    assert f"parts, your row 1 (key {last.pk}): quantity: 'x' is not a number." in bad_row.text
    assert "There can be at most 5 rows." in too_many.text


@pytest.mark.thorough
def test_rules_about_the_number_and_order_of_rows_see_visible_rows_only(
    client, thing, hidden, monkeypatch
):
    get_formset = PartInline.get_formset
    monkeypatch.setattr(
        PartInline,
        "get_formset",
        lambda self, request, obj=None, **kwargs: get_formset(
            self, request, obj, can_order=True, min_num=3, validate_min=True, **kwargs
        ),
    )
    third = thing.parts.order_by("pk").last()

    too_few = refusal(update(client, thing, {"pk": third.pk, "quantity": 7}))
    changed(update(client, thing, {"pk": third.pk, "quantity": 7}, {"name": "new"}))

    # Two are there for this caller, whatever the database has.
    assert "parts: Please submit at least 3 forms." in too_few
    hidden.refresh_from_db()
    assert (hidden.name, hidden.quantity) == (" p1", 1)


def test_generic_rows_obey_the_rules_of_their_model(client, thing, remarks):
    secret = Remark.objects.create(target=thing, text="secret", is_hidden=True)
    visible = Remark.objects.create(target=thing, text="open")
    prefix = "workshop-remark-content_type-object_id"

    refused = update_record(client, thing, inlines={prefix: [{"pk": secret.pk, "delete": True}]})
    changed(update_record(client, thing, inlines={prefix: [{"pk": visible.pk, "text": "other"}]}))

    assert f"There is no row with the key {secret.pk}." in refused.text
    assert list(Remark.objects.order_by("pk").values_list("text", "is_hidden")) == [
        ("secret", True),
        ("other", False),
    ]


# Tokens


@pytest.mark.thorough
def test_a_token_without_the_scope_to_delete_deletes_no_rows_either(superuser, thing):
    writer = CheckedClient(user=superuser, scopes=[READ, WRITE])
    first, second, _ = thing.parts.order_by("pk")

    refused = update(writer, thing, {"pk": first.pk, "delete": True})
    changed(update(writer, thing, {"pk": second.pk, "quantity": 7}))
    described = writer.call_tool("describe_model", model="workshop.thing")

    assert NO_DELETION in refused.text
    assert thing.parts.count() == 3
    assert '"delete"' not in described.text


def test_a_token_held_to_some_models_deletes_no_row_that_takes_others_along(
    superuser, thing, tags, monkeypatch
):
    class ThingInline(admin.TabularInline):
        model = Thing
        fk_name = "tag"
        fields = ["title"]

    monkeypatch.setattr(TagAdmin, "inlines", [ThingInline])
    held = CheckedClient(user=superuser, models=["workshop.tag", "workshop.thing"])
    # The relation has no name, so its formset has none but its place.
    rows = {"inlines": {"-1": [{"pk": thing.pk, "delete": True}]}}

    refused = held.refusal("update_record", model="workshop.tag", pk=tags[0].pk, **rows)
    Part.objects.all().delete()
    thing.scraps.all().delete()
    alone = call_with_token(held, "update_record", model="workshop.tag", pk=tags[0].pk, **rows)

    assert "records of other models would go along" in refused
    assert not alone.is_error, alone.text
    assert not Thing.objects.exists()
