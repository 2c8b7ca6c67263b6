"""One JSON value becomes what a browser would send, for fields that no admin has by itself."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import (
    AdminSplitDateTime,
    AdminURLFieldWidget,
    RelatedFieldWidgetWrapper,
)
from django.contrib.auth.models import AnonymousUser, Group
from django.forms.renderers import get_default_renderer
from django.test import override_settings
from django.utils import translation

from mcp_django.exposure.forms.html import successful
from mcp_django.exposure.forms.schemas import InvalidValue
from mcp_django.exposure.forms.values import (
    Post,
    as_shown,
    controls_of,
    has_context,
    html_of,
    is_same,
    meaning,
    parsed,
)


def encode(bound, value, *, find=None):
    post = Post(user=AnonymousUser())
    post.fill_in(bound, value, find=find)
    return post


class Odd(forms.TextInput):
    """Reads in its own way, so that nothing is known of it."""

    def value_from_datadict(self, data, files, name):
        return data.get(name)


class Broken(Odd):
    def render(self, *args, **kwargs):
        raise AttributeError


class OddSelect(forms.Select):
    def value_from_datadict(self, data, files, name):
        return data.get(name)


class Sample(forms.Form):
    german_day = forms.DateField(
        input_formats=["%d.%m.%Y"], widget=forms.DateInput(format="%d.%m.%Y")
    )
    day = forms.DateField(widget=forms.SelectDateWidget(years=[2026], empty_label=None))
    few = forms.MultipleChoiceField(choices=[("a", "A"), ("b", "B")])
    odd_few = forms.MultipleChoiceField(
        choices=[("a", "A")],
        widget=type(
            "OddSelect",
            (forms.SelectMultiple,),
            {"value_from_datadict": lambda self, data, files, name: data.getlist(name)},
        ),
    )
    odd_choice = forms.ChoiceField(choices=[("a", "A")], widget=Odd)
    broken = forms.CharField(widget=Broken)
    odd = forms.CharField(widget=Odd)
    plain_file = forms.FileField(required=False, widget=forms.FileInput)
    odd_group = forms.ModelChoiceField(Group.objects.none(), widget=OddSelect)
    many = forms.ChoiceField(choices=[(str(at), at) for at in range(30)])


def pairs(name, value):
    return encode(Sample()[name], value).pairs


def test_a_date_is_written_as_the_field_reads_it():
    assert pairs("german_day", "2026-01-31") == [("german_day", "31.01.2026")]


def test_a_list_of_choices_is_sent_one_by_one():
    assert pairs("few", ["a", "b"]) == [("few", "a"), ("few", "b")]
    assert pairs("few", []) == []
    assert pairs("odd_few", ["a"]) == [("odd_few", "a")]
    assert pairs("odd_choice", "a") == [("odd_choice", "a")]
    assert pairs("odd", "x") == [("odd", "x")]


@pytest.mark.django_db
def test_a_widget_that_nobody_knows_is_rendered_with_the_key():
    group = Group.objects.create(name="g")
    form = Sample()
    form.fields["odd_group"].queryset = Group.objects.all()

    found = encode(form["odd_group"], "g", find=lambda field, value: str(group.pk))

    assert found.pairs == [("odd_group", str(group.pk))]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("few", "a", "'a' is not a list of choices."),
        ("few", ["a"] * 1001, "A list is not a list of choices."),
        ("few", ["c"], "'c' is not one of: a, b."),
        ("few", [{}], "An object is not one of: a, b."),
        ("many", "x", "18, 19, ...."),
        ("day", None, "This field must have a value."),
        ("day", "2027-01-01", "This field cannot hold '2027-01-01'."),
        ("broken", "x", "'x' is not a value for this field."),
        ("plain_file", None, "This file cannot be taken away."),
    ],
)
def test_what_would_be_taken_for_something_else_is_refused(name, value, words):
    with pytest.raises(InvalidValue) as caught:
        pairs(name, value)

    assert words in str(caught.value)


def test_an_untouched_field_is_sent_as_it_is_shown():
    assert as_shown(Sample(initial={"odd": "x"})["odd"]) == [("odd", "x")]


LETTERS = [("a", "A"), ("More", [("b", "B"), (3, "C")])]


def wrapped(widget):
    relation = Group._meta.get_field("permissions").remote_field
    wrapper = RelatedFieldWidgetWrapper(widget, relation, admin.site)
    wrapper.choices = LETTERS
    return wrapper


@pytest.mark.parametrize(
    ("widget", "values"),
    [
        (forms.TextInput(), ["x", None, '"&', " x "]),
        (forms.TextInput({"disabled": True}), ["x"]),
        (forms.Textarea(), ["\n\nx\n", None]),
        (forms.CheckboxInput(), [True, False, "x"]),
        (forms.NullBooleanSelect(), [True, False, None]),
        (forms.Select(choices=LETTERS), ["b", 3, None, "unknown"]),
        (forms.Select(), [None]),
        (forms.SelectMultiple(choices=LETTERS), [["a", 3], [], None]),
        (forms.RadioSelect(choices=LETTERS), ["b", None]),
        (forms.CheckboxSelectMultiple(choices=LETTERS), [["a", "3"], []]),
        (forms.SelectDateWidget(years=[2025, 2026]), ["2026-02-01", None]),
        (forms.SplitDateTimeWidget(), [datetime(2026, 1, 31, 14, 30, tzinfo=UTC), None]),
        (forms.SplitHiddenDateTimeWidget(), [datetime(2026, 1, 31, 14, 30, tzinfo=UTC)]),
        (forms.MultipleHiddenInput(), [["a", "b"], []]),
        (forms.MultiWidget([forms.FileInput(), forms.NumberInput()]), [[None, 5]]),
        (AdminSplitDateTime(), [datetime(2026, 1, 31, 14, 30, tzinfo=UTC)]),
        (AdminURLFieldWidget(), ["https://example.com/?a=b&c"]),
        (wrapped(forms.Select()), ["b"]),
    ],
)
def test_the_context_of_a_widget_tells_what_its_html_would(widget, values):
    assert has_context(widget)
    for value in values:
        html = html_of(widget, "field", value, get_default_renderer())
        found = controls_of(widget, "field", value, get_default_renderer())

        assert found == successful(html), value


def test_a_field_of_several_parts_takes_a_list_of_them_or_nothing():
    field = forms.MultiValueField(
        [forms.IntegerField(), forms.ChoiceField(choices=LETTERS)],
        widget=forms.MultiWidget([forms.NumberInput(), forms.Select(choices=LETTERS)]),
    )
    field.widget.decompress = lambda value: [None, None]
    bound = type("Money", (forms.Form,), {"price": field})()["price"]

    assert encode(bound, [5, "b"]).pairs == [("price_0", "5"), ("price_1", "b")]
    assert encode(bound, None).pairs == [("price_0", ""), ("price_1", "a")]
    for value in (5, [5], [5, "b", "c"]):
        with pytest.raises(InvalidValue, match="is not a list of 2 parts"):
            encode(bound, value)


def test_a_hidden_first_value_is_written_in_the_language_of_the_field():
    price = forms.DecimalField(localize=True, show_hidden_initial=True)
    form = type("Prices", (forms.Form,), {"price": price})(initial={"price": Decimal("1234.5")})

    with translation.override("de"):
        assert as_shown(form["price"]) == [("price", "1234,5"), ("initial-price", "1234,5")]


def test_without_time_zones_a_time_with_an_offset_is_a_local_one():
    field = forms.DateTimeField()
    with override_settings(USE_TZ=False, TIME_ZONE="Europe/Berlin"):
        assert parsed(field, "2026-01-31T12:00:00Z") == datetime(2026, 1, 31, 13, 0)
        assert parsed(field, "2026-01-31T12:00:00") == datetime(2026, 1, 31, 12, 0)
    # A field of the site's own may know better.
    assert is_same(datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC))
    assert is_same(datetime(2026, 1, 1), datetime(2026, 1, 1))


def test_a_part_that_is_a_related_record_is_looked_up_as_such():
    field = forms.ModelChoiceField(queryset=None)

    assert meaning(field, "x", find=lambda one, value: (one is field, value)) == (True, "x")
