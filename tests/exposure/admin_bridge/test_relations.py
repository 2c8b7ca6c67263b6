from __future__ import annotations

import pytest
from django.forms import ModelChoiceField, ModelMultipleChoiceField

from mcp_django.exposure.admin_bridge.relations import MOST_JUDGED, find_related
from mcp_django.exposure.forms.schemas import InvalidValue
from tests.library.admin import AuthorAdmin, GenreAdmin, site
from tests.library.models import Author, Book, Genre
from tests.library.rights import library, rights_of

pytestmark = pytest.mark.django_db


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


AUTHOR = ModelChoiceField(Author.objects.all())
GENRE = ModelChoiceField(Genre.objects.all(), to_field_name="code")


def refusal(rights, value, field=AUTHOR):
    with pytest.raises(InvalidValue) as caught:
        find_related(rights, field, value)
    return str(caught.value)


def finds_nothing(rights, value, field=AUTHOR):
    return refusal(rights, value, field).startswith(("No ", "There is no record"))


def replaced(monkeypatch, model=Author, base=AuthorAdmin, **methods):
    kind = type("ReplacedAdmin", (base,), methods)
    monkeypatch.setitem(site._registry, model, kind(model, site))


@pytest.mark.parametrize("written", [str, int, lambda pk: f"{pk}"])
def test_a_record_is_named_by_its_key(ann, librarian, written):
    assert find_related(rights_of(librarian), AUTHOR, written(ann.pk)) == str(ann.pk)


@pytest.mark.parametrize("text", ["Ann", "ann", "nn", "  an "])
def test_a_record_is_named_by_a_text_that_the_admins_search_finds_it_by(
    ann, bert, librarian, text
):
    assert find_related(rights_of(librarian), AUTHOR, text) == str(ann.pk)


def test_each_prefix_of_the_admins_search_means_what_it_means_there(ann, bert, librarian):
    rights = rights_of(librarian)

    assert find_related(rights, AUTHOR, "F") == str(ann.pk)  # the country begins with it
    assert refusal(rights, "zz") == "No author matches 'zz'."


def test_the_key_is_the_one_that_the_form_takes(librarian):
    genre = Genre.objects.create(code="crime")
    rights = rights_of(librarian)

    assert find_related(rights, GENRE, "crime") == "crime"
    assert find_related(rights, GENRE, "rim") == "crime"
    many = ModelMultipleChoiceField(Genre.objects.all())
    assert find_related(rights, many, ["crime", genre.pk]) == [str(genre.pk)] * 2


def test_an_ambiguous_text_names_those_it_finds(librarian):
    made = [Author.objects.create(name=f"Blue {n}") for n in range(3)]
    rights = rights_of(librarian)

    message = refusal(rights, "blue")

    named = ", ".join(f"{one.pk}: {one.name}" for one in made)
    assert message == f"3 authors match 'blue': {named}. Use one key."
    assert "earns" not in message


def test_at_most_five_are_named(librarian):
    Author.objects.bulk_create(Author(name=f"Blue {n}") for n in range(9))

    message = refusal(rights_of(librarian), "blue")

    assert message.startswith("More than 5 authors match")
    assert message.count("Blue") == 5


def test_without_a_label_keys_are_named(librarian):
    made = [Author.objects.create(name=f"Blue {n}") for n in range(2)]
    rights = rights_of(librarian, registry=library(Author={"label_fields": []}))

    message = refusal(rights, "blue")

    assert message == f"2 authors match 'blue': {made[0].pk}, {made[1].pk}. Use one key."


# What this caller may not see


def test_missing_and_hidden_answer_in_the_same_words(ann, bert, librarian, monkeypatch):
    replaced(monkeypatch, get_queryset=lambda self, request: Author.objects.filter(country="FR"))
    rights = rights_of(librarian)

    for hidden, missing in [(bert.pk, 10_000), ("Bert", "Nobody"), (str(bert.pk), "10000")]:
        told = refusal(rights, hidden)
        assert told == f"No author matches {hidden!r}."
        assert refusal(rights, missing) == f"No author matches {missing!r}."


def test_a_hidden_record_does_not_make_a_text_ambiguous(ann, librarian, monkeypatch):
    Author.objects.create(name="Annette")
    replaced(monkeypatch, get_queryset=lambda self, request: Author.objects.filter(country="FR"))

    assert find_related(rights_of(librarian), AUTHOR, "Ann") == str(ann.pk)


def test_records_that_are_judged_one_by_one_are_found_where_the_verdict_is_yes(
    ann, bert, librarian, monkeypatch
):
    Author.objects.bulk_create(Author(name=f"Annex {n}") for n in range(MOST_JUDGED - 1))

    def judge(self, request, obj=None):
        return obj is None or obj.pk == ann.pk

    replaced(monkeypatch, has_view_permission=judge)
    rights = rights_of(librarian)

    assert find_related(rights, AUTHOR, "Ann") == str(ann.pk)
    assert finds_nothing(rights, bert.pk)


def test_more_records_than_are_judged_may_hide_another_that_matches(ann, librarian, monkeypatch):
    Author.objects.bulk_create(Author(name=f"Annex {n}") for n in range(MOST_JUDGED))
    monkeypatch.setattr(
        AuthorAdmin,
        "has_view_permission",
        lambda self, request, obj=None: obj is None or obj.pk == ann.pk,
    )

    message = refusal(rights_of(librarian), "Ann")

    assert "Annex" not in message


def test_where_the_model_is_hidden_only_keys_of_choices_are_taken(ann, make_user):
    rights = rights_of(make_user("bob", is_staff=True))
    few = ModelChoiceField(Author.objects.filter(country="FR"))
    other = Author.objects.create(name="Other")

    assert find_related(rights, few, ann.pk) == str(ann.pk)
    message = refusal(rights, "Ann", few)
    assert message == "There is no record with the key 'Ann'."
    assert refusal(rights, other.pk, few) == f"There is no record with the key {other.pk}."


@pytest.mark.parametrize("change", [None, {"aggregates_only": True}])
def test_a_model_that_shows_no_records_is_not_searched(ann, librarian, change):
    rights = rights_of(librarian, registry=library(Author=change))

    assert refusal(rights, "Ann") == "There is no record with the key 'Ann'."


def test_choices_of_the_field_are_all_that_there_is(ann, bert, librarian):
    rights = rights_of(librarian)
    field = Book._meta.get_field("author").formfield()
    few = ModelChoiceField(Author.objects.filter(country="DE"))
    Author.objects.filter(pk=ann.pk).update(is_retired=True)

    assert finds_nothing(rights, "Ann", few)
    assert finds_nothing(rights, ann.pk, few)
    assert find_related(rights, field, "Bert") == str(bert.pk)


def test_columns_that_this_caller_may_not_filter_by_are_not_searched(ann, bert, librarian):
    rights = rights_of(librarian)

    assert finds_nothing(rights, "4711")  # the salary, which the admin searches


@pytest.mark.parametrize(
    ("names", "is_found"),
    [
        (["name__iexact"], True),
        (["=name"], True),
        (["pk"], False),
        (["salary__icontains"], False),
        (["books__secret_note"], False),
        (["name__regex"], False),
        ([], False),
    ],
)
def test_search_fields_with_operators_are_used_and_others_left_out(
    ann, librarian, monkeypatch, names, is_found
):
    Book.objects.create(title="Ann", author=ann, secret_note="Ann")
    replaced(monkeypatch, search_fields=names)
    rights = rights_of(librarian)

    if is_found:
        assert find_related(rights, AUTHOR, "ANN") == str(ann.pk)
    else:
        assert finds_nothing(rights, "ANN")


def test_an_admin_that_refuses_the_view_is_not_searched(ann, librarian, monkeypatch):
    replaced(monkeypatch, has_view_permission=lambda self, request, obj=None: False)
    decides = {"has_view_permission": lambda self, request, obj=None: True}
    rights = rights_of(librarian, registry=library(Author=decides))

    assert find_related(rights, AUTHOR, ann.pk) == str(ann.pk)
    assert finds_nothing(rights, "Ann")


def test_a_model_without_an_admin_is_not_searched(librarian, monkeypatch, ann):
    monkeypatch.delitem(site._registry, Author)

    assert finds_nothing(rights_of(librarian), "Ann")


def test_the_admins_own_search_is_asked_and_the_registered_admin_not_touched(
    ann, bert, librarian, monkeypatch
):
    def get_search_results(self, request, queryset, term):
        return queryset.filter(country__iexact=term), True

    replaced(monkeypatch, get_search_results=get_search_results)
    before = dict(vars(site._registry[Author]))

    assert find_related(rights_of(librarian), AUTHOR, "de") == str(bert.pk)
    assert vars(site._registry[Author]) == before


def test_a_search_over_many_rows_names_a_record_once(ann, librarian, monkeypatch):
    for n in range(3):
        Book.objects.create(title=f"Seas {n}", author=ann)
    replaced(monkeypatch, search_fields=["books__title"])
    registry = library(Author={"search_fields": ["books__title"]})
    librarian.user_permissions.clear()
    librarian.is_superuser = True

    assert find_related(rights_of(librarian, registry=registry), AUTHOR, "seas") == str(ann.pk)


def test_a_key_that_records_do_not_show_is_not_a_way_to_ask_for_it(librarian):
    genre = Genre.objects.create(code="crimson")
    registry = library(Genre={"fields": ["id"], "label_fields": []})
    rights = rights_of(librarian, registry=registry)

    assert finds_nothing(rights, "crimson", GENRE)
    assert find_related(rights, GENRE, genre.pk) == "crimson"


# Odd values


@pytest.mark.parametrize(
    "value",
    [
        "   ", "\x00", "\ud800", "x" * 101, "x " * 9, "9" * 30, 2**70, -1, 1.5, True,
        [], {}, ["Ann"], {"pk": 1}, "%", "_", "'; --", "Ann\x00", "\N{PILE OF POO}",
    ],
)  # fmt: skip
def test_any_other_value_is_refused_in_words(ann, bert, librarian, value):
    message = refusal(rights_of(librarian), value)

    assert message.startswith("No author matches ")
    assert len(message) < 100


def test_every_wrong_value_of_a_list_is_told(ann, librarian):
    field = ModelMultipleChoiceField(Author.objects.all())

    told = refusal(rights_of(librarian), ["Ann", "zz", ann.pk, "yy"], field)

    assert told == "No author matches 'zz'. No author matches 'yy'."


def test_a_list_has_an_end(librarian):
    field = ModelMultipleChoiceField(Author.objects.all())

    with pytest.raises(InvalidValue, match="At most 100"):
        find_related(rights_of(librarian), field, list(range(101)))


def test_many_keys_cost_as_many_queries_as_one(librarian, django_assert_num_queries):
    made = [Author.objects.create(name=f"A{n}") for n in range(50)]
    field = ModelMultipleChoiceField(Author.objects.all())
    rights = rights_of(librarian)
    rights.may_view(Author)

    with django_assert_num_queries(2):
        assert len(find_related(rights, field, [one.pk for one in made])) == 50


def test_search_of_genres_by_an_admin_without_search_fields_finds_nothing(librarian, monkeypatch):
    Genre.objects.create(code="crime")
    replaced(monkeypatch, Genre, GenreAdmin, search_fields=[])

    assert finds_nothing(rights_of(librarian), "rim", GENRE)
