"""A related record is named by its key, or by a text that the admin's search finds only it by."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest
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
from mcp_django.exposure.admin_bridge.relations import (
    MOST_JUDGED,
    AdminDescriber,
    find_related,
)
from mcp_django.exposure.forms.schemas import MOST_RECORDS, InvalidValue, errors_of
from tests.library.admin import AuthorAdmin, site
from tests.library.models import Author, Book, Genre
from tests.library.rights import library, rights_of

pytestmark = pytest.mark.django_db

AUTHOR = ModelChoiceField(Author.objects.all())
AUTHORS = ModelMultipleChoiceField(Author.objects.all())
GENRE = ModelChoiceField(Genre.objects.all(), to_field_name="code")
NOTHING = "No author matches 'Ann'."
SEARCHED = "Key of a library.author, or its name, or text that finds exactly one."


@pytest.fixture(autouse=True)
def _library_site(settings):
    settings.MCP_DJANGO = {"ADMIN_SITES": ["library"]}


@pytest.fixture
def librarian(make_user):
    names = ["view_author", "view_genre", "view_book", "change_book"]
    return make_user("lib", *names, is_staff=True)


@pytest.fixture
def ann():
    return Author.objects.create(name="Ann", country="FR", salary=4711)


@pytest.fixture
def bert():
    return Author.objects.create(name="Bert", country="DE")


def result(rights, value, field=AUTHOR):
    """What the form takes, or the sentence of the refusal."""
    try:
        return find_related(rights, field, value)
    except InvalidValue as error:
        return str(error)


def only_french(self, request):
    return Author.objects.filter(country="FR")


#: Ann is French, and "F" is the beginning of her country.
@pytest.mark.parametrize("value", ["key", "Ann", "ann", "nn", "  an ", "F"])
def test_a_record_is_named_by_its_key_or_by_a_text_that_finds_no_other(
    ann, bert, librarian, value
):
    rights = rights_of(librarian)

    for named in [ann.pk, str(ann.pk)] if value == "key" else [value]:
        assert result(rights, named) == str(ann.pk)


def test_the_key_is_the_one_that_the_form_takes(librarian):
    genre = Genre.objects.create(code="crime")
    rights = rights_of(librarian)
    many = ModelMultipleChoiceField(Genre.objects.all())

    assert [result(rights, value, GENRE) for value in ("crime", "rim")] == ["crime", "crime"]
    assert result(rights, ["crime", genre.pk], many) == [str(genre.pk)] * 2


@pytest.mark.parametrize(
    ("count", "options", "sentence"),
    [
        (3, {}, "3 authors match 'blue': {0}: Blue 0, {1}: Blue 1, {2}: Blue 2. Use one key."),
        (2, {"label_fields": []}, "2 authors match 'blue': {0}, {1}. Use one key."),
        (9, {}, "More than 5 authors match 'blue': {0}: Blue 0, {1}: Blue 1, {2}: Blue 2, "
         "{3}: Blue 3, {4}: Blue 4. Use one key."),
    ],
)  # fmt: skip
def test_a_text_that_finds_several_names_the_first_five(librarian, count, options, sentence):
    made = [Author.objects.create(name=f"Blue {n}") for n in range(count)]
    rights = rights_of(librarian, registry=library(Author=options))

    assert result(rights, "blue") == sentence.format(*(author.pk for author in made))


@pytest.mark.parametrize("options", [{}, {"search_fields": []}], ids=["searched", "listed"])
def test_what_a_record_is_called_comes_before_a_word_in_other_names(
    ann, librarian, change_admin, options
):
    """A label or a unique column, as in filters, also where the admin has no search."""
    Author.objects.bulk_create(Author(name=f"Ann {n}") for n in range(9))
    change_admin(Author, of=site, **options)
    rights = rights_of(librarian)

    assert result(rights, "Ann") == result(rights, " ann ") == str(ann.pk)
    Author.objects.create(name="Ann")
    assert result(rights, "Ann").startswith("2 authors match 'Ann': ")


def test_a_hidden_record_is_answered_as_a_missing_one(ann, bert, librarian, change_admin):
    Author.objects.create(name="Annette", country="DE")
    change_admin(Author, of=site, get_queryset=only_french)
    rights = rights_of(librarian)

    for value in (bert.pk, 10_000, "Bert", "Nobody", str(bert.pk), "10000"):
        assert result(rights, value) == f"No author matches {value!r}."
    # Hidden records do not make a text ambiguous either.
    assert result(rights, "Ann") == str(ann.pk)


@pytest.mark.parametrize(("others", "is_sure"), [(MOST_JUDGED - 1, True), (MOST_JUDGED, False)])
def test_records_that_are_judged_one_by_one_are_found_while_all_can_be_judged(
    ann, bert, librarian, change_admin, others, is_sure
):
    Author.objects.bulk_create(Author(name=f"Annex {n}") for n in range(others))
    change_admin(
        Author,
        of=site,
        has_view_permission=lambda self, request, obj=None: obj is None or obj.pk == ann.pk,
    )
    rights = rights_of(librarian)

    answer = result(rights, "nn")

    assert (answer == str(ann.pk)) is is_sure
    assert "Annex" not in answer
    assert result(rights, bert.pk) == f"No author matches {bert.pk}."


@pytest.fixture(
    params=[([], {}), (["view_author"], None), (["view_author"], {"aggregates_only": True})],
    ids=["no right", "not exposed", "numbers only"],
)
def blind(request, make_user):
    """The rights of somebody for whom there are no authors."""
    permissions, options = request.param
    user = make_user("bob", "change_book", *permissions, is_staff=True)
    return rights_of(user, registry=library(Author=options))


def test_of_a_hidden_model_only_the_keys_of_choices_are_taken(ann, blind):
    few = ModelChoiceField(Author.objects.filter(country="FR"))
    other = Author.objects.create(name="Other")

    assert result(blind, ann.pk, few) == str(ann.pk)
    assert result(blind, "Ann", few) == "There is no record with the key 'Ann'."
    assert result(blind, other.pk, few) == f"There is no record with the key {other.pk}."


def test_choices_of_the_field_are_all_that_there_is(ann, bert, librarian):
    rights = rights_of(librarian)
    german = ModelChoiceField(Author.objects.filter(country="DE"))
    not_retired = Book._meta.get_field("author").formfield()
    Author.objects.filter(pk=ann.pk).update(is_retired=True)

    assert result(rights, "Ann", german) == NOTHING
    assert result(rights, ann.pk, german) == f"No author matches {ann.pk}."
    assert result(rights, "Bert", not_retired) == str(bert.pk)


@pytest.mark.parametrize(
    ("attributes", "is_found"),
    [
        ({"search_fields": ["name__iexact"]}, True),
        ({"search_fields": ["=name"]}, True),
        ({"search_fields": ["pk"]}, False),
        ({"search_fields": ["salary__icontains"]}, False),
        ({"search_fields": ["books__secret_note"]}, False),
        ({"search_fields": ["name__regex"]}, False),
        ({"search_fields": []}, False),
        ({"has_view_permission": lambda self, request, obj=None: False}, False),
        (None, False),
    ],
)
def test_only_what_the_admin_and_the_caller_search_by_is_searched(
    ann, librarian, monkeypatch, change_admin, attributes, is_found
):
    Book.objects.create(title="Ann", author=ann, secret_note="Ann")
    if attributes is None:
        monkeypatch.delitem(site._registry, Author)
    else:
        change_admin(Author, of=site, **attributes)
    # The exposure decides who may view, so that the model is not hidden. Nothing has a name.
    decides = {"has_view_permission": lambda self, request, obj=None: True, "label_fields": []}
    rights = rights_of(librarian, registry=library(Author=decides))

    assert result(rights, "Ann") == (str(ann.pk) if is_found else NOTHING)
    assert result(rights, ann.pk) == str(ann.pk)


def test_the_admins_own_search_is_asked_and_the_registered_admin_not_touched(
    ann, bert, librarian, change_admin
):
    change_admin(
        Author,
        of=site,
        get_search_results=lambda self, request, queryset, term: (
            queryset.filter(country__iexact=term),
            True,
        ),
    )
    before = dict(vars(site._registry[Author]))

    assert result(rights_of(librarian), "de") == str(bert.pk)
    assert vars(site._registry[Author]) == before


def test_a_search_over_many_rows_names_a_record_once(ann, librarian, change_admin):
    for n in range(3):
        Book.objects.create(title=f"Seas {n}", author=ann)
    change_admin(Author, of=site, search_fields=["books__title"])
    registry = library(Author={"search_fields": ["books__title"]})
    librarian.user_permissions.clear()
    librarian.is_superuser = True

    assert result(rights_of(librarian, registry=registry), "seas") == str(ann.pk)


def test_a_key_that_records_do_not_show_is_not_a_way_to_ask_for_it(librarian, change_admin):
    genre = Genre.objects.create(code="crimson")
    registry = library(Genre={"fields": ["id"], "label_fields": []})
    rights = rights_of(librarian, registry=registry)

    assert result(rights, "crimson", GENRE) == "No genre matches 'crimson'."
    assert result(rights, genre.pk, GENRE) == "crimson"
    change_admin(Genre, of=site, search_fields=[])
    assert result(rights_of(librarian), "rims", GENRE) == "No genre matches 'rims'."


@pytest.mark.parametrize(
    "value",
    [
        "   ", "\x00", "\ud800", "x" * 101, "x " * 9, "9" * 30, 2**70, -1, 1.5, True, "4711",
        [], {}, ["Ann"], {"pk": 1}, "%", "_", "'; --", "Ann\x00", "\N{PILE OF POO}",
    ],
)  # fmt: skip
def test_any_other_value_is_refused_in_words(ann, bert, librarian, value):
    answer = result(rights_of(librarian), value)

    assert answer.startswith("No author matches ")
    assert len(answer) < 100


def test_every_wrong_value_of_a_list_is_named(ann, librarian):
    several = result(rights_of(librarian), ["Ann", "zz", ann.pk, "yy"], AUTHORS)

    assert several == "No author matches 'zz'. No author matches 'yy'."


def test_many_keys_cost_as_many_queries_as_one(librarian, django_assert_num_queries):
    made = [Author.objects.create(name=f"A{n}") for n in range(50)]
    rights = rights_of(librarian)
    rights.may_view(Author)

    with django_assert_num_queries(2):
        keys = result(rights, [author.pk for author in made], AUTHORS)

    assert len(keys) == 50


# Described


def book_form(rights, data=None):
    return site._registry[Book].get_form(rights.request)(data)


def fields_of(rights, **options):
    return AdminDescriber(rights, **options).form(book_form(rights))["properties"]


def author_of(rights):
    return fields_of(rights)["author"]


def only_ann(self, request, obj=None):
    return obj is None or obj.name == "Ann"


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
            {
                "get_list_display": lambda *args: ["country"],
                "get_fieldsets": lambda *args: [(None, {"fields": ["country"]})],
            },
            ["key", "key"],
        ),
    ],
    ids=["all", "ordered", "rows", "judged", "labels"],
)
def test_related_records_are_listed_as_the_caller_sees_them(
    ann, librarian, change_admin, methods, titles
):
    bert = Author.objects.create(name="Bert", country="DE", salary=1)
    change_admin(Author, of=site, **methods)

    schema = author_of(rights_of(librarian))

    keys = [str(ann.pk), str(bert.pk)][: len(titles)]
    listed = [key if title == "key" else title for key, title in zip(keys, titles, strict=True)]
    assert schema["oneOf"] == [
        {"const": key, "title": title} for key, title in zip(keys, listed, strict=True)
    ]


def test_of_a_hidden_model_nothing_is_listed_and_nothing_named(ann, blind):
    form = book_form(blind, {"author": "0"})
    field = ModelChoiceField(Author.objects.all(), initial=ann.pk)

    errors = dict(errors_of(form, describer=AdminDescriber(blind)))

    assert author_of(blind) == {
        "title": "Author",
        "type": ["string", "integer"],
        "description": "Key of a record.",
    }
    assert "allowed" not in errors["author"]
    assert "default" not in AdminDescriber(blind).field(field, field.initial)


def test_no_text_of_a_hidden_column_is_anywhere_in_a_schema_or_an_error(ann, librarian):
    rights = rights_of(librarian)
    form = book_form(rights, {"author": "0"})
    describer = AdminDescriber(rights)

    errors = dict(errors_of(form, describer=describer))

    assert errors["author"]["allowed"] == [str(ann.pk)]
    assert "4711" not in json.dumps([describer.form(form), errors])


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


def test_a_key_that_records_do_not_show_is_not_listed(superuser):
    Genre.objects.create(code="crimson")
    rights = rights_of(superuser, registry=library(Genre={"fields": ["id"], "label_fields": []}))

    schema = fields_of(rights)

    assert "crimson" not in json.dumps(schema)
    assert len(schema["keywords"]["items"]["anyOf"]) == 1


def test_fields_behind_a_key_of_their_own_are_listed_by_that_key(superuser):
    Genre.objects.create(code="crime")

    schema = fields_of(rights_of(superuser))

    assert schema["genre"]["oneOf"][0] == {"const": "crime", "title": "crime"}
    assert schema["keywords"]["items"]["anyOf"][0]["title"] == "crime"


def accepts(schema, *values):
    jsonschema_rs.meta.validate(schema)
    return [jsonschema_rs.is_valid(schema, value) for value in values]


VALUES = ([], ["1"], {"add": ["1"], "remove": []}, {"set": []}, {"set": [], "add": []}, {}, None)


def test_a_set_is_a_list_in_a_new_record_and_an_object_in_a_stored_one(librarian):
    librarian.is_superuser = True
    genre = Genre.objects.create(code="crime", pk=1)
    rights = rights_of(librarian)
    field = ModelMultipleChoiceField(Genre.objects.all())

    whole, changed = (
        AdminDescriber(rights, partial=partial).field(field, None) for partial in (False, True)
    )

    assert accepts(whole, *VALUES) == [False, True, False, False, False, False, False]
    assert accepts(changed, *VALUES) == [False, False, True, True, False, False, False]
    assert not jsonschema_rs.is_valid(changed, {"add": ["no such"]})
    for schema in (whole, changed):
        assert json.dumps(schema).count(f'"{genre.code}"') == 1


def test_a_set_that_is_a_part_of_a_value_is_a_list(librarian):
    class Pair(MultiValueField):
        widget = MultiWidget([TextInput, SelectMultiple])

    field = Pair([CharField(), ModelMultipleChoiceField(Genre.objects.all(), required=False)])

    schema = AdminDescriber(rights_of(librarian), partial=True).field(field, None)

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
