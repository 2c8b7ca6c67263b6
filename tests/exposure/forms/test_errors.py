from __future__ import annotations

import pytest
from django import forms
from django.core.exceptions import ValidationError

from mcp_django.exposure.forms import schemas
from mcp_django.exposure.forms.schemas import MOST_ALLOWED, Describer
from tests.library.models import Book, Copy, Genre


def errors_of(form, formsets=()):
    found = {}
    for path, error in schemas.errors_of(form, formsets, describer=Describer()):
        found.setdefault(path, []).append(error)
    return found


class Some(forms.Form):
    count = forms.IntegerField(max_value=3)
    one = forms.ChoiceField(choices=[("", "---"), ("x", [("a", "A"), (2, "B")])])
    many = forms.MultipleChoiceField(choices=[(n, n) for n in range(50)])

    def clean(self):
        raise ValidationError("Not today.", code="closed")


def test_errors_are_found_by_field_with_what_would_have_been_right():
    found = errors_of(Some({"count": "9", "one": "zzz", "many": ["1", "99"]}))

    message = "Ensure this value is less than or equal to 3."
    assert found["count"] == [{"message": message, "code": "max_value"}]
    assert found["one"][0]["allowed"] == ["a", "2"]
    assert found["many"][0]["allowed"] == [str(n) for n in range(MOST_ALLOWED)]
    assert found[""] == [{"message": "Not today.", "code": "closed"}]


def test_other_faults_have_nothing_that_is_allowed():
    class Own(forms.Form):
        even = forms.CharField()
        empty = forms.ChoiceField(choices=[])

        def clean_even(self):
            raise ValidationError("No.", code="invalid_choice")

    found = errors_of(Own({"even": "3", "empty": "x"}))

    assert found["even"] == [{"message": "No.", "code": "invalid_choice"}]
    assert "allowed" not in found["empty"][0]


@pytest.mark.django_db
def test_records_that_could_have_been_chosen_are_told_where_they_are_few():
    class Own(forms.Form):
        genre = forms.ModelChoiceField(Genre.objects.all())

    genre = Genre.objects.create(code="g")
    assert errors_of(Own({"genre": "0"}))["genre"][0]["allowed"] == [str(genre.pk)]

    Genre.objects.bulk_create(Genre(code=f"g{n}") for n in range(30))
    assert "allowed" not in errors_of(Own({"genre": "0"}))["genre"][0]


def rows(**data):
    kind = forms.inlineformset_factory(Book, Copy, fields=["number"], extra=2)
    counts = {"copies-TOTAL_FORMS": "2", "copies-INITIAL_FORMS": "0"}
    return kind({**counts, **data}, instance=Book(), prefix="copies")


@pytest.mark.django_db
def test_faults_of_rows_are_told_by_row_and_those_of_all_rows_by_their_prefix():
    class Fine(forms.Form):
        pass

    wrong = rows(**{"copies-0-number": "x", "copies-1-number": "1"})
    twice = rows(**{"copies-0-number": "1", "copies-1-number": "1"})

    assert [*errors_of(Fine({}), [wrong])] == ["copies-0.number"]
    assert [*errors_of(Fine({}), [twice])] == ["copies", "copies-1"]
