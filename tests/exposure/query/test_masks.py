"""A masked column is shown as a pseudonym, and no other answer depends on its values."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.auth.models import AnonymousUser, Group, User
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext

from mcp_django.exceptions import Leak, ToolError
from mcp_django.exposure.inspection import (
    SharedRights,
    inspect_fields,
    own_rights,
    sample_rows,
)
from mcp_django.exposure.masks import mask_column
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import FILTER, Declaration, declaration_of
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.prompts.stored import record_of
from mcp_django.exposure.query.access import allowed_paths
from mcp_django.exposure.query.completion import distinct_values, keys_of
from mcp_django.exposure.query.computed import computed_columns
from mcp_django.exposure.query.describe import describe
from mcp_django.exposure.query.guard import guarded
from mcp_django.exposure.query.paths_by_rule import paths_of_call
from mcp_django.exposure.query.related import can_find_out, visible_labels
from mcp_django.exposure.registry import Registry
from mcp_django.principal import SCOPES, Principal
from tests.library.models import Genre
from tests.nasty.models import Customer, Line, Order, PaidOrder, Person, RushOrder, Seat
from tests.nasty.site import EXPOSED, aggregate, caller, count, page, record, records, registry

pytestmark = pytest.mark.django_db

CUSTOMER = {
    "fields": "id name country",
    "filter_fields": "id name country orders__number orders__status",
    "order_fields": "id name",
    "search_fields": "name country",
    "label_fields": "name",
    "group_fields": "name country",
    "metric_fields": "name",
    "ordering": "name",
}
PERSON = {
    "fields": "id username manager",
    "filter_fields": "username watched__number manager__username",
    "order_fields": "username manager__username",
    "label_fields": "username",
}
ORDER = EXPOSED[Order] | {
    "fields": "id number status customer customer__name owner total",
    "group_fields": "customer__name status",
    "metric_fields": "customer__name total",
}
MASKED = {Customer: {"name": "text"}, Person: {"username": "email"}}
LINE = {"fields": "id sku order", "filter_fields": "order sku"}
IN_CLEAR = {Customer: CUSTOMER, Person: PERSON, Order: ORDER, Line: LINE}
TABLES = registry({**IN_CLEAR, **{m: {**IN_CLEAR[m], "mask": MASKED[m]} for m in MASKED}})
UNMASKED = registry(IN_CLEAR)
PSEUDONYM = re.compile(r"p-[0-9a-f]{12}(@masked\.invalid)?")


def masked(**options):
    return caller(tables=TABLES, **options)


def rename(names):
    """Give everybody another name. The names have another order, and begin otherwise."""
    for model, column in ((Customer, "name"), (Person, "username")):
        for row, name in zip(model.objects.order_by("pk"), names, strict=True):
            model.objects.filter(pk=row.pk).update(**{column: name})


@pytest.fixture
def people(shop):
    ann = Person.objects.create(username="ann", manager=shop.boss)
    return SimpleNamespace(**vars(shop), ann=ann)


# What is shown.


def test_equal_values_have_one_pseudonym_in_every_answer_to_a_user(people):
    Customer.objects.update(name="ann")

    shown = [one["name"] for one in records(masked(), Customer)]
    again = record(masked(client="another"), Customer, people.anne.pk)["name"]
    username = record(masked(), Person, people.ann.pk)["username"]

    assert PSEUDONYM.fullmatch(again)
    assert shown == [again, again]
    assert username == f"{again}@masked.invalid"


def test_users_have_pseudonyms_of_their_own(people):
    first, second = (record(masked(pk=pk), Customer, people.anne.pk)["name"] for pk in (1, 2))

    assert first != second


def test_callers_with_equal_rights_do_not_get_each_others_pseudonyms(shop):
    """They share paths, layouts and SQL."""
    one, two = masked(pk=1), masked(pk=2)

    assert allowed_paths(one, TABLES.exposures[Customer]) is allowed_paths(
        two, TABLES.exposures[Customer]
    )
    assert records(one, Customer) != records(two, Customer)
    assert records(one, Customer) == records(one, Customer)


def test_null_and_the_empty_text_are_shown_as_they_are():
    assert mask_column([None, "", "x"], "text", reader="1")[:2] == [None, ""]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("+49 30 1234567", "...4567"),
        ("12345678", "...5678"),
        ("123456", "...56"),
        ("1234", "..."),
        ("1", "..."),
        (1234567890, "...7890"),
    ],
)
def test_last4_leaves_four_characters_hidden_at_least(value, shown):
    assert mask_column([value], "last4", reader="1") == [shown]


def test_a_value_is_part_of_no_pseudonym_of_another_user():
    """Neither may the key of a user and a value be taken for other ones."""
    assert mask_column(["1x"], "text", reader="1") != mask_column(["x"], "text", reader="11")
    assert mask_column([5], "text", reader="1") == mask_column(["5"], "text", reader="1")


def test_long_texts_have_one_pseudonym_in_pages_and_alone(shop):
    tables = registry({Order: {"fields": "id remark", "mask": {"remark": "text"}}})
    Order.objects.update(remark="x" * 5000)
    [one, *_] = records(caller(tables=tables), Order)

    assert one["remark"] == record(caller(tables=tables), Order, one["id"])["remark"]


def test_a_masked_choice_has_no_label(shop):
    tables = registry({Order: {"fields": "id status", "mask": {"status": "text"}}})

    [one, *_] = records(caller(tables=tables), Order)

    assert PSEUDONYM.fullmatch(one["status"])


def test_included_records_are_masked_as_well(shop):
    tables = registry({Line: {"fields": "id sku", "mask": {"sku": "text"}}})

    found = record(caller(tables=tables), Order, shop.a1.pk, include=["lines"])

    assert len(found["lines"]["records"]) == 2
    assert all(PSEUDONYM.fullmatch(one["sku"]) for one in found["lines"]["records"])


def test_children_and_proxies_are_masked_with_the_model_that_they_inherit_from(shop):
    tables = registry(
        {
            Order: {**ORDER, "mask": {"number": "text"}},
            RushOrder: {"fields": "courier number", "label_fields": "number"},
            PaidOrder: {"fields": "number", "filter_fields": "number"},
        }
    )
    rights = caller(tables=tables)

    [rush] = records(rights, RushOrder)
    shown = [one["number"] for one in records(rights, PaidOrder)]

    assert rush["courier"] == "zed"
    assert all(PSEUDONYM.fullmatch(number) for number in (rush["number"], *shown))
    with pytest.raises(ToolError, match="'number' cannot be used in filters"):
        page(rights, PaidOrder, filters={"number": "A1"})


def test_a_description_names_the_mask_and_no_use(shop):
    described = describe(masked(), TABLES.exposures[Customer])
    by_name = {one["name"]: one for one in described["fields"]}

    assert by_name["name"] == {
        "name": "name", "type": "text", "masked": "text", "not": ["filter", "order", "group"],
    }  # fmt: skip
    assert [one["name"] for one in described["fields"]] == ["id", "name", "country"]
    assert by_name["country"]["not"] == ["order"]
    assert described["search"] == ["country"]
    assert "name" not in str(described["example"]["arguments"].get("filters"))


def test_where_records_are_never_shown_there_is_nothing_to_mask(shop):
    options = {"fields": "name country", "mask": {"name": "text"}, "aggregates_only": True}
    tables = registry({Customer: options})

    described = describe(caller(tables=tables), tables.exposures[Customer])

    assert "name" not in [one["name"] for one in described["fields"]]


def test_a_query_that_is_wrong_names_masked_columns_among_those_that_can_be_shown(shop):
    with pytest.raises(ToolError, match=r"Did you mean name\?"):
        page(masked(), Customer, fields=["nam"])

    assert [set(one) for one in records(masked(), Customer, fields=["name"])] == [{"name"}] * 2


# What does not exist.

NAMES = (("anna", "zoe"), ("xaver", "bert"))
USES = ("name", "name__startswith", "name__gt", "name__isnull", "name__in", "name__exact")
PATHS: dict[Any, tuple[str, ...]] = {
    Customer: (*USES, "account_manager__username", "orders__owner__username", "orders__customer"),
    Order: (
        *(f"customer__{use}" for use in USES),
        *(f"{way}__{use.replace('name', 'username', 1)}" for way in ("owner", "watchers")
          for use in USES),
        "customer", "customer__in", "owner", "watchers", "customer__orders__customer__name",
        "lines__order__customer__name",
    ),
    Person: ("username", "username__lt", "manager", "manager__username", "orders__customer__name"),
    RushOrder: ("customer__name", "customer"),
    Line: ("order__customer__name", "order__owner__username", "order__customer"),
}  # fmt: skip
VALUES = ("anna", "a", "x", "zoe", ["anna", "bert"], True, "m")


def calls() -> list[tuple[str, Any, dict[str, Any]]]:
    """Every argument of every tool that reads, with what could tell names apart."""
    found: list[tuple[str, Any, dict[str, Any]]] = []
    for model, paths in PATHS.items():
        found.append(("find", model, {}))
        found.append(("find", model, {"order_by": ["-pk"], "limit": 1}))
        for path in paths:
            for value in VALUES:
                wheres = ("filters", "exclude")
                found += [("find", model, {where: {path: value}}) for where in wheres]
                found.append(("find", model, {"any_of": [{path: value}, {"pk": 0}]}))
                found.append(("aggregate", model, {"filters": {path: value}}))
            found.append(("find", model, {"fields": [path]}))
            found.append(("aggregate", model, {"group_by": [path]}))
            orders = [[path], [f"-{path}"]]
            found += [("find", model, {"order_by": order, "limit": 1}) for order in orders]
            for function in ("count", "count_distinct", "min", "max", "sum"):
                metrics = {"x": {function: path}}
                found.append(("aggregate", model, {"metrics": metrics}))
        found += [("find", model, {"search": str(value)}) for value in VALUES]
        found += [("complete", model, {"text": text}) for text in ("", "a", "x", "zo")]
        found.append(("describe", model, {}))
        found.append(("count", model, {}))
        found.append(("labels", model, {}))
    return found


def answer(rights: Rights, kind: str, model: Any, arguments: dict[str, Any]) -> Any:
    exposure = rights.registry.exposures[model]
    try:
        with transaction.atomic():
            if kind == "find":
                found = page(rights, model, **arguments)
                return [found.encoded.decode(), found.next_cursor is None, found.note]
            if kind == "aggregate":
                return aggregate(rights, model, **arguments)
            if kind == "complete":
                access = allowed_paths(rights, exposure)
                values = [
                    distinct_values(rights, access, path, arguments["text"])
                    for path in access.paths[FILTER]
                ]
                return [keys_of(rights, exposure, arguments["text"]), values]
            if kind == "describe":
                return describe(rights, exposure)
            if kind == "labels":
                return visible_labels(rights, model, model.objects.values_list("pk", flat=True))
            return count(rights, model)
    except ToolError as error:
        return str(error)


def canonical(answers: list[Any]) -> list[str]:
    """The answers with a number for each pseudonym, by its first place."""
    found = []
    for one in answers:
        numbers: dict[str, str] = {}
        found.append(
            PSEUDONYM.sub(
                lambda match, numbers=numbers: numbers.setdefault(match[0], f"#{len(numbers)}"),
                repr(one),
            )
        )
    return found


def both_answers(tables):
    every, found = calls(), []
    for names in NAMES:
        rename(names)
        rights = caller(tables=tables)
        found.append(canonical([answer(rights, *one) for one in every]))
    return [(call, *pair) for call, *pair in zip(every, *found, strict=True) if pair[0] != pair[1]]


@pytest.mark.thorough
def test_no_argument_of_any_tool_tells_masked_values_apart(people):
    assert both_answers(TABLES) == []


@pytest.mark.thorough
def test_the_same_calls_tell_values_apart_that_are_not_masked(people):
    """Else the test above would find nothing."""
    kinds = {call[0] for call, *_ in both_answers(UNMASKED)}

    assert kinds == {"find", "aggregate", "complete", "labels"}


@pytest.mark.thorough
def test_no_answer_holds_a_masked_value(people):
    rename(NAMES[0])

    for one in calls():
        given = msgspec.json.encode(one[2]).decode()
        told = repr(answer(masked(), *one))
        for name in NAMES[0]:
            assert name not in told or name in given, one


def test_a_masked_column_cannot_be_found_out(people):
    rights = masked()

    assert not can_find_out(rights, Customer, "name")
    assert can_find_out(rights, Customer, "country")


def test_the_order_of_the_site_is_not_that_of_a_masked_column(people):
    rename(("zoe", "anna"))

    keys = [one["id"] for one in records(masked(), Customer)]

    assert keys == sorted(keys)
    assert [one["id"] for one in records(caller(tables=UNMASKED), Customer)] == keys[::-1]


def test_the_guard_alone_refuses_every_other_use_of_a_masked_column(people):
    rights = masked()
    policy = allowed_paths(rights, TABLES.exposures[Customer]).policy

    def run(change):
        return list(change(guarded(Customer.objects.all(), policy)))

    assert len(run(lambda rows: rows.values_list("name"))) == 2
    for change in (
        lambda rows: rows.filter(name="a").values_list("pk"),
        lambda rows: rows.order_by("name").values_list("pk"),
        lambda rows: rows.exclude(name__gt="a").values_list("pk"),
    ):
        with pytest.raises(Leak):
            run(change)


def test_the_guard_alone_refuses_a_masked_column_of_a_related_record(people):
    policy = allowed_paths(masked(), TABLES.exposures[Order]).policy

    for name in ("customer__name", "owner__username"):
        with pytest.raises(Leak):
            list(guarded(Order.objects.all(), policy).values_list(name))


def test_the_guard_knows_masks_of_records_that_paths_by_rule_pass(people):
    rights = masked()
    exposure = TABLES.exposures[Line]
    access = paths_of_call(rights, exposure, {"fields": ["order__customer__country"]})

    assert (
        len(
            list(
                guarded(Line.objects.all(), access.policy).values_list("order__customer__country")
            )
        )
        == 3
    )
    for name in ("order__customer__name", "order__owner__username"):
        with pytest.raises(Leak):
            list(guarded(Line.objects.all(), access.policy).values_list(name))


def test_prompts_have_neither_masked_columns_nor_labels_of_them(people):
    customer = record_of(masked(), TABLES.exposures[Customer], str(people.anne.pk))
    order = record_of(masked(), TABLES.exposures[Order], str(people.a1.pk))

    assert customer.values.keys() == {"pk", "id", "country"}
    assert str(customer) == str(people.anne.pk)
    assert str(order.values["customer"]) == str(people.anne.pk)


# Who gets masks.


class ForSupport(ModelExposure):
    fields = ("id", "name")
    filter_fields = ("name",)
    mask = {"name": "text"}
    mask_groups = ("support",)


class ByHeader(ForSupport):
    def is_masked(self, request):
        return "X-Masked" in request.headers


def tables_of(exposure_class):
    found = Registry()
    found.register(Customer, exposure_class)
    return found


def rights_of(user, exposure_class=ForSupport, **headers):
    request = RequestFactory().get("/", headers=headers)
    request.user = user
    principal = Principal(user=user, scopes=frozenset(SCOPES), method="test")
    return Rights(request, principal, registry=tables_of(exposure_class))


def names_for(rights):
    return {one["name"] for one in records(rights, Customer)}


@pytest.fixture
def staff(django_user_model):
    def make(name, *groups):
        user = django_user_model.objects.create(username=name, is_superuser=True)
        for group in groups:
            user.groups.add(Group.objects.get_or_create(name=group)[0])
        return User.objects.get(pk=user.pk)

    return make


@pytest.fixture(autouse=True)
def no_admin(settings):
    """The permissions of the user decide."""
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "ADMIN_SITES": []}


def test_members_of_the_named_groups_get_masks_and_others_values(shop, staff):
    assert names_for(rights_of(staff("ann", "support", "all"))).isdisjoint({"Anne", "Bert"})
    assert names_for(rights_of(staff("bob", "finance"))) == {"Anne", "Bert"}


def test_without_groups_everybody_gets_masks(shop, staff):
    everybody = type("Everybody", (ForSupport,), {"mask_groups": None})

    assert names_for(rights_of(staff("ann"), everybody)).isdisjoint({"Anne", "Bert"})


@pytest.mark.parametrize(
    "user",
    [
        AnonymousUser(),
        SimpleNamespace(pk=1, is_active=True),
        SimpleNamespace(pk=1, groups=SimpleNamespace(model=Customer)),
    ],
    ids=["nobody is logged in", "users have no groups", "groups of another kind"],
)
def test_whoever_can_be_in_no_group_gets_masks(user):
    request = RequestFactory().get("/")
    request.user = user

    assert ForSupport(Customer).is_masked(request)


def test_the_method_of_an_exposure_decides_at_each_call(shop, staff):
    ann = staff("ann")
    principal = rights_of(ann).principal
    tables = tables_of(ByHeader)

    def names(**headers):
        request = RequestFactory().get("/", headers=headers)
        request.user = ann
        return names_for(Rights(request, principal, registry=tables))

    assert names() == {"Anne", "Bert"}
    assert names(X_Masked="1").isdisjoint({"Anne", "Bert"})
    assert names() == {"Anne", "Bert"}


def test_a_rule_that_fails_has_opened_nothing(shop, staff, caplog):
    class Failing(ForSupport):
        def is_masked(self, request):
            raise RuntimeError

    assert names_for(rights_of(staff("ann"), Failing)).isdisjoint({"Anne", "Bert"})
    assert "Whether nasty.customer is masked cannot be told." in caplog.text


def queries_of_groups(rights):
    with CaptureQueriesContext(connection) as queries:
        records(Rights(rights.request, rights.principal, registry=rights.registry), Customer)
    return sum("auth_group" in one["sql"] for one in queries)


def test_groups_are_read_once_for_a_principal(shop, staff):
    rights = rights_of(staff("ann", "support"))

    assert [queries_of_groups(rights) for _ in range(3)] == [1, 0, 0]


@pytest.mark.parametrize("change", [{"mask": {}}, {"mask_groups": None}])
def test_groups_are_not_read_where_no_mask_depends_on_them(shop, staff, change):
    exposure_class = type("Plain", (ForSupport,), change)

    assert queries_of_groups(rights_of(staff("ann", "support"), exposure_class)) == 0


def test_what_one_caller_may_filter_by_is_kept_apart_from_what_another_gets_masked(shop, staff):
    tables = tables_of(ForSupport)
    masked_one, other = (
        Rights(one.request, one.principal, registry=tables)
        for one in (rights_of(staff("ann", "support")), rights_of(staff("bob")))
    )

    for _ in range(2):
        assert records(other, Customer, filters={"name": "Anne"})[0]["name"] == "Anne"
        with pytest.raises(ToolError, match="'name' cannot be used in filters"):
            page(masked_one, Customer, filters={"name": "Anne"})


# Computed columns, and what people see of other people's rights.


class ShoutingAdmin(ModelAdmin):  # type: ignore[type-arg]
    list_display = ("name", "shout")

    def shout(self, customer):
        return customer.name.upper()


@pytest.fixture
def shouting(settings):
    site = AdminSite(name="shouting")
    site.register(Customer, ShoutingAdmin)
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "ADMIN_SITES": [site.name]}
    return site


@pytest.mark.parametrize(("computed", "names"), [(None, []), (["shout"], ["shout"])])
def test_computed_columns_are_left_out_unless_code_names_them(
    shop, staff, shouting, computed, names
):
    exposure_class = type("Computing", (ForSupport,), {"computed": computed})
    staff("ann", "support")
    staff("bob")
    User.objects.update(is_staff=True)
    member, other = (
        rights_of(User.objects.get(username=name), exposure_class) for name in ("ann", "bob")
    )

    assert list(computed_columns(member, member.exposure("nasty.customer"))) == names
    assert list(computed_columns(other, other.exposure("nasty.customer"))) == ["shout"]


def test_the_inspection_says_what_is_masked(shop):
    rights = masked()

    fields = {
        one.name: one
        for one in inspect_fields(rights, own_rights(masked(pk=2)), TABLES.exposures[Customer])
    }
    orders = {
        one.name: one
        for one in inspect_fields(
            rights, own_rights(caller(tables=UNMASKED)), TABLES.exposures[Order]
        )
    }

    assert fields["name"].uses == ("show masked",)
    assert "filter" in fields["country"].uses
    assert orders["customer__name"].uses == ()
    assert orders["customer__name"].reason == "This user gets name of nasty.customer masked."


def test_a_sample_is_masked_for_a_viewer_who_gets_masks(shop, staff):
    tables = tables_of(ForSupport)
    bob = rights_of(staff("bob"))
    bob = Rights(bob.request, bob.principal, registry=tables)
    member = rights_of(staff("ann", "support"))
    viewer = own_rights(Rights(member.request, member.principal, registry=tables))
    exposure = tables.exposures[Customer]

    names = {one["name"] for one in sample_rows(bob, viewer, exposure)}

    assert SharedRights(bob, viewer).masks(Customer) == {"name": "text"}
    assert names.isdisjoint({"Anne", "Bert"})
    assert {one["name"] for one in sample_rows(bob, own_rights(bob), exposure)} == {"Anne", "Bert"}


# Declarations.


@pytest.mark.parametrize(
    ("model", "options", "sentence"),
    [
        (Customer, {"mask": {"nam": "text"}},
         "nam is not a column of the model that fields lists; did you mean name."),
        (Customer, {"mask": {"tenant__name": "text"}, "fields": ["tenant__name"]},
         "tenant__name is not a column of the model that fields lists; write one of ."),
        (Customer, {"mask": {"name": "mail"}}, "name has no mask 'mail'; did you mean email."),
        (Customer, {"mask": {"name": 5}}, "name has no mask 5; write one of email, last4, text."),
        (Customer, {"mask": {"id": "text"}}, "id is a key, which other answers have as well; "
         "leave it out of fields."),
        (Order, {"mask": {"owner": "text"}, "fields": ["owner"]}, "owner is a key, which other "
         "answers have as well; leave it out of fields."),
        (Seat, {"mask": {"hall": "text"}, "fields": ["hall"]}, "hall is a key, which other "
         "answers have as well; leave it out of fields."),
        (Genre, {"mask": {"code": "text"}, "fields": ["code"]}, "code is a key, which other "
         "answers have as well; leave it out of fields."),
        (Order, {"mask": {"attachment": "text"}, "fields": ["attachment"]},
         "attachment is a file or modified_field, which is read; leave it out of fields."),
        (Order, {"mask": {"due": "text"}, "fields": ["due"], "modified_field": "due"},
         "due is a file or modified_field, which is read; leave it out of fields."),
        (Customer, {"mask": ["name"]}, "['name'] is no mapping; write {\"email\": \"email\"}."),
    ],
)  # fmt: skip
def test_a_mask_that_cannot_be_is_a_problem_of_the_declaration(model, options, sentence):
    given = {"fields": ["id", "name"], **options}
    exposure = type("Wrong", (ModelExposure,), given)(model)

    [problem] = Declaration(exposure).problems

    assert problem == f"{exposure.label}: mask: {sentence}"
    with pytest.raises(ImproperlyConfigured):
        declaration_of(exposure)
