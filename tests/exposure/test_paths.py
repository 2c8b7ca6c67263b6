from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from mcp_django.cached import Recent
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import MAX_HOPS, Declaration, locate, resolve, spellings
from mcp_django.exposure.query import access as reaches
from mcp_django.exposure.query.access import allowed_paths
from tests.nasty.models import Customer, Note, Order, Person, RushOrder, Seat, Watch
from tests.nasty.site import EXPOSED, ORDER, REGISTRY, caller, registry

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nowhere", "Order has no field nowhere"),
        ("customer__nowhere", "Customer has no field nowhere"),
        ("number__contains", "number is not a relation"),
        ("customer__orders__customer__orders__number", f"at most {MAX_HOPS} relations"),
        ("", "Order has no field"),
        ("customer__", "Customer has no field"),
    ],
)
def test_a_bad_path_is_explained(text, sentence):
    with pytest.raises(ImproperlyConfigured, match=sentence):
        resolve(Order, text)


def test_generic_and_composite_paths_are_refused():
    with pytest.raises(ImproperlyConfigured, match="generic and cannot be followed"):
        resolve(Note, "target__number")
    with pytest.raises(ImproperlyConfigured, match="list the parts of the composite key"):
        resolve(Seat, "pk")


def test_a_path_is_located_where_django_finds_its_column():
    customer = ("nasty_customer", (("customer_id", "id"),))
    parent = ("nasty_order", (("order_ptr_id", "id"),))

    assert locate(Order, "number") == ((), "number")
    assert locate(Order, "customer__name") == ((customer,), "name")
    assert locate(RushOrder, "number") == ((parent,), "number")
    assert locate(RushOrder, "customer__name") == ((parent, customer), "name")
    assert locate(RushOrder, "id") == ((), "order_ptr_id")


def test_a_path_to_the_key_of_a_related_model_is_the_foreign_key():
    path = resolve(Order, "customer__id")

    assert (path.hops, path.field.name) == ((), "customer")
    assert repr(path) == "<Path customer__id of nasty.Order>"
    assert resolve(Order, "customer__pk").field is path.field
    assert resolve(Order, "rushorder__order_ptr").hops != ()


def test_spellings_are_those_of_django():
    assert set(spellings(resolve(Order, "customer"))) == {
        "customer",
        "customer_id",
        "customer__pk",
        "customer__id",
    }
    assert set(spellings(resolve(Order, "id"))) == {"id", "pk"}
    assert set(spellings(resolve(Order, "tags"))) == {"tags"}
    assert "customer__region_id" in set(spellings(resolve(Order, "customer__region")))


def test_a_reverse_many_to_many_passes_its_through_model():
    (hop,) = resolve(Person, "watched").hops
    (tags,) = resolve(Order, "tags").hops

    assert hop.models == (Watch, Order)
    assert tags.models == (tags.model,)


BROKEN = [
    ({"fields": "number nowhere"}, "fields: nowhere: Order has no field nowhere"),
    ({"fields": "number tags__slug"}, "fields: tags__slug has many values"),
    ({"exclude": "nowhere"}, "exclude: nowhere"),
    ({"filter_fields": "nowhere"}, "filter_fields: nowhere"),
    ({"search_fields": "^customer__nowhere"}, "search_fields: customer__nowhere"),
    ({"search_fields": "tags"}, "search_fields: tags ends at a relation"),
    ({"order_fields": "api_token"}, "order_fields: api_token is neither in fields nor in"),
    ({"order_fields": "tags__slug"}, "order_fields: tags__slug has no order"),
    ({"order_fields": "payload"}, "order_fields: payload has no order"),
    ({"label_fields": "customer__name"}, "label_fields: customer__name is not a column of"),
    ({"label_fields": "tags"}, "label_fields: tags is not a column of"),
]


@pytest.mark.parametrize(("options", "sentence"), BROKEN, ids=str)
def test_every_bad_declaration_is_told_in_words_and_refused_when_used(options, sentence):
    tables = registry({Order: {**ORDER, **options}})

    found = Declaration(tables.exposures[Order]).problems

    assert len(found) == 1
    assert found[0].startswith(f"nasty.order: {sentence}")
    with pytest.raises(ImproperlyConfigured, match=r"nasty\.order"):
        allowed_paths(caller(tables=tables), tables.exposures[Order])


def test_good_declarations_have_no_problems():
    assert not any(Declaration(REGISTRY.exposures[model]).problems for model in EXPOSED)


def reach(options, **rights):
    tables = registry({Order: options})
    return allowed_paths(caller(tables=tables, **rights), tables.exposures[Order])


def test_paths_default_to_the_fields_and_only_what_has_an_order_orders():
    found = reach({"fields": "number payload blob customer customer__name"})

    assert found.names("filter") == found.names("return")
    assert found.names("order") == ["number", "customer", "customer__name"]
    assert found.names("search") == []


def test_what_is_excluded_is_gone_from_every_use_and_so_is_all_behind_it():
    found = reach({**ORDER, "exclude": "customer_id number lines"})

    for use in ("return", "filter", "order", "search"):
        names = " ".join(found.names(use)).split()
        assert not [name for name in names if name.startswith(("customer", "number", "lines"))]
    assert "tags__slug" in found.names("filter")


def test_callers_with_equal_rights_share_one_reach_and_others_do_not():
    def of(**rights):
        who = caller(**rights)
        return allowed_paths(who, REGISTRY.exposures[Order])

    everybody = of()

    assert of(pk=2) is everybody
    assert of(shown={Order: ["id"]}) is not everybody
    assert of(may=lambda perm: "customer" not in perm) is not everybody
    assert of(narrow={Customer: lambda rows: rows.filter(pk=1)}) is not everybody
    assert of(narrow={Order: lambda rows: rows.filter(pk=1)}) is everybody


def test_only_so_many_reaches_are_remembered(monkeypatch):
    monkeypatch.setattr(reaches, "_access", Recent(size=1))
    tables = registry()
    who = caller(tables=tables)
    first = allowed_paths(who, tables.exposures[Order])
    allowed_paths(who, tables.exposures[Seat])

    assert allowed_paths(caller(tables=tables), tables.exposures[Order]) is not first


def test_each_step_of_a_path_must_be_shown_to_the_caller():
    found = reach(ORDER, shown={Order: ["number", "customer"], Customer: ["country"]})

    assert found.names("return") == ["number", "customer"]
    assert found.names("filter") == ["number", "customer", "customer__country"]
    assert found.names("search") == ["number"]


def test_a_path_over_another_database_does_not_exist():
    found = reach(ORDER, narrow={Customer: lambda rows: rows.using("other")})

    assert "customer__name" not in found.names("return")
    assert "customer" in found.names("return")


def test_the_digest_of_a_reach_is_the_same_in_every_process():
    class Plain(ModelExposure):
        pass

    def digest(fields):
        tables = registry({Seat: {"fields": fields}}, base=Plain)
        return allowed_paths(caller(tables=tables), tables.exposures[Seat]).digest

    assert digest("hall number") == digest("hall number") == "541fc87ff38b605c"
    assert digest("hall") != digest("hall number")
