from __future__ import annotations

import itertools

import pytest
from django.core.exceptions import ImproperlyConfigured

from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import MAX_HOPS, Declaration
from mcp_django.exposure.query.access import allowed_paths
from tests.library.models import Genre
from tests.nasty.models import Customer, Note, Order, Seat
from tests.nasty.site import ORDER, REGISTRY, caller, registry

pytestmark = pytest.mark.django_db


BROKEN = [
    (Order, {"fields": "number nowhere"}, "fields: nowhere: Order has no field nowhere"),
    (Order, {"fields": "number tags__slug"}, "fields: tags__slug has many values"),
    *(
        (model, {"fields": text}, f"fields: {text}: {sentence}")
        for model, text, sentence in (
            (Order, "customer__nowhere", "Customer has no field nowhere"),
            (Order, "number__contains", "number is not a relation"),
            (Order, "customer__orders__customer__orders__number", f"at most {MAX_HOPS} relations"),
            (Note, "target__number", "target is generic, or of another package"),
            (Seat, "pk", "list the parts of the composite key"),
        )
    ),
    (Order, {"exclude": "nowhere"}, "exclude: nowhere"),
    (Order, {"search_fields": "tags"}, "search_fields: tags ends at a relation"),
    (Order, {"order_fields": "api_token"}, "order_fields: api_token is neither in fields nor in"),
    (
        Order,
        {"ordering": "-nunber id"},
        "ordering: nunber: Order has no field nunber; did you mean",
    ),
    (Order, {"order_fields": "payload"}, "order_fields: payload has no order"),
    (Order, {"label_fields": "customer__name"}, "label_fields: customer__name is not a column of"),
    (Order, {"group_fields": "tags__slug"}, "group_fields: tags__slug has many values for one"),
    (Order, {"metric_fields": "lines__cost"}, "metric_fields: lines__cost has many values"),
    (Order, {"metric_fields": "api_token"}, "metric_fields: api_token is not shown by records"),
    (Order, {"smallest_group": True}, "smallest_group: True is not a number of records"),
    *(
        (Order, {"modified_field": name}, f"modified_field: {name} is no date or time that")
        for name in ("number", "margin", "customer__region")
    ),
    *(
        (Order, {"untrusted_fields": name}, f"untrusted_fields: {name} {end}")
        for name, end in {
            "remarks": "is no column of it; did you mean remark.",
            "qqqqqqq": "is no column of it; write one of id, owner, customer, number, ",
            **dict.fromkeys(
                ("total", "attachment", "status", "owner"),
                "is no column of texts that people write.",
            ),
        }.items()
    ),
    (Customer, {"mask": {"nam": "text"}}, "mask: nam is not a column of the model that fields"),
    (
        Customer,
        {"mask": {"tenant__name": "text"}, "fields": ["tenant__name"]},
        "mask: tenant__name is not a column of the model that fields lists; write one of .",
    ),
    (Customer, {"mask": {"name": "mail"}}, "mask: name has no mask 'mail'; did you mean email."),
    (Customer, {"mask": {"name": 5}}, "mask: name has no mask 5; write one of email, last4, text"),
    (Customer, {"mask": ["name"]}, 'mask: [\'name\'] is no mapping; write {"email": "email"}.'),
    *(
        (model, {"mask": {name: "text"}, "fields": [name]}, f"mask: {name} is a key, which other")
        for model, name in ((Customer, "id"), (Order, "owner"), (Seat, "hall"), (Genre, "code"))
    ),
    *(
        (Order, {"mask": {name: "text"}, "fields": [name], **options}, f"mask: {name} is a file")
        for name, options in (("attachment", {}), ("due", {"modified_field": "due"}))
    ),
]


@pytest.mark.parametrize(("model", "options", "sentence"), BROKEN, ids=str)
def test_every_bad_declaration_is_told_in_words_and_refused_when_used(model, options, sentence):
    usual = ORDER if model is Order and "mask" not in options else {"fields": "id name"}
    tables = registry({model: {**usual, **options}})
    label = model._meta.label_lower

    [problem] = Declaration(tables.exposures[model]).problems

    assert problem.startswith(f"{label}: {sentence}")
    with pytest.raises(ImproperlyConfigured, match=label):
        allowed_paths(caller(tables=tables), tables.exposures[model])


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
    elsewhere = of(narrow={Customer: lambda rows: rows.using("other")}).names("return")
    assert "customer__name" not in elsewhere
    assert "customer" in elsewhere


class Replicas:
    """Another replica for each read."""

    turn = itertools.cycle(["default", "replica"])

    def db_for_read(self, model, **hints):
        return next(self.turn)


def test_a_router_that_takes_turns_changes_no_paths(settings):
    settings.DATABASE_ROUTERS = [Replicas()]

    found = {
        tuple(allowed_paths(caller(), REGISTRY.exposures[Order]).names("filter")) for _ in range(6)
    }

    assert len(found) == 1
    assert "customer__country" in next(iter(found))


def test_the_digest_of_a_reach_is_the_same_in_every_process():
    class Plain(ModelExposure):
        pass

    def digest(fields):
        tables = registry({Seat: {"fields": fields}}, base=Plain)
        return allowed_paths(caller(tables=tables), tables.exposures[Seat]).digest

    assert digest("hall number") == digest("hall number") == "541fc87ff38b605c"
    assert digest("hall") != digest("hall number")
