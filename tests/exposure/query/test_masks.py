"""A masked column is shown as a pseudonym. That nothing else depends on it: see tests/leaks."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User
from django.test import RequestFactory

from mcp_django.exceptions import ToolError
from mcp_django.exposure.inspection import OwnRights, SharedRights, inspect_fields, sample_rows
from mcp_django.exposure.masks import mask_column
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.prompts.stored import record_of
from mcp_django.exposure.query.access import allowed_paths
from mcp_django.exposure.query.describe import describe
from mcp_django.exposure.registry import Registry
from mcp_django.principal import SCOPES, Principal
from tests.nasty.models import Customer, Order, PaidOrder, Person, RushOrder
from tests.nasty.site import EXPOSED, caller, page, record, records, registry

pytestmark = pytest.mark.django_db

CUSTOMER = {
    "fields": "id name country",
    "filter_fields": "id name country",
    "order_fields": "id name",
    "search_fields": "name country",
    "label_fields": "name",
    "group_fields": "name country",
    "ordering": "name",
}
PERSON = {"fields": "id username manager", "label_fields": "username"}
ORDER = EXPOSED[Order] | {"fields": "id number status customer customer__name owner total"}
TABLES = registry(
    {
        Customer: {**CUSTOMER, "mask": {"name": "text"}},
        Person: {**PERSON, "mask": {"username": "email"}},
        Order: ORDER,
    }
)
PSEUDONYM = re.compile(r"p-[0-9a-f]{12}(@masked\.invalid)?")


def masked(**options):
    return caller(tables=TABLES, **options)


# What is shown.


def test_equal_values_have_one_pseudonym_in_every_answer_to_a_user(shop):
    Customer.objects.update(name="ann")
    ann = Person.objects.create(username="ann", manager=shop.boss)

    shown = [one["name"] for one in records(masked(), Customer)]
    again = record(masked(client="another"), Customer, shop.anne.pk)["name"]

    assert PSEUDONYM.fullmatch(again)
    assert shown == [again, again]
    assert record(masked(), Person, ann.pk)["username"] == f"{again}@masked.invalid"


def test_callers_with_equal_rights_do_not_get_each_others_pseudonyms(shop):
    """They share paths, layouts and SQL."""
    one, two = masked(pk=1), masked(pk=2)
    exposure = TABLES.exposures[Customer]

    assert allowed_paths(one, exposure) is allowed_paths(two, exposure)
    assert records(one, Customer) != records(two, Customer)
    assert records(one, Customer) == records(one, Customer)


def test_last4_leaves_four_characters_hidden_and_keys_are_not_taken_for_parts_of_values():
    values = ["12345678", "123456", "1234", "1", 1234567890, None, ""]

    shown = mask_column(values, "last4", reader="1")

    assert shown == ["...5678", "...56", "...", "...", "...7890", None, ""]
    assert mask_column(["1x"], "text", reader="1") != mask_column(["x"], "text", reader="11")


def test_long_texts_and_choices_have_one_pseudonym_in_pages_and_alone(shop):
    options = {"fields": "id remark status", "mask": {"remark": "text", "status": "text"}}
    rights = caller(tables=registry({Order: options}))
    Order.objects.update(remark="x" * 5000)

    [one, *_] = records(rights, Order)

    assert one == record(rights, Order, one["id"])
    assert PSEUDONYM.fullmatch(one["status"])


def test_children_and_proxies_are_masked_with_the_model_that_they_inherit_from(shop):
    tables = {
        Order: {**ORDER, "mask": {"number": "text"}},
        RushOrder: {"fields": "courier number", "label_fields": "number"},
        PaidOrder: {"fields": "number", "filter_fields": "number"},
    }
    rights = caller(tables=registry(tables))

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
    assert by_name["country"]["not"] == ["order"]
    assert described["search"] == ["country"]
    assert "name" not in str(described["example"]["arguments"].get("filters"))


# What does not exist.


def test_prompts_have_neither_masked_columns_nor_labels_of_them(shop):
    customer = record_of(masked(), TABLES.exposures[Customer], str(shop.anne.pk))
    order = record_of(masked(), TABLES.exposures[Order], str(shop.a1.pk))

    assert customer.values.keys() == {"pk", "id", "country"}
    assert str(customer) == str(order.values["customer"]) == str(shop.anne.pk)


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


SUPPORT = tables_of(ForSupport)


def rights_of(user, tables=SUPPORT, **headers):
    request = RequestFactory().get("/", headers=headers)
    request.user = user
    principal = Principal(user=user, scopes=frozenset(SCOPES), method="test")
    return Rights(request, principal, registry=tables)


def is_masked(rights):
    names = {one["name"] for one in records(rights, Customer)}
    assert names == {"Anne", "Bert"} or names.isdisjoint({"Anne", "Bert"})
    return names != {"Anne", "Bert"}


@pytest.fixture
def staff(django_user_model, settings):
    """Users in groups. No admin decides, but their permissions."""
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "ADMIN_SITES": []}

    def make(name, *groups):
        user = django_user_model.objects.create(username=name, is_superuser=True, is_staff=True)
        for group in groups:
            user.groups.add(Group.objects.get_or_create(name=group)[0])
        return User.objects.get(pk=user.pk)

    return make


def test_members_of_the_named_groups_get_masks_and_others_values(
    shop, staff, django_assert_num_queries
):
    member, other = rights_of(staff("ann", "support", "all")), rights_of(staff("bob", "finance"))

    for _ in range(2):
        assert is_masked(member)
        assert not is_masked(other)
        # What one may filter by is kept apart from what another gets masked.
        assert records(other, Customer, filters={"name": "Anne"})[0]["name"] == "Anne"
        with pytest.raises(ToolError, match="'name' cannot be used in filters"):
            page(member, Customer, filters={"name": "Anne"})
    # The groups of a user are read once.
    with django_assert_num_queries(1):
        records(Rights(member.request, member.principal, registry=SUPPORT), Customer)


def test_whoever_can_be_in_no_group_gets_masks():
    others = SimpleNamespace(pk=1, groups=SimpleNamespace(model=Customer))

    for user in (AnonymousUser(), SimpleNamespace(pk=1, is_active=True), others):
        assert ForSupport(Customer).is_masked(SimpleNamespace(user=user))


def test_the_method_of_an_exposure_decides_at_each_call(shop, staff, caplog):
    ann, tables = staff("ann"), tables_of(ByHeader)
    principal = rights_of(ann).principal

    class Failing(ForSupport):
        def is_masked(self, request):
            raise RuntimeError

    def is_masked_for(**headers):
        request = rights_of(ann, **headers).request
        return is_masked(Rights(request, principal, registry=tables))

    assert [is_masked_for(), is_masked_for(X_Masked="1"), is_masked_for()] == [False, True, False]
    # A rule that fails has opened nothing.
    assert is_masked(rights_of(ann, tables_of(Failing)))
    assert "Whether nasty.customer is masked cannot be told." in caplog.text


# What people see of other people's rights.


def test_the_inspection_says_what_is_masked(shop):
    fields, orders = (
        {one.name: one for one in inspect_fields(masked(), OwnRights(viewer), exposure)}
        for viewer, exposure in (
            (masked(pk=2), TABLES.exposures[Customer]),
            (caller(), TABLES.exposures[Order]),
        )
    )

    assert fields["name"].uses == ("show masked",)
    assert "filter" in fields["country"].uses
    assert orders["customer__name"].reason == "This user gets name of nasty.customer masked."


def test_a_sample_is_masked_for_a_viewer_who_gets_masks(shop, staff):
    bob, viewer = rights_of(staff("bob")), OwnRights(rights_of(staff("ann", "support")))

    def names(who):
        return {one["name"] for one in sample_rows(bob, who, SUPPORT.exposures[Customer])}

    assert SharedRights(bob, viewer).masks(Customer) == {"name": "text"}
    assert names(viewer).isdisjoint({"Anne", "Bert"})
    assert names(OwnRights(bob)) == {"Anne", "Bert"}
