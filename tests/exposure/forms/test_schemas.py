from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from uuid import UUID

import jsonschema_rs
import pytest
from django import forms
from django.core import validators
from django.test import override_settings
from django.utils.translation import gettext_lazy as _
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_django.exceptions import NotAskable
from mcp_django.exposure import fields as broken_fields
from mcp_django.exposure.forms.schemas import (
    MOST_CHOICES,
    MOST_RECORDS,
    Describer,
    plain,
)
from mcp_django.exposure.functions.site_schemas import RawSchema
from mcp_django.protocol.revisions import Revision
from tests.library.models import Author, Book, Copy, Genre

BEFORE_TITLES = Revision.V2025_06_18.features


def form_schema(form, **options):
    return Describer(**options).form(form)


def formset_schema(formset):
    names = formset.empty_form.fields.keys() - {"DELETE", "ORDER"}
    return Describer(partial=True).formset(formset, names=names)


def field_schema(field, **options):
    return Describer(**options).field(field, field.initial)


def form_of(**fields):
    return type("SomeForm", (forms.Form,), fields)()


def schema_of(field, **options):
    """What a form says of one field, without its title."""
    schema = form_schema(form_of(it=field), **options)["properties"]["it"]
    schema.pop("title", None)
    return schema


# One field

CHOICES = [("", "---"), (_("Group"), [("a", _("A")), ("a", "again")]), (2, "B")]


@pytest.mark.parametrize(
    ("field", "schema"),
    [
        (forms.CharField(max_length=5), {"type": "string", "maxLength": 5, "minLength": 1}),
        (forms.CharField(min_length=2), {"type": "string", "minLength": 2}),
        (forms.CharField(required=False), {"type": ["string", "null"]}),
        (forms.IntegerField(min_value=1, max_value=lambda: 9),
         {"type": "integer", "minimum": 1, "maximum": 9}),
        (forms.IntegerField(validators=[validators.MinValueValidator(3)], min_value=1),
         {"type": "integer", "minimum": 3}),
        (forms.IntegerField(validators=[validators.MaxValueValidator(3)], max_value=9),
         {"type": "integer", "maximum": 3}),
        (forms.IntegerField(max_value=10**30, min_value=-(10**30)), {"type": "integer"}),
        (forms.FloatField(max_value=0.5, min_value=float("-inf")),
         {"type": "number", "maximum": 0.5}),
        (forms.FloatField(required=False), {"type": ["number", "null"]}),
        (forms.DecimalField(max_value=Decimal("1.5"), required=False),
         {"type": ["number", "string", "null"], "maximum": 1.5}),
        (forms.BooleanField(), {"type": "boolean", "const": True}),
        (forms.BooleanField(required=False), {"type": "boolean"}),
        (forms.NullBooleanField(), {"type": ["boolean", "null"]}),
        (forms.DateField(), {"type": "string", "format": "date"}),
        (forms.DateTimeField(), {"type": "string", "format": "date-time"}),
        (forms.SplitDateTimeField(), {"type": "string", "format": "date-time"}),
        (forms.TimeField(), {"type": "string", "description": "Such as 14:30:00."}),
        (forms.DurationField(required=False, help_text="How long."),
         {"type": ["string", "null"], "description": "How long. Such as P1DT2H30M."}),
        (forms.UUIDField(), {"type": "string", "format": "uuid"}),
        (forms.EmailField(max_length=9),
         {"type": "string", "format": "email", "maxLength": 9, "minLength": 1}),
        (forms.URLField(required=False, max_length=None, assume_scheme="https"),
         {"type": ["string", "null"], "format": "uri"}),
        (forms.SlugField(), {"type": "string", "minLength": 1}),
        (forms.ChoiceField(choices=CHOICES), {
            "type": "string",
            "oneOf": [{"const": "a", "title": "Group: A"}, {"const": "2", "title": "B"}],
        }),
        (forms.ChoiceField(choices=lambda: [("a", "A")], required=False), {
            "type": ["string", "null"],
            "oneOf": [{"const": "a", "title": "A"}, {"const": None}],
        }),
        (forms.TypedChoiceField(choices=[(None, "---"), (False, "No")], coerce=bool),
         {"type": "string", "oneOf": [{"const": "False", "title": "No"}]}),
        (forms.ChoiceField(choices=[]), {"type": "string"}),
        (forms.ChoiceField(choices=[(n, n) for n in range(MOST_CHOICES + 1)]),
         {"type": "string", "description": "One of 101 choices."}),
        (forms.MultipleChoiceField(choices=[("a", "A")]), {
            "type": "array",
            "items": {"anyOf": [{"const": "a", "title": "A"}]},
            "minItems": 1,
            "uniqueItems": True,
        }),
        (forms.MultipleChoiceField(choices=[], required=False),
         {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (forms.JSONField(), {}),
        (forms.MultiValueField(fields=[forms.DecimalField(), forms.ChoiceField(choices=["ab"])]), {
            "type": "array",
            "prefixItems": [
                {"type": ["number", "string"]},
                {"type": "string", "oneOf": [{"const": "a", "title": "b"}]},
            ],
            "minItems": 2,
            "maxItems": 2,
            "description": 'Such as [1, "a"].',
        }),
        (forms.MultiValueField(fields=[forms.DateField()], required=False), {
            "type": ["array", "null"],
            "prefixItems": [{"type": "string", "format": "date"}],
            "minItems": 1,
            "maxItems": 1,
            "description": 'Such as ["2026-01-31"].',
        }),
        (forms.MultiValueField(
            fields=[forms.IntegerField(required=False)], require_all_fields=False
        ), {
            "type": "array",
            "prefixItems": [{"type": ["integer", "null"]}],
            "minItems": 1,
            "maxItems": 1,
            "description": "Such as [1].",
        }),
        (forms.FileField(max_length=9), {
            "type": ["object", "string"],
            "properties": {
                "filename": {"type": "string", "minLength": 1, "maxLength": 9},
                "data": {"type": "string", "contentEncoding": "base64"},
            },
            "required": ["filename", "data"],
            "additionalProperties": False,
            "pattern": "^upload://",
            "description": "Or upload://..., of a file that the person put into the admin.",
        }),
    ],
)  # fmt: skip
def test_each_kind_of_field_says_what_it_takes(field, schema):
    assert schema_of(field) == schema


def test_titles_and_help_are_on_one_line_without_html():
    named = forms.CharField(label=_("Name"), help_text="<ul><li>two\n  lines</li></ul>")

    assert field_schema(named)["title"] == "Name"
    assert field_schema(named)["description"] == "two lines"
    assert "title" not in field_schema(forms.CharField())
    form = form_schema(form_of(first_name=forms.CharField()))
    assert form["properties"]["first_name"]["title"] == "First name"


def test_arrays_say_what_is_in_them():
    class ArrayField(forms.CharField):
        """As SimpleArrayField of django.contrib.postgres, which needs its driver."""

        base_field = forms.IntegerField(min_value=0)

    assert schema_of(ArrayField()) == {"type": "array", "items": {"type": "integer", "minimum": 0}}


@override_settings(USE_TZ=False)
def test_without_time_zones_a_time_is_no_date_time_of_json_schema():
    schema = schema_of(forms.DateTimeField())

    assert schema == {"type": "string", "description": "Such as 2026-01-31T14:30:00."}


# Defaults


@pytest.mark.parametrize(
    ("field", "default"),
    [
        (forms.CharField(initial=_("x")), "x"),
        (forms.IntegerField(initial=3), 3),
        (forms.BooleanField(initial=True), True),
        (forms.BooleanField(initial=False, required=False), False),
        (forms.DecimalField(initial=Decimal("1.50")), "1.50"),
        (forms.DateField(initial=date(2026, 1, 1)), "2026-01-01"),
        (forms.DateTimeField(initial=datetime(2026, 1, 1, tzinfo=UTC)),
         "2026-01-01T00:00:00Z"),
        (forms.DurationField(initial=timedelta(hours=1)), "PT3600S"),
        (forms.UUIDField(initial=UUID(int=1)), "00000000-0000-0000-0000-000000000001"),
        (forms.ChoiceField(choices=[(1, "One")], initial=1), "1"),
        (forms.ChoiceField(choices=[(True, "Yes")], initial=True), "True"),
        (forms.MultipleChoiceField(choices=[("a", "A")], initial=("a",)), ["a"]),
        (forms.JSONField(initial={"a": [1, 2.5]}), {"a": [1, 2.5]}),
    ],
)  # fmt: skip
def test_what_the_form_shows_before_anybody_fills_it_in_is_the_default(field, default):
    schema = form_schema(form_of(it=field))

    assert schema["properties"]["it"]["default"] == default
    assert "required" not in schema


@pytest.mark.parametrize(
    "field",
    [
        forms.DateTimeField(initial=datetime.now),
        forms.CharField(initial=lambda: "other each time"),
        forms.CharField(initial="hunter2", widget=forms.PasswordInput),
        forms.IntegerField(initial="many"),
        forms.ChoiceField(choices=[("a", "A")], initial="z"),
        forms.DateTimeField(initial=datetime(2026, 1, 1)),
        forms.FloatField(initial=float("nan")),
        forms.DecimalField(initial=Decimal("inf")),
        forms.IntegerField(initial=10**30),
        forms.JSONField(initial={"a": object()}),
        forms.CharField(initial=object()),
    ],
)
def test_what_holds_for_one_call_or_is_no_answer_is_no_default_but_need_not_be_sent(field):
    schema = form_schema(form_of(it=field))

    assert "default" not in schema["properties"]["it"]
    assert "required" not in schema


# Whole forms


class Order(forms.Form):
    number = forms.CharField()
    copies = forms.IntegerField(initial=1)
    agreed = forms.BooleanField(initial=False)
    perhaps = forms.NullBooleanField(required=True)
    remark = forms.CharField(required=False)
    fixed = forms.CharField(disabled=True)
    token = forms.CharField(widget=forms.HiddenInput)


def test_a_form_takes_what_it_shows_and_needs_what_it_has_not():
    schema = form_schema(Order(initial={"copies": 2}))

    assert list(schema["properties"]) == ["number", "copies", "agreed", "perhaps", "remark"]
    assert schema["required"] == ["number", "agreed"]
    assert schema["additionalProperties"] is False
    # What the form begins with goes before what its field does.
    assert schema["properties"]["copies"]["default"] == 2


# Forms for a person


class Question(forms.Form):
    name = forms.CharField(max_length=9, initial="x", label="Name")
    mail = forms.EmailField(required=False)
    at = forms.DateTimeField(required=False)
    clock = forms.TimeField(required=False)
    ref = forms.UUIDField(required=False)
    slug = forms.SlugField(required=False)
    count = forms.IntegerField(min_value=1, initial=2)
    price = forms.DecimalField(max_digits=5)
    agreed = forms.BooleanField(initial=True)
    perhaps = forms.NullBooleanField()
    one = forms.ChoiceField(choices=CHOICES, required=False, initial="a")
    hidden = forms.CharField(widget=forms.HiddenInput)


#: PrimitiveSchemaDefinition of the specification: what may stand beside each type.
COMMON = {"type", "title", "description", "default"}
ALLOWED = {
    "string": COMMON | {"minLength", "maxLength", "format", "oneOf"},
    "number": COMMON | {"minimum", "maximum"},
    "integer": COMMON | {"minimum", "maximum"},
    "boolean": COMMON,
    "array": COMMON | {"minItems", "maxItems", "items"},
}


def test_a_flat_form_holds_only_what_the_specification_names():
    class More(Question):
        many = forms.MultipleChoiceField(choices=CHOICES)

    schema = form_schema(More(), flat=True)

    assert set(schema) == {"type", "properties", "required"}
    assert "hidden" not in schema["properties"]
    for one in schema["properties"].values():
        assert set(one) <= ALLOWED[one["type"]]
        assert one.get("format") in {None, "email", "uri", "date", "date-time"}
    assert set(schema["properties"]["many"]["items"]) == {"anyOf"}
    assert schema["properties"]["one"]["default"] == "a"
    assert schema["required"] == ["price", "many"]


def test_before_titled_choices_a_flat_form_has_two_lists_and_no_defaults():
    schema = form_schema(Question(), flat=True, features=BEFORE_TITLES)

    one = {key: schema["properties"]["one"][key] for key in ("type", "enum", "enumNames")}
    assert one == {"type": "string", "enum": ["a", "2"], "enumNames": ["Group: A", "B"]}
    defaults = {name for name, one in schema["properties"].items() if "default" in one}
    assert defaults == {"agreed"}
    several = forms.MultipleChoiceField(choices=[("a", "A")])
    assert field_schema(several, flat=True)["type"] == "array"
    with pytest.raises(NotAskable):
        field_schema(several, flat=True, features=BEFORE_TITLES)


@pytest.mark.parametrize(
    "field",
    [
        forms.FileField(),
        forms.JSONField(),
        forms.MultiValueField(fields=[forms.CharField()]),
        forms.CharField(widget=forms.PasswordInput),
        forms.MultipleChoiceField(choices=[]),
    ],
)
def test_what_no_person_can_be_asked_for_is_left_out_or_refused(field):
    with pytest.raises(NotAskable, match=r"^A person cannot be asked for it in a form\.$"):
        form_schema(form_of(it=field), flat=True)

    field.required = False
    assert form_schema(form_of(it=field), flat=True)["properties"] == {}


# Records


@pytest.mark.django_db
def test_few_records_are_listed_and_many_are_not():
    first = Genre.objects.create(code="g0")
    by_code = forms.ModelChoiceField(Genre.objects.all(), to_field_name="code")
    by_key = forms.ModelMultipleChoiceField(Genre.objects.all(), required=False)

    by_code.initial = "g0"
    assert schema_of(by_code)["oneOf"] == [{"const": "g0", "title": "g0"}]
    assert schema_of(by_code)["default"] == "g0"
    assert schema_of(by_key)["items"] == {"anyOf": [{"const": str(first.pk), "title": "g0"}]}

    Genre.objects.bulk_create(Genre(code=f"g{n}") for n in range(1, MOST_RECORDS + 1))
    assert schema_of(by_code) == {"type": ["string", "integer"], "description": "Key of a genre."}
    # It is the default only where it is listed.
    assert schema_of(by_key)["items"]["type"] == ["string", "integer"]
    assert schema_of(by_code, flat=True)["type"] == "string"
    with pytest.raises(NotAskable):
        field_schema(by_key, flat=True)


# Rows


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("options", "rows", "is_accepted"),
    [
        ({}, [{"pk": 5, "remark": "torn"}, {"pk": "7", "delete": True}, {"number": 3}], True),
        ({}, [{"remark": "no number"}], False),
        ({}, [{"pk": 5, "id": 6}], False),
        ({"max_num": 0}, [{"number": 1}], False),
        ({"max_num": 0}, [{"pk": 5, "number": 1}], True),
        ({"can_delete": False}, [{"pk": 5, "delete": True}], False),
    ],
)
def test_stored_rows_are_named_by_their_key_and_new_ones_must_be_whole(options, rows, is_accepted):
    kind = forms.inlineformset_factory(Book, Copy, fields=["number", "remark"], extra=0, **options)

    schema = formset_schema(kind(instance=Book()))

    assert (RawSchema(schema, what="The rows").fault(rows) is None) is is_accepted


# What a field has accepted fits its schema

TEXTS = st.one_of(
    st.text(max_size=12),
    st.integers().map(str),
    st.decimals().map(str),
    st.floats().map(str),
    st.dates().map(str),
    st.datetimes().map(str),
    st.datetimes(timezones=st.just(UTC)).map(lambda one: one.isoformat()),
    st.times().map(str),
    st.timedeltas().map(str),
    st.uuids().map(str),
    st.emails(),
    st.ip_addresses().map(str),
    st.sampled_from(["true", "false", "https://example.com/a?b#c", "new", "1", "2", "ABC", "{}"]),
)
MODEL_FIELDS = {
    field.name: field
    for field in Book._meta.get_fields()
    if getattr(field, "editable", False) and not field.is_relation and field.concrete
}
#: The data of files are no part of what is cleaned.
CLEANED = [name for name in MODEL_FIELDS if name not in ("id", "scan")]


def as_sent(field, value):
    """A cleaned value as somebody would send it."""
    if isinstance(field, forms.JSONField):
        return plain(value)
    if value in field.empty_values:
        return None
    return str(value) if isinstance(field, forms.ChoiceField) else plain(value)


@cache
def form_for(name):
    return forms.modelform_factory(Book, fields=[name])


@pytest.mark.thorough
@pytest.mark.parametrize("name", CLEANED)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS)
def test_what_the_form_of_a_model_has_accepted_fits_its_schema(name, text):
    form = form_for(name)({name: text})
    schema = form_schema(form)["properties"][name]
    jsonschema_rs.meta.validate(schema)
    if schema.get("format") in ("uri", "email"):
        del schema["format"]  # Django accepts more than the standards: names in other scripts
    if not form.is_valid():
        return

    try:
        sent = as_sent(form.fields[name], form.cleaned_data[name])
    except ValueError:  # JSON of Python may be NaN
        return

    assert RawSchema(schema, what="It").fault(sent) is None


@pytest.mark.django_db
def test_what_the_model_asks_for_is_told_too_unless_the_form_converts():
    class Percent(forms.IntegerField):
        pass

    class BookForm(forms.ModelForm):
        pages = Percent()
        extra = forms.IntegerField()

        class Meta:
            model = Book
            fields = ["stars", "code", "pages"]

    told = form_schema(BookForm())["properties"]

    assert (told["stars"]["minimum"], told["stars"]["maximum"]) == (1, 5)
    assert "maximum" not in told["pages"]
    assert "maximum" not in told["extra"]
    rows = forms.inlineformset_factory(Author, Book, fk_name="author", fields=["stars"])
    schema = formset_schema(rows(instance=Author(pk=1)))
    assert schema["items"]["properties"]["stars"]["maximum"] == 5


def test_choices_whose_titles_say_nothing_more_are_a_plain_list():
    colors = [("red", "red"), ("blue", "blue")]

    one = field_schema(forms.ChoiceField(choices=colors), flat=True)
    many = field_schema(forms.MultipleChoiceField(choices=colors), flat=True)

    assert one["enum"] == many["items"]["enum"] == ["red", "blue"]


def test_a_field_may_say_what_it_takes():
    class Year(forms.CharField):
        mcp_schema = {"type": "string", "pattern": "^[0-9]{4}$"}

    assert field_schema(Year(), flat=True) == Year.mcp_schema


def no_choices():
    raise LookupError("no choices today")


def test_a_field_that_cannot_be_described_leaves_the_others(monkeypatch, caplog):
    monkeypatch.setattr(broken_fields, "logged", set())
    form = form_of(name=forms.CharField(), odd=forms.ChoiceField(choices=no_choices))

    schemas = [form_schema(form), form_schema(form)]

    for schema in schemas:
        assert schema["properties"]["odd"] == {}
        assert schema["required"] == ["name", "odd"]
    assert caplog.text.count(".odd cannot be described.") == 1
    with pytest.raises(LookupError):
        form_schema(form, flat=True)
