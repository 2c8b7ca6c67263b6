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

SEARCHED = "Key of a library.author, or text that finds exactly one."


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
    request = rights.request
    return site._registry[Book].get_form(request)(data)


def author_of(rights, **options):
    schema = AdminDescriber(rights, **options).form(book_form(rights))
    return schema["properties"]["author"]


def replaced(monkeypatch, **methods):
    kind = type("ReplacedAdmin", (AuthorAdmin,), methods)
    monkeypatch.setitem(site._registry, Author, kind(Author, site))


def test_related_records_are_listed_by_the_labels_of_the_exposure(ann, librarian):
    schema = author_of(rights_of(librarian))

    assert schema["oneOf"] == [{"const": str(ann.pk), "title": "Ann"}]


def test_no_text_of_a_hidden_column_is_anywhere_in_a_schema_or_an_error(ann, librarian):
    rights = rights_of(librarian)
    form = book_form(rights, {"author": "0"})

    describer = AdminDescriber(rights)
    told = json.dumps([describer.form(form), *errors_of(form, describer=describer)])

    assert f'"{ann.pk}"' in told
    assert "4711" not in told


def test_records_that_may_not_be_viewed_are_not_listed_and_their_model_is_not_named(
    ann, make_user
):
    rights = rights_of(make_user("bob", "change_book", is_staff=True))
    form = book_form(rights, {"author": "0"})

    schema = author_of(rights)

    assert schema == {
        "title": "Author",
        "type": ["string", "integer"],
        "description": "Key of a record.",
    }
    [error] = [
        error
        for path, error in errors_of(form, describer=AdminDescriber(rights))
        if path == "author"
    ]
    assert "allowed" not in error


def test_records_of_a_model_that_is_not_exposed_or_shows_numbers_only_are_not_listed(
    ann, librarian
):
    missing = rights_of(librarian, registry=library(Author=None))
    numbers = rights_of(librarian, registry=library(Author={"aggregates_only": True}))

    assert author_of(missing)["description"] == "Key of a record."
    assert author_of(numbers) == author_of(missing)


def test_how_many_rows_are_hidden_does_not_decide_whether_the_others_are_listed(
    ann, librarian, monkeypatch
):
    Author.objects.bulk_create([Author(name="Hidden") for _ in range(MOST_RECORDS)])
    replaced(
        monkeypatch,
        get_queryset=lambda self, request: Author.objects.filter(country="FR"),
    )

    schema = author_of(rights_of(librarian))

    assert schema["oneOf"] == [{"const": str(ann.pk), "title": "Ann"}]


def test_records_are_listed_by_their_keys_whatever_column_the_admin_orders_them_by(
    ann, librarian, monkeypatch
):
    Author.objects.create(name="Bob", salary=ann.salary - 1)
    Author.objects.create(name="Cleo", salary=ann.salary + 1)
    replaced(monkeypatch, ordering=["salary"])

    schema = author_of(rights_of(librarian))

    assert [one["title"] for one in schema["oneOf"]] == ["Ann", "Bob", "Cleo"]


def test_rows_that_the_admin_hides_are_not_listed(ann, librarian, monkeypatch):
    hidden = Author.objects.create(name="Hidden", country="DE")
    replaced(
        monkeypatch,
        get_queryset=lambda self, request: Author.objects.filter(country="FR"),
    )
    rights = rights_of(librarian)

    schema = author_of(rights)

    assert [one["title"] for one in schema["oneOf"]] == ["Ann"]
    assert str(hidden.pk) not in json.dumps(schema)


def test_rows_that_are_judged_one_by_one_are_listed_where_the_verdict_is_yes(
    ann, librarian, monkeypatch
):
    Author.objects.create(name="Hidden")

    def judge(self, request, obj=None):
        return obj is None or obj.name == "Ann"

    replaced(monkeypatch, has_view_permission=judge)

    assert [one["title"] for one in author_of(rights_of(librarian))["oneOf"]] == ["Ann"]


def test_where_no_related_record_is_visible_the_field_takes_a_key(ann, librarian, monkeypatch):
    replaced(monkeypatch, get_queryset=lambda self, request: Author.objects.none())

    assert author_of(rights_of(librarian))["description"] == SEARCHED


def test_a_label_that_this_caller_may_not_see_gives_way_to_the_key(ann, librarian, monkeypatch):
    replaced(
        monkeypatch,
        get_list_display=lambda self, request: ["country"],
        get_fieldsets=lambda self, request, obj=None: [(None, {"fields": ["country"]})],
    )

    assert author_of(rights_of(librarian))["oneOf"][0]["title"] == str(ann.pk)


def test_a_key_that_records_do_not_show_is_not_listed(make_user):
    Genre.objects.create(code="crimson")
    user = make_user("root", is_staff=True, is_superuser=True)
    rights = rights_of(user, registry=library(Genre={"fields": ["id"], "label_fields": []}))

    schema = AdminDescriber(rights).form(book_form(rights))

    assert "crimson" not in json.dumps(schema)
    assert len(schema["properties"]["keywords"]["items"]["anyOf"]) == 1


def test_many_records_and_those_that_the_admin_searches_are_named_by_a_text(ann, librarian):
    rights = rights_of(librarian)
    editor = AdminDescriber(rights).form(book_form(rights))["properties"]["editor"]
    assert editor == {
        "title": "Editor",
        "description": SEARCHED,
        "type": ["string", "integer", "null"],
    }

    Author.objects.bulk_create(Author(name=f"A{n}") for n in range(MOST_RECORDS))
    assert author_of(rights) == {**editor, "title": "Author", "type": ["string", "integer"]}


def test_fields_behind_a_key_of_their_own_are_listed_by_that_key(librarian, django_user_model):
    librarian.user_permissions.set([])
    librarian.is_superuser = True
    Genre.objects.create(code="crime")
    rights = rights_of(librarian)

    schema = AdminDescriber(rights).form(book_form(rights))["properties"]

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
    names = ["number", "remark"]
    rows = AdminDescriber(rights, partial=True).formset(formsets[0], names=names)

    for schema in (whole, update, rows):
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
