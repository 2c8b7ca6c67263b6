from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django import forms
from django.utils import translation
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_django.exposure.forms.schemas import Describer
from mcp_django.exposure.questions.conversation import faults_of, fill_in_answers
from mcp_django.protocol.revisions import MODERN
from tests.shop.models import Customer, Order

FEATURES = MODERN[-1].features


class EverythingForm(forms.Form):
    text = forms.CharField(max_length=10, required=False)
    whole = forms.IntegerField(required=False, min_value=1)
    amount = forms.DecimalField(required=False, decimal_places=2)
    share = forms.FloatField(required=False)
    tick = forms.BooleanField(required=False)
    either = forms.NullBooleanField(required=False)
    day = forms.DateField(required=False)
    moment = forms.DateTimeField(required=False)
    split = forms.SplitDateTimeField(required=False)
    span = forms.DurationField(required=False)
    mail = forms.EmailField(required=False)
    color = forms.ChoiceField(choices=[("r", "Red"), ("b", "Blue")], required=False)
    number = forms.TypedChoiceField(choices=[(1, "One"), (2, "Two")], coerce=int, required=False)
    colors = forms.MultipleChoiceField(choices=[("r", "Red"), ("b", "Blue")], required=False)
    boxes = forms.MultipleChoiceField(
        choices=[("r", "Red"), ("b", "Blue")], widget=forms.CheckboxSelectMultiple, required=False
    )


def read(form, **content):
    form = form() if isinstance(form, type) else form
    schema = Describer(flat=True, features=FEATURES).form(form)
    is_valid = fill_in_answers(form, content, schema["properties"])
    return form.cleaned_data if is_valid else faults_of(form)


@pytest.mark.parametrize(
    ("name", "sent", "value"),
    [
        ("text", "a", "a"), ("text", 5, "5"), ("text", "", ""), ("text", None, ""),
        ("whole", 5, 5), ("whole", "6", 6), ("whole", 5.0, 5),
        ("amount", 19.99, Decimal("19.99")), ("amount", "19.99", Decimal("19.99")),
        ("share", 0.5, 0.5), ("tick", True, True), ("tick", False, False),
        ("either", True, True), ("either", False, False), ("day", "2026-01-31", date(2026, 1, 31)),
        ("moment", "2026-01-31T14:30:00Z", datetime(2026, 1, 31, 14, 30, tzinfo=UTC)),
        ("moment", "2026-01-31T14:30:00+02:00", datetime(2026, 1, 31, 12, 30, tzinfo=UTC)),
        ("split", "2026-01-31T14:30:00Z", datetime(2026, 1, 31, 14, 30, tzinfo=UTC)),
        ("span", "P1DT2H", timedelta(days=1, hours=2)), ("mail", "a@b.example", "a@b.example"),
        ("color", "b", "b"), ("number", "1", 1), ("number", 2, 2),
        ("colors", ["r", "b"], ["r", "b"]),
        ("boxes", ["b"], ["b"]), ("colors", [], []),
    ],
)  # fmt: skip
def test_a_field_reads_what_its_schema_says(name, sent, value):
    assert read(EverythingForm, **{name: sent})[name] == value


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("text", True), ("text", ["a"]), ("text", {"a": 1}), ("text", "x" * 11),
        ("whole", True), ("whole", 0), ("whole", 10**400), ("whole", 1.5), ("whole", "five"),
        ("amount", 1.999), ("amount", float("nan")), ("share", float("inf")), ("tick", "yes"),
        ("tick", 1), ("tick", None), ("either", "false"), ("day", "31 January"), ("day", 5),
        ("moment", "2026-02-31T14:30:00Z"), ("split", "2026-02-31T14:30:00Z"), ("split", "soon"),
        ("color", "green"), ("color", ["r"]), ("colors", "r"), ("colors", [1]),
        ("colors", ["green"]), ("boxes", [["r"]]),
    ],
)  # fmt: skip
def test_a_field_takes_nothing_else_and_says_so(name, sent):
    label = EverythingForm.base_fields[name].label or name.capitalize()

    assert read(EverythingForm, **{name: sent}).startswith(f"{label}: ")


@settings(deadline=None)
@given(
    content=st.dictionaries(
        st.sampled_from([*EverythingForm.base_fields, "other"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
            ),
            max_leaves=5,
        ),
    )
)
def test_any_content_is_read_or_refused_in_words(content):
    assert read(EverythingForm, **content)


def test_what_is_left_out_stays_as_the_form_had_it():
    class PresetForm(forms.Form):
        name = forms.CharField(initial="Ada")
        day = forms.DateField(initial=lambda: date(2026, 1, 31))
        news = forms.BooleanField(initial=True, required=False)
        reference = forms.CharField(widget=forms.HiddenInput, initial="x-1")
        fixed = forms.CharField(disabled=True, initial="always")
        moment = forms.SplitDateTimeField(initial=datetime(2026, 1, 31, 14, 30, tzinfo=UTC))

    found = read(PresetForm, reference="made up", fixed="made up")

    times = {"day": date(2026, 1, 31), "moment": datetime(2026, 1, 31, 14, 30, tzinfo=UTC)}
    assert found == {"name": "Ada", "news": True, "reference": "x-1", "fixed": "always", **times}


def test_a_form_may_have_a_word_about_all_of_its_fields_and_speaks_the_language_of_the_person():
    class RangeForm(forms.Form):
        since = forms.IntegerField()
        until = forms.IntegerField()

        def clean(self):
            if self.cleaned_data["since"] > self.cleaned_data["until"]:
                raise forms.ValidationError("The end comes before the start.")
            return self.cleaned_data

    assert read(RangeForm, since=2, until=1) == "The end comes before the start."
    assert read(RangeForm, since=1, until=2) == {"since": 1, "until": 2}
    with translation.override("de"):
        assert read(EverythingForm, color="green").startswith("Color: Bitte eine gültige Auswahl")


@pytest.mark.django_db
def test_a_record_is_chosen_by_its_key():
    class CustomerForm(forms.Form):
        customer = forms.ModelChoiceField(Customer.objects.exclude(country="XX"))

    anne = Customer.objects.create(name="Anne", country="FR")
    hidden = Customer.objects.create(name="Eve", country="XX")

    assert read(CustomerForm, customer=str(anne.pk)) == {"customer": anne}
    assert read(CustomerForm, customer=str(hidden.pk)).startswith("Customer: Select a valid")


@pytest.mark.django_db
def test_a_model_form_that_was_asked_can_be_saved():
    class OrderForm(forms.ModelForm):
        class Meta:
            model = Order
            fields = ["number", "status", "total"]

    order = Order.objects.create(number="A-1", total=5)
    form = OrderForm(instance=order, prefix="x")

    read(form, number="A-2")
    form.save()

    order.refresh_from_db()
    assert (order.number, order.status, order.total) == ("A-2", "new", 5)
