from __future__ import annotations

import json

import jsonschema_rs
import pytest
from django.contrib.admin import AdminSite
from django.forms import (
    CharField,
    ModelChoiceField,
    ModelMultipleChoiceField,
    MultiValueField,
    MultiWidget,
    SelectMultiple,
    TextInput,
)

from mcp_django.exceptions import NotAskable
from mcp_django.exposure.admin_bridge.relations import AdminDescriber, Sets
from mcp_django.exposure.forms.schemas import MOST_RECORDS, errors_of
from mcp_django.levels import Level
from mcp_django.models import ExposedModel
from tests.library.admin import AuthorAdmin, BookAdmin, site
from tests.library.models import Author, Book, Genre
from tests.library.rights import library, rights_of

pytestmark = pytest.mark.django_db

SEARCHED = "Key of a library.author, or its name, or text that finds exactly one."


@pytest.fixture(autouse=True)
def _library_site(settings):
    settings.MCP_DJANGO = {"ADMIN_SITES": ["library"]}


@pytest.fixture
def ann():
    return Author.objects.create(name="Ann", country="FR", salary=4711)


@pytest.fixture
def librarian(make_user):
    return make_user("lib", "view_author", "view_book", "change_book", is_staff=True)


def book_form(rights, data=None):
    return site._registry[Book].get_form(rights.request)(data)


def fields_of(rights, **options):
    return AdminDescriber(rights, **options).form(book_form(rights))["properties"]


def author_of(rights):
    return fields_of(rights)["author"]


def only_french(self, request):
    return Author.objects.filter(country="FR")


def only_ann(self, request, obj=None):
    return obj is None or obj.name == "Ann"


def only_country(self, request, obj=None):
    return [(None, {"fields": ["country"]})]


@pytest.mark.parametrize(
    ("methods", "titles"),
    [
        ({}, ["Ann", "Bert"]),
        # By their keys, whatever column the admin orders them by.
        ({"ordering": ["salary"]}, ["Ann", "Bert"]),
        ({"get_queryset": only_french}, ["Ann"]),
        ({"has_view_permission": only_ann}, ["Ann"]),
        # A label that this caller may not see gives way to the key.
        (
            {"get_list_display": lambda *args: ["country"], "get_fieldsets": only_country},
            ["key", "key"],
        ),
    ],
    ids=["all", "ordered", "rows", "judged", "labels"],
)
def test_related_records_are_listed_as_the_caller_sees_them(
    ann, librarian, monkeypatch, methods, titles
):
    bert = Author.objects.create(name="Bert", country="DE", salary=1)
    kind = type("ChangedAdmin", (AuthorAdmin,), methods)
    monkeypatch.setitem(site._registry, Author, kind(Author, site))

    schema = author_of(rights_of(librarian))

    keys = [str(ann.pk), str(bert.pk)][: len(titles)]
    listed = [key if title == "key" else title for key, title in zip(keys, titles, strict=True)]
    assert schema["oneOf"] == [
        {"const": key, "title": title} for key, title in zip(keys, listed, strict=True)
    ]


@pytest.mark.parametrize(
    ("permissions", "options"),
    [
        (["change_book"], {}),
        (["view_author", "change_book"], None),
        (["view_author", "change_book"], {"aggregates_only": True}),
    ],
    ids=["no right", "not exposed", "numbers only"],
)
def test_of_a_hidden_model_nothing_is_listed_and_nothing_named(
    ann, make_user, permissions, options
):
    user = make_user("bob", *permissions, is_staff=True)
    rights = rights_of(user, registry=library(Author=options))
    form = book_form(rights, {"author": "0"})

    schema = author_of(rights)
    [error] = [
        error
        for path, error in errors_of(form, describer=AdminDescriber(rights))
        if path == "author"
    ]

    assert schema == {
        "title": "Author",
        "type": ["string", "integer"],
        "description": "Key of a record.",
    }
    assert "allowed" not in error


def test_no_text_of_a_hidden_column_is_anywhere_in_a_schema_or_an_error(ann, librarian):
    rights = rights_of(librarian)
    form = book_form(rights, {"author": "0"})
    describer = AdminDescriber(rights)

    told = json.dumps([describer.form(form), *errors_of(form, describer=describer)])

    assert f'"{ann.pk}"' in told
    assert "4711" not in told


@pytest.mark.parametrize(
    ("country", "is_listed"), [("DE", True), ("FR", False)], ids=["hidden", "visible"]
)
def test_only_visible_rows_decide_whether_they_are_few_enough_to_be_listed(
    ann, librarian, monkeypatch, country, is_listed
):
    Author.objects.bulk_create(Author(name="A", country=country) for _ in range(MOST_RECORDS))
    monkeypatch.setattr(AuthorAdmin, "get_queryset", only_french)
    rights = rights_of(librarian)

    editor, author = fields_of(rights)["editor"], author_of(rights)

    # The admin has a search for editors.
    assert editor == {
        "title": "Editor",
        "description": SEARCHED,
        "type": ["string", "integer", "null"],
    }
    if is_listed:
        assert author["oneOf"] == [{"const": str(ann.pk), "title": "Ann"}]
    else:
        assert author == {**editor, "title": "Author", "type": ["string", "integer"]}


def test_where_no_related_record_is_visible_the_field_takes_a_key(librarian):
    assert author_of(rights_of(librarian))["description"] == SEARCHED


def test_a_key_that_records_do_not_show_is_not_listed(make_user):
    Genre.objects.create(code="crimson")
    user = make_user("root", is_staff=True, is_superuser=True)
    rights = rights_of(user, registry=library(Genre={"fields": ["id"], "label_fields": []}))

    schema = fields_of(rights)

    assert "crimson" not in json.dumps(schema)
    assert len(schema["keywords"]["items"]["anyOf"]) == 1


def test_fields_behind_a_key_of_their_own_are_listed_by_that_key(make_user):
    Genre.objects.create(code="crime")
    rights = rights_of(make_user("root", is_staff=True, is_superuser=True))

    schema = fields_of(rights)

    assert schema["genre"]["oneOf"][0] == {"const": "crime", "title": "crime"}
    assert schema["keywords"]["items"]["anyOf"][0]["title"] == "crime"


def accepts(schema, *values):
    jsonschema_rs.meta.validate(schema)
    return [jsonschema_rs.is_valid(schema, value) for value in values]


VALUES = ([], ["1"], {"add": ["1"], "remove": []}, {"set": []}, {"set": [], "add": []}, {}, None)


def test_a_set_is_a_list_or_an_object_or_either_as_the_tool_takes_it(librarian):
    librarian.is_superuser = True
    genre = Genre.objects.create(code="crime", pk=1)
    rights = rights_of(librarian)
    field = ModelMultipleChoiceField(Genre.objects.all())

    whole, changed, either = (
        AdminDescriber(rights, partial=True, sets=sets).field(field, None) for sets in Sets
    )

    assert accepts(whole, *VALUES) == [False, True, False, False, False, False, False]
    assert accepts(changed, *VALUES) == [False, False, True, True, False, False, False]
    assert accepts(either, *VALUES) == [False, True, True, True, False, False, False]
    assert not jsonschema_rs.is_valid(changed, {"add": ["no such"]})
    for schema in (whole, changed, either):
        assert json.dumps(schema).count(f'"{genre.code}"') == 1


def test_a_set_that_is_a_part_of_a_value_is_a_list(librarian):
    class Pair(MultiValueField):
        widget = MultiWidget([TextInput, SelectMultiple])

    field = Pair([CharField(), ModelMultipleChoiceField(Genre.objects.all(), required=False)])

    schema = AdminDescriber(rights_of(librarian), sets=Sets.CHANGED).field(field, None)

    assert [part["type"] for part in schema["prefixItems"]] == ["string", "array"]


def test_a_person_can_be_asked_the_same_in_a_flat_form(ann, librarian):
    rights = rights_of(librarian)
    form = book_form(rights)

    schema = AdminDescriber(rights, flat=True).form(form)

    assert schema["properties"]["author"]["oneOf"][0]["title"] == "Ann"
    assert "scan" not in schema["properties"]
    field = form.fields["scan"]
    with pytest.raises(NotAskable):
        AdminDescriber(rights, flat=True).field(field, None)


def test_forms_of_the_admin_and_its_inlines_have_schemas_that_are_valid(ann, make_user):
    rights = rights_of(make_user("root", is_staff=True, is_superuser=True))
    request = rights.request
    model_admin = BookAdmin(Book, AdminSite())
    form = model_admin.get_form(request)()
    kinds = model_admin.get_formsets_with_inlines(request)
    formsets = [kind(instance=Book(), prefix="copies") for kind, _ in kinds]

    whole = AdminDescriber(rights).form(form)
    update = AdminDescriber(rights, partial=True).form(form)
    flat = AdminDescriber(rights, flat=True).form(form)
    names = ["number", "remark"]
    rows = AdminDescriber(rights, partial=True).formset(formsets[0], names=names)

    for schema in (whole, update, flat, rows):
        jsonschema_rs.meta.validate(schema)
    assert whole["required"] == ["title", "author"]
    assert whole["properties"]["summary"]["description"] == "Two lines at most"
    assert "default" not in json.dumps(update)
    assert list(rows["items"]["properties"]) == ["pk", "delete", "number", "remark"]
    assert len(json.dumps(whole)) < 4000


def test_a_default_names_no_record_that_may_not_be_seen(ann, make_user):
    rights = rights_of(make_user("bob", is_staff=True))
    field = ModelChoiceField(Author.objects.all(), initial=ann.pk)

    assert "default" not in AdminDescriber(rights).field(field, field.initial)


def test_what_staff_took_away_is_in_no_schema(ann, librarian):
    decided = ExposedModel.objects.create(label="library.author", fields=["id", "country"])
    without_name = author_of(rights_of(librarian))
    decided.level = Level.AGGREGATES
    decided.save()

    assert without_name["oneOf"] == [{"const": str(ann.pk), "title": str(ann.pk)}]
    assert "oneOf" not in author_of(rights_of(librarian))
