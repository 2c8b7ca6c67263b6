"""One JSON value becomes the data of a field, or what a browser would send of it."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum

import pytest
from django import forms
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.test import override_settings
from django.utils import timezone, translation

from mcp_django.exposure.forms.schemas import InvalidValue
from mcp_django.exposure.forms.values import (
    Post,
    check_understood,
    data_of,
    data_of_initial,
    is_same,
    meaning,
    parsed,
    takes_json,
)


def encode(bound, value, *, find=None):
    post = Post(find=find)
    post.fill_in(bound, value)
    return post.pairs


def understood(field, value):
    meant = meaning(field, value, find=None)
    return check_understood(field.clean, data_of(field, meant), meant=meant)


class Odd(forms.TextInput):
    """Reads in its own way, so that nothing is known of it."""

    def value_from_datadict(self, data, files, name):
        return data.get(name)


class Broken(Odd):
    def format_value(self, value):
        raise AttributeError


class OddSelect(forms.Select):
    value_from_datadict = Odd.value_from_datadict


class OddSelectMultiple(forms.SelectMultiple):
    def value_from_datadict(self, data, files, name):
        return data.getlist(name)


LETTERS = [("a", "A"), ("More", [("b", "B"), (3, "C")])]


class Money(forms.MultiWidget):
    def __init__(self):
        super().__init__([forms.NumberInput(), forms.Select(choices=LETTERS)])

    def decompress(self, value):
        return [None, None]


class Sample(forms.Form):
    german_day = forms.DateField(
        input_formats=["%d.%m.%Y"], widget=forms.DateInput(format="%d.%m.%Y")
    )
    day = forms.DateField(widget=forms.SelectDateWidget(years=[2026], empty_label=None))
    few = forms.MultipleChoiceField(choices=[("a", "A"), ("b", "B")])
    odd_few = forms.MultipleChoiceField(choices=[("a", "A")], widget=OddSelectMultiple)
    odd_choice = forms.ChoiceField(choices=[("a", "A")], widget=Odd)
    odd = forms.CharField(widget=Odd)
    broken = forms.CharField(widget=Broken)
    count = forms.IntegerField()
    took = forms.DurationField()
    price = forms.MultiValueField([forms.IntegerField(), forms.ChoiceField(choices=LETTERS)],
                                  widget=Money)  # fmt: skip
    plain_file = forms.FileField(required=False, widget=forms.FileInput)
    group = forms.ModelChoiceField(Group.objects.none(), widget=OddSelect)
    many = forms.ChoiceField(choices=[(str(at), at) for at in range(30)])


@pytest.mark.parametrize(
    ("name", "value", "pairs"),
    [
        ("german_day", "2026-01-31", [("german_day", "31.01.2026")]),
        ("few", ["a", "b"], [("few", "a"), ("few", "b")]),
        ("few", [], []),
        ("odd_few", ["a"], [("odd_few", "a")]),
        ("odd_choice", "a", [("odd_choice", "a")]),
        ("odd", "x", [("odd", "x")]),
        ("price", [5, "b"], [("price_0", "5"), ("price_1", "b")]),
        ("price", None, [("price_0", ""), ("price_1", "")]),
        ("day", "2026-01-31", [("day_year", "2026"), ("day_month", "1"), ("day_day", "31")]),
    ],
)
def test_a_value_is_sent_as_the_widget_of_its_field_reads_it(name, value, pairs):
    assert encode(Sample()[name], value) == pairs


@pytest.mark.django_db
def test_a_widget_that_nobody_knows_is_rendered_with_the_key_of_a_record():
    group = Group.objects.create(name="g")
    form = Sample()
    form.fields["group"].queryset = Group.objects.all()

    pairs = encode(form["group"], "g", find=lambda field, value: str(group.pk))

    assert pairs == [("group", str(group.pk))]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("few", "a", "'a' is not a list of choices."),
        ("few", ["a"] * 1001, "A list is not a list of choices."),
        ("few", ["c"], "'c' is not one of: a, b."),
        ("few", [{}], "An object is not one of: a, b."),
        ("many", "x", "18, 19, ...."),
        ("count", True, "true is not a number."),
        ("count", "__5", "'__5' is not a number."),
        ("count", "nan", "'nan' is out of range."),
        ("took", " ", "' ' is not a duration such as"),
        ("took", "P110000000D", "'P110000000D' is not a duration such as P1DT2H30M."),
        ("broken", "x", "'x' is not a value for this field."),
        ("price", 5, "5 is not a list of 2 parts"),
        ("price", [5], "A list is not a list of 2 parts"),
        ("price", [5, "b", "c"], "A list is not a list of 2 parts"),
        ("plain_file", None, "This file cannot be taken away."),
    ],
)
def test_what_would_be_taken_for_something_else_is_refused(name, value, words):
    with pytest.raises(InvalidValue) as caught:
        encode(Sample()[name], value)

    assert words in str(caught.value)


class Amount(forms.MultiValueField):
    def compress(self, data_list):
        return " ".join(map(str, data_list))


def amount():
    parts = [forms.IntegerField(), forms.ChoiceField(choices=LETTERS)]
    return Amount(fields=parts, widget=Money)


@pytest.mark.parametrize(
    ("field", "value", "cleaned"),
    [
        (forms.IntegerField(localize=True), 1e3, 1000),
        (forms.FloatField(localize=True), 0.1, 0.1),
        (forms.FloatField(), 5e-324, 5e-324),
        (forms.DateField(input_formats=["%d.%m.%Y"]), "2026-01-31", date(2026, 1, 31)),
        (forms.DateTimeField(), "2026-10-25T00:30:00.000001Z",
         datetime(2026, 10, 25, 0, 30, 0, 1, UTC)),
        (forms.SplitDateTimeField(), "2026-01-31T12:00:00.5Z",
         datetime(2026, 1, 31, 12, 0, 0, 500_000, UTC)),
        (forms.TimeField(input_formats=["%H"]), "14:30:01", time(14, 30, 1)),
        (forms.MultipleChoiceField(choices=LETTERS), ["a", 3], ["a", "3"]),
        (forms.CharField(widget=Broken), "x", "x"),
        # Whatever the field makes of its parts.
        (amount(), [5, "b"], "5 b"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, forms.Field) else str(value)[:20],
)  # fmt: skip
def test_a_field_understands_the_value_that_was_sent(field, value, cleaned):
    with translation.override("de"), timezone.override("Europe/Berlin"):
        got = understood(field, value)

    if isinstance(got, datetime):
        # Of times in the hour that comes twice no two zones are ever equal.
        got = got.astimezone(UTC)
    assert got == cleaned
    assert isinstance(got, type(cleaned))


class Tags(forms.CharField):
    """As packages have it: a list becomes a text, and clean trusts its widget."""

    def prepare_value(self, value):
        return ", ".join(value or ())

    def clean(self, value):
        return value.split(", ")


class Flags(forms.IntegerField):
    def clean(self, value):
        return sum(value)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        (Tags(), ["a", "b"], "A list is not a text."),
        (Tags(), {"add": ["a"]}, "An object is not a text."),
        (Flags(), 5, "This field cannot hold '5'."),
    ],
    ids=["list", "object", "number"],
)
def test_a_field_of_a_package_gets_what_its_schema_says_and_refuses_in_words(field, value, words):
    with pytest.raises((InvalidValue, ValidationError)) as caught:
        understood(field, value)

    assert words in str(caught.value)


class Color(Enum):
    RED = "r"


class ByName(forms.ChoiceField):
    def prepare_value(self, value):
        return value.name if isinstance(value, Color) else value


def test_a_picture_with_a_point_in_it_can_be_set_only_in_a_browser():
    parts = [forms.FileField(), forms.CharField()]

    assert not takes_json(Amount(fields=parts, widget=Money))
    assert takes_json(amount())


@pytest.mark.parametrize(
    ("field", "initial", "data"),
    [
        (forms.ChoiceField(choices=LETTERS), None, "a"),
        (ByName(choices=[("RED", "Red")]), Color.RED, "RED"),
        (forms.ChoiceField(choices=LETTERS, widget=forms.RadioSelect), None, None),
        (forms.CharField(), "x", "x"),
        (amount(), None, [None, None]),
        (forms.FileField(), None, None),
    ],
    ids=["select", "enum", "radio", "text", "parts", "file"],
)
def test_a_field_that_is_not_sent_begins_as_its_page_shows_it(field, initial, data):
    assert data_of_initial(field, initial) == data


def test_a_field_that_makes_another_value_of_what_was_sent_refuses_it():
    class Rounded(forms.DecimalField):
        def to_python(self, value):
            return round(super().to_python(value), 1)

    with pytest.raises(ValidationError, match=r"This field cannot hold '1\.25'"):
        check_understood(Rounded().clean, Decimal("1.25"), meant=Decimal("1.25"))


def test_the_elements_of_an_array_are_stored_as_they_were_sent():
    arrays = pytest.importorskip("django.contrib.postgres.forms", reason="it needs psycopg")
    words = arrays.SimpleArrayField(forms.CharField(), required=False)
    matrix = arrays.SimpleArrayField(arrays.SimpleArrayField(forms.IntegerField()))

    for field, value in [(words, ["a,b", "c"]), (words, []), (matrix, [[1, 2], [3, 4]])]:
        assert check_understood(field.clean, data_of(field, value), meant=value) == value


@override_settings(USE_TZ=False, TIME_ZONE="Europe/Berlin")
def test_without_time_zones_a_time_with_an_offset_is_a_local_one():
    field = forms.DateTimeField()

    assert parsed(field, "2026-01-31T12:00:00Z") == datetime(2026, 1, 31, 13, 0)
    assert parsed(field, "2026-01-31T12:00:00") == datetime(2026, 1, 31, 12, 0)


def test_a_time_that_a_field_of_the_site_makes_aware_is_still_the_one_that_was_meant():
    assert is_same(datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC))
    assert is_same(datetime(2026, 1, 1), datetime(2026, 1, 1))
