"""Who sees what, through the whole endpoint: the admin's rules, asked and not repeated."""

from __future__ import annotations

import pytest
from django import forms
from django.contrib import admin
from django.contrib.auth.models import AnonymousUser
from django.core.checks import run_checks
from django.db import InterfaceError, OperationalError
from django.test import RequestFactory, override_settings

import mcp_django as mcp
from mcp_django.exposure.options import looks_at_object
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.registry import Registry, registry
from mcp_django.principal import READ, Principal, Restriction
from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient
from tests.databases import failing_for
from tests.depot.admin import ParcelAdmin
from tests.depot.models import Driver
from tests.shop.admin import OrderAdmin
from tests.shop.models import Customer, Order
from tests.spec import requirement

pytestmark = pytest.mark.django_db


def rights_of(user, *, registry=registry, scopes=frozenset({READ}), **restriction):
    request = RequestFactory().get("/mcp")
    request.user = user
    principal = Principal(
        user=user, scopes=scopes, method="test", restriction=Restriction(**restriction)
    )
    return Rights(request, principal, registry=registry)


def test_fields_that_the_admin_hides_from_this_user_do_not_exist(client, change_admin):
    Order.objects.create(number="A1", total=7)
    change_admin(
        Order,
        get_fields=lambda self, request, obj=None: ["number"],
        get_list_display=lambda self, request: ["number"],
    )

    record = client.call_tool("find_records", model="shop.order").records[0]
    filtered = client.call_tool("find_records", model="shop.order", filters={"total": 7})
    unknown = client.call_tool("find_records", model="shop.order", filters={"totol": 7})

    assert set(record) == {"id", "number"}
    assert filtered.is_error
    assert filtered.text == unknown.text.replace("totol", "total")


def refuse(request):
    return False


def fail(request):
    raise RuntimeError


@pytest.mark.parametrize("has_permission", [refuse, fail])
def test_the_sites_own_gate_comes_first(client, monkeypatch, has_permission):
    monkeypatch.setattr(admin.site, "has_permission", has_permission, raising=False)

    assert client.models() == ["shop.memo"]


def test_the_first_site_that_lets_the_user_in_answers_and_a_misspelt_one_opens_no_door(
    make_user, monkeypatch, configure
):
    class Outpost(admin.AdminSite):
        def has_permission(self, request):
            return request.user.is_active

    outpost = Outpost(name="outpost")
    outpost.register(Order, OrderAdmin)
    user = make_user("clerk", "view_order")
    Order.objects.create(number="A1")

    with override_settings(MCP_DJANGO={"ADMIN_SITES": ["admin", "outpost"]}):
        assert rights_of(user).may_view(Order)
    assert not rights_of(user).may_view(Order)
    configure(ADMIN_SITES=["admn"])
    assert "mcp_django.E007" in [one.id for one in run_checks(tags=["mcp_django"])]
    assert CheckedClient(user=user).call_tool("find_records", model="shop.order").is_error


class OwnRows(mcp.ModelExposure):
    fields = ("number",)

    def get_queryset(self, request):
        return Order.objects.filter(status="paid")


class OwnRule(OwnRows):
    def has_view_permission(self, request, obj=None):
        return obj is None or obj.number != "A3"


class OwnRuleInRows(OwnRule):
    queryset_enforces_view_permission = True


def rights_with(exposure_class, user):
    own = Registry()
    own.register(Order, exposure_class)
    return rights_of(user, registry=own)


def test_an_exposure_that_decides_itself_serves_others_than_staff_and_rows_alone_do_not(make_user):
    Order.objects.create(number="A1", status="paid")
    Order.objects.create(number="A2")

    rights = rights_with(OwnRule, AnonymousUser())

    assert rights.may_view(Order)
    assert rights.rows(Order).count() == 1
    assert rights.checks_rows_one_by_one(Order)
    assert not rights_with(OwnRuleInRows, AnonymousUser()).checks_rows_one_by_one(Order)
    # Whoever defines rows only still asks for the permission.
    assert rights_with(OwnRows, make_user("ada", "view_order")).may_view(Order)
    assert not rights_with(OwnRows, make_user("bob")).may_view(Order)


def test_an_entry_of_the_admin_that_is_no_model_does_no_harm(client, monkeypatch):
    class NotAModel:
        pass

    class Settings:
        mcp_expose = True

    monkeypatch.setitem(admin.site._registry, NotAModel, Settings())
    registry.forget_resolved()

    assert "shop.order" in client.models()


@requirement("tools:access")
def test_code_of_the_site_is_asked_at_every_call_of_a_known_caller(client, change_admin):
    Order.objects.create(number="A1")
    asked = []

    def get_queryset(self, request):
        asked.append(request.user.pk)
        return Order.objects.all()

    change_admin(Order, get_queryset=get_queryset)

    for _ in range(3):
        client.call_tool("find_records", model="shop.order")

    assert len(asked) == 3


# Rules about single objects


class StaffAdmin(admin.ModelAdmin):
    def has_view_permission(self, request, obj=None):
        return request.user.is_staff if obj else True


class ClosedFormAdmin(admin.ModelAdmin):
    """Changes are judged by object, and so is nothing else."""

    def has_change_permission(self, request, obj=None):
        return obj is None or obj.number == "A1"

    def has_view_or_change_permission(self, request, obj=None):
        return request.user.is_staff


@pytest.mark.parametrize("kind", [StaffAdmin, ClosedFormAdmin])
def test_a_rule_that_does_not_look_at_the_object_leaves_numbers_and_paths(
    client, monkeypatch, kind
):
    customer = Customer.objects.create(name="Ann", country="FR")
    for number in ("A1", "A2"):
        Order.objects.create(number=number, customer=customer, total=2)
    monkeypatch.setitem(admin.site._registry, Order, kind(Order, admin.site))

    overview = client.read_resource("django://site")["models"]
    totals = client.call_tool(
        "aggregate_records", model="shop.order", metrics={"sum": {"sum": "total"}}
    )

    assert {one["model"]: one["records"] for one in overview}["shop.order"] == 2
    assert not totals.is_error, totals.text


def whatever_happens(obj):
    try:
        return obj.number == "A1"
    except Exception:
        return True


#: Ways to look at an object, by what is looked at.
LOOKS = {
    "attribute": lambda request, obj: obj.number == "A1",
    "attribute, whatever happens": lambda request, obj: whatever_happens(obj),
    "membership": lambda request, obj: obj in list(Order.objects.filter(number="A1")),
    "hash": lambda request, obj: obj in set(Order.objects.filter(number="A1")),
    "text": lambda request, obj: str(obj) == "A1",
    "query": lambda request, obj: Customer.objects.filter(orders=obj, name="Ann").exists(),
    "class": lambda request, obj: isinstance(obj, Order) and obj.pk == 1,
    "exact class": lambda request, obj: type(obj) is not Order or obj.number == "A1",
    "permission on it": lambda request, obj: request.user.has_perm("shop.view_order", obj),
}


@pytest.mark.parametrize("method", ["has_view_permission", "has_view_or_change_permission"])
@pytest.mark.parametrize("look", LOOKS)
def test_a_rule_that_looks_at_the_object_is_asked_about_each(client, change_admin, method, look):
    customer = Customer.objects.create(name="Ann")
    Order.objects.create(pk=1, number="A1", customer=customer)
    Order.objects.create(pk=2, number="A2")

    def rule(self, request, obj=None):
        return obj is None or LOOKS[look](request, obj)

    change_admin(Order, **{method: rule, "__str__": lambda self: "admin"})

    overview = client.read_resource("django://site")["models"]

    assert {one["model"]: one["records"] for one in overview}["shop.order"] is None
    assert "A2" not in client.call_tool("find_records", model="shop.order").text
    assert client.refusal("get_record", model="shop.order", pk=2)
    assert client.refusal("aggregate_records", model="shop.order")


class Basket:
    """Of a model that says itself whether it is true."""

    def __len__(self):
        return 0


@pytest.mark.parametrize(("model", "looks"), [(Order, False), (Basket, True)])
def test_whether_an_object_is_true_is_only_a_look_at_it_where_the_class_says(model, looks):
    assert looks_at_object(lambda obj: not obj or 7, model) is looks


@pytest.mark.parametrize(("has_list", "right"), [(False, "view_order"), (True, "add_order")])
def test_a_model_is_there_only_with_its_list_and_the_right_to_view(
    make_user, change_admin, has_list, right
):
    change_admin(Order, has_view_or_change_permission=lambda self, request, obj=None: has_list)

    assert CheckedClient(user=make_user("ada", right, is_staff=True)).models() == []


# What code of the site is given, and where it fails

#: The methods of a ModelAdmin that Django asks with None (add) or with a stored record (change).
ASKED_WITH_RECORDS = {
    "get_fields": ["number"],
    "get_exclude": ["status"],
    "get_fieldsets": [(None, {"fields": ["number"]})],
    "get_readonly_fields": ["number"],
}


@pytest.mark.parametrize(("rows", "rights"), [(0, "view add"), (1, "view"), (0, "view")])
@pytest.mark.parametrize("method", ASKED_WITH_RECORDS)
def test_a_model_admin_is_asked_about_a_stored_record_or_none_of_who_may_add(
    make_user, change_admin, method, rows, rights
):
    names = [f"{verb}_order" for verb in rights.split()]
    client = CheckedClient(user=make_user("ada", *names, is_staff=True))
    customer = Customer.objects.create(name="Anne", country="FR")
    stored = [Order.objects.create(number=f"A{n}", customer=customer) for n in range(rows)]
    asked = []

    def answer(self, request, obj=None):
        asked.append(obj)
        return ASKED_WITH_RECORDS[method]

    change_admin(Order, **{method: answer}, get_list_display=lambda self, request: ["total"])

    found = client.call_tool("find_records", model="shop.order").data

    assert set(asked) == set(stored or ([None] if "add" in rights else []))
    assert ("number" in found["columns"]) is bool(asked)


def test_a_record_that_the_caller_may_not_see_is_not_given_to_a_model_admin(client, change_admin):
    customer = Customer.objects.create(name="Anne", country="FR")
    hidden, seen = (Order.objects.create(number=n, customer=customer) for n in ("A1", "A2"))
    asked = set()

    def get_fieldsets(self, request, obj=None):
        asked.add(obj)
        return [(None, {"fields": ["number"]})]

    def has_view_permission(self, request, obj=None):
        return obj is None or obj.number != hidden.number

    change_admin(Order, get_fieldsets=get_fieldsets, has_view_permission=has_view_permission)
    client.call_tool("find_records", model="shop.order")

    assert asked == {seen}


@pytest.mark.parametrize(
    "options", [{}, {"fields": ["number", "placed_at"]}], ids=["all", "named"]
)
def test_a_column_that_no_form_shows_this_user_does_not_exist(
    client, superuser, change_admin, options
):
    """As Django's documentation has it: one form for superusers, and another for all others."""

    class Plain(forms.ModelForm):
        class Meta:
            exclude = ["placed_at"]

    def get_form(self, request, obj=None, change=False, **kwargs):
        if not request.user.is_superuser:
            kwargs["form"] = Plain
        return admin.ModelAdmin.get_form(self, request, obj, change, **kwargs)

    change_admin(Order, get_form=get_form, **options)
    Order.objects.create(number="A1", customer=Customer.objects.create(name="Anne"))
    boss = CheckedClient(user=superuser)
    orders, asked = {"model": "shop.order"}, {"filters": {"placed_at__isnull": True}}

    columns = [one.call_tool("find_records", **orders).data["columns"] for one in (client, boss)]
    refusals = [one.call_tool("find_records", **orders, **asked) for one in (client, boss)]

    assert ["placed_at" in names for names in columns] == [False, True]
    assert [answer.is_error for answer in refusals] == [True, False]


def fail(self, request, obj=None, **options):
    raise ValueError("It needs a value for the field id.")


@pytest.mark.parametrize(
    "method", ["get_form", *ASKED_WITH_RECORDS, "get_list_display", "get_queryset"]
)
def test_a_model_admin_that_fails_takes_its_own_model_away_and_no_other(
    client, change_admin, caplog, method
):
    customer = Customer.objects.create(name="Anne", country="FR")
    Order.objects.create(number="A1", customer=customer)
    change_admin(Customer, **{method: fail})

    labels = client.models()
    site = client.read_resource("django://site")
    orders = client.call_tool("find_records", model="shop.order").data

    assert labels == ["shop.memo", "shop.order"]
    assert [one["model"] for one in site["models"]] == labels
    assert len(orders["rows"]) == 1
    assert client.call_tool("describe_model", model="shop.customer").is_error
    assert "What may be seen of shop.Customer cannot be told." in caplog.text


# A database that cannot say


LIST = {"name": "list_models", "arguments": {}}
#: What is asked, and the table that does not answer: of rights, or of records that are counted.
ASKED_AGAIN = [
    ("tools/list", {}, "auth_user_groups"),
    ("resources/list", {}, "auth_user_groups"),
    ("tools/call", LIST, "auth_user_groups"),
    ("tools/call", LIST, "depot_parcel"),
]


@pytest.mark.parametrize(("method", "params", "table"), ASKED_AGAIN)
def test_a_connection_lost_on_the_way_is_an_error_and_no_shorter_answer(
    boss, caplog, method, params, table
):
    lost = OperationalError("server closed the connection unexpectedly")

    with failing_for(table, lost), pytest.raises(ProtocolFailure) as failure:
        boss.request(method, params)

    assert failure.value.code == -32603
    assert failure.value.data["id"]
    assert boss.request(method, params)
    # One model whose rules ask a table that is not there leaves the others.
    with failing_for("auth_user_groups", OperationalError("no such table: auth_user_groups")):
        labels = boss.models()
    assert "depot.parcel" not in labels
    assert {"depot.driver", "depot.van"} <= set(labels)
    assert "What may be seen of depot.Parcel cannot be told." in caplog.text


@pytest.mark.parametrize("name", ["may_change", "change_actions", "permission"])
def test_every_question_about_rights_ends_with_the_connection(boss, add_tool, monkeypatch, name):
    def ask(*arguments, **options):
        return Driver.objects.exists()

    if name == "permission":
        add_tool(do_nothing, permission=ask)
    elif name == "may_change":
        monkeypatch.setattr(ParcelAdmin, "has_change_permission", ask)
    else:
        monkeypatch.setattr(ParcelAdmin, "get_actions", ask)
    lost = InterfaceError("connection already closed")

    with failing_for("depot_driver", lost), pytest.raises(ProtocolFailure) as failure:
        boss.request("tools/list")

    assert failure.value.code == -32603


def do_nothing() -> str:
    """Do nothing."""
    return ""
