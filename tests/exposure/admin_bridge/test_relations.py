"""A related record is named by its key, or by a text that the admin's search finds only it by."""

from __future__ import annotations

import pytest
from django.forms import ModelChoiceField, ModelMultipleChoiceField

from mcp_django.exposure.admin_bridge.relations import MOST_JUDGED, find_related
from mcp_django.exposure.forms.schemas import InvalidValue
from tests.library.admin import AuthorAdmin, GenreAdmin, site
from tests.library.models import Author, Book, Genre
from tests.library.rights import library, rights_of

pytestmark = pytest.mark.django_db

AUTHOR = ModelChoiceField(Author.objects.all())
AUTHORS = ModelMultipleChoiceField(Author.objects.all())
GENRE = ModelChoiceField(Genre.objects.all(), to_field_name="code")
NOTHING = "No author matches 'Ann'."


@pytest.fixture(autouse=True)
def _library_site(settings):
    settings.MCP_DJANGO = {"ADMIN_SITES": ["library"]}


@pytest.fixture
def librarian(make_user):
    return make_user("lib", "view_author", "view_genre", is_staff=True)


@pytest.fixture
def ann():
    return Author.objects.create(name="Ann", country="FR", salary=4711)


@pytest.fixture
def bert():
    return Author.objects.create(name="Bert", country="DE")


@pytest.fixture
def change_admin(monkeypatch):
    def change(model=Author, base=AuthorAdmin, **methods):
        kind = type("ChangedAdmin", (base,), methods)
        monkeypatch.setitem(site._registry, model, kind(model, site))

    return change


def result(rights, value, field=AUTHOR):
    """What the form takes, or the sentence of the refusal."""
    try:
        return find_related(rights, field, value)
    except InvalidValue as error:
        return str(error)


def only_french(self, request):
    return Author.objects.filter(country="FR")


def no_view(self, request, obj=None):
    return False


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
    change_admin(**options)
    rights = rights_of(librarian)

    assert result(rights, "Ann") == result(rights, " ann ") == str(ann.pk)
    Author.objects.create(name="Ann")
    assert result(rights, "Ann").startswith("2 authors match 'Ann': ")


def test_a_hidden_record_is_answered_as_a_missing_one(ann, bert, librarian, change_admin):
    Author.objects.create(name="Annette", country="DE")
    change_admin(get_queryset=only_french)
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
        has_view_permission=lambda self, request, obj=None: obj is None or obj.pk == ann.pk
    )
    rights = rights_of(librarian)

    answer = result(rights, "nn")

    assert (answer == str(ann.pk)) is is_sure
    assert "Annex" not in answer
    assert result(rights, bert.pk) == f"No author matches {bert.pk}."


@pytest.mark.parametrize(
    ("permissions", "options"),
    [([], {}), (["view_author"], None), (["view_author"], {"aggregates_only": True})],
    ids=["no right", "not exposed", "numbers only"],
)
def test_of_a_hidden_model_only_the_keys_of_choices_are_taken(
    ann, make_user, permissions, options
):
    user = make_user("bob", *permissions, is_staff=True)
    rights = rights_of(user, registry=library(Author=options))
    few = ModelChoiceField(Author.objects.filter(country="FR"))
    other = Author.objects.create(name="Other")

    assert result(rights, ann.pk, few) == str(ann.pk)
    assert result(rights, "Ann", few) == "There is no record with the key 'Ann'."
    assert result(rights, other.pk, few) == f"There is no record with the key {other.pk}."


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
        ({"has_view_permission": no_view}, False),
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
        change_admin(**attributes)
    # The exposure decides who may view, so that the model is not hidden. Nothing has a name.
    decides = {"has_view_permission": lambda self, request, obj=None: True, "label_fields": []}
    rights = rights_of(librarian, registry=library(Author=decides))

    assert result(rights, "Ann") == (str(ann.pk) if is_found else NOTHING)
    assert result(rights, ann.pk) == str(ann.pk)


def test_the_admins_own_search_is_asked_and_the_registered_admin_not_touched(
    ann, bert, librarian, change_admin
):
    change_admin(
        get_search_results=lambda self, request, queryset, term: (
            queryset.filter(country__iexact=term),
            True,
        )
    )
    before = dict(vars(site._registry[Author]))

    assert result(rights_of(librarian), "de") == str(bert.pk)
    assert vars(site._registry[Author]) == before


def test_a_search_over_many_rows_names_a_record_once(ann, librarian, change_admin):
    for n in range(3):
        Book.objects.create(title=f"Seas {n}", author=ann)
    change_admin(search_fields=["books__title"])
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
    change_admin(Genre, GenreAdmin, search_fields=[])
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


def test_every_wrong_value_of_a_list_is_named_and_a_list_has_an_end(ann, librarian):
    rights = rights_of(librarian)

    several = result(rights, ["Ann", "zz", ann.pk, "yy"], AUTHORS)
    too_many = result(rights, list(range(101)), AUTHORS)

    assert several == "No author matches 'zz'. No author matches 'yy'."
    assert too_many == "At most 100 can be named at once."


def test_many_keys_cost_as_many_queries_as_one(librarian, django_assert_num_queries):
    made = [Author.objects.create(name=f"A{n}") for n in range(50)]
    rights = rights_of(librarian)
    rights.may_view(Author)

    with django_assert_num_queries(2):
        keys = result(rights, [author.pk for author in made], AUTHORS)

    assert len(keys) == 50
