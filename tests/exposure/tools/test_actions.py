"""An action is a tool for those to whom the admin offers it, where it is switched on."""

from __future__ import annotations

import msgspec
import pytest
from django.contrib import admin
from django.urls import path

from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.registry import registry
from mcp_django.exposure.tools.actions import is_constant
from mcp_django.levels import Level
from mcp_django.testing import Client, ProtocolFailure
from tests.clients import CheckedClient
from tests.depot.admin import DriverAdmin, ParcelAdmin, VanAdmin
from tests.depot.admin import site as depot_site
from tests.depot.models import Driver, Parcel
from tests.shop.models import Customer

# Of packages that were written for Django 6.0.
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore:Overriding get_action"),
]


def names(client):
    return {tool["name"] for tool in client.list_tools()}


def test_actions_that_are_switched_on_are_tools(boss):
    found = names(boss)

    assert {"depot_parcel_mark_shipped", "depot_van_drive", "ship_now"} <= found
    assert "depot_driver_praise" not in found


def test_deleting_is_never_a_tool_of_its_own(boss):
    assert "depot_parcel_delete_selected" not in names(boss)
    with pytest.raises(ProtocolFailure, match="Unknown tool"):
        boss.call_tool("depot_parcel_delete_selected", pks=[1])


def test_a_user_finds_the_actions_that_the_admin_offers_to_that_user(clerk):
    found = names(clerk)

    assert "depot_parcel_mark_shipped" in found
    assert "depot_parcel_lose" not in found  # its permission is the superuser's
    assert "depot_van_drive" not in found  # it takes the right to change vans
    assert not any(name.startswith("depot_driver") for name in found)


def test_who_may_view_finds_what_declares_no_permission_or_that_one(depot, make_user):
    user = make_user("viewer", "view_parcel", is_staff=True)

    found = {name for name in names(CheckedClient(user=user)) if name.startswith("depot")}

    assert {"depot_parcel_list_numbers", "depot_parcel_labels"} <= found
    assert "depot_parcel_mark_shipped" not in found


@pytest.mark.parametrize("attributes", [{"is_staff": False}, {"is_staff": True}])
def test_who_may_view_nothing_finds_nothing(depot, make_user, attributes):
    codenames = [] if attributes["is_staff"] else ["view_parcel", "change_parcel"]
    user = make_user("nobody", *codenames, **attributes)

    assert not any(name.startswith("depot") for name in names(CheckedClient(user=user)))


@pytest.mark.parametrize("scopes", [["mcp:read"], ["mcp:action"], ["mcp:read", "mcp:write"]])
def test_without_the_scopes_there_are_none(boss, depot, make_user, scopes):
    user = make_user("ada", is_staff=True, is_superuser=True)

    assert not any(name.startswith("depot") for name in names(Client(user=user, scopes=scopes)))


def test_a_read_only_credential_has_the_actions_that_only_read(depot, make_user):
    user = make_user("ada", is_staff=True, is_superuser=True)

    found = names(CheckedClient(user=user, read_only=True))

    assert {name for name in found if name.startswith("depot")} == {
        "depot_parcel_labels",
        "depot_parcel_list_numbers",
    }


def test_a_read_only_site_has_the_same(boss, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "READ_ONLY": True}

    assert "depot_parcel_list_numbers" in names(boss)
    assert "depot_parcel_mark_shipped" not in names(boss)


def test_a_credential_for_some_models_has_their_actions_only(depot, make_user):
    user = make_user("ada", is_staff=True, is_superuser=True)

    found = names(CheckedClient(user=user, models=["depot.driver"]))

    assert {name for name in found if name.startswith("depot")} == {"depot_driver_rename"}


def test_a_model_that_is_only_read_has_none(boss, monkeypatch):
    levels = {Parcel: Level.READ}
    monkeypatch.setattr(
        "mcp_django.exposure.permissions.Rights.level",
        lambda rights, model: levels.get(model, Level.ACT),
    )

    assert not any(name.startswith("depot_parcel") for name in names(boss))
    assert "depot_van_drive" in names(boss)


@pytest.mark.thorough
def test_each_costs_at_most_720_bytes_of_the_list(boss):
    sizes = {one["name"]: len(msgspec.json.encode(one)) + 1 for one in boss.list_tools()}

    assert max(size for name, size in sizes.items() if "depot" in name) <= 720


def test_an_action_that_declares_no_permission_is_marked_in_the_list(boss):
    marked = {
        one["name"] for one in boss.list_tools() if "Declares no permission" in one["description"]
    }

    assert "depot_parcel_list_numbers" in marked
    assert "depot_parcel_mark_shipped" not in marked


def test_an_admin_that_fails_loses_its_own_actions_only(boss, monkeypatch, caplog):
    def fail(self, request, **options):
        raise RuntimeError("broken")

    monkeypatch.setattr(ParcelAdmin, "get_actions", fail)

    found = names(boss)

    assert "depot_van_drive" in found
    assert "depot_parcel_mark_shipped" not in found
    assert "The actions of depot.ParcelAdmin cannot be told." in caplog.text


def test_a_declared_form_that_fails_is_left_out(boss, monkeypatch, caplog):
    def fail():
        raise RuntimeError("broken")

    monkeypatch.setattr("tests.depot.actions.ship_declared.mcp_form", fail)

    assert "depot_parcel_ship_declared" in names(boss)
    assert "cannot be described" in caplog.text


def test_a_site_without_urls_has_no_actions(boss, settings):
    class Urls:
        urlpatterns = [path("admin/", admin.site.urls)]

    settings.ROOT_URLCONF = Urls

    assert not any(name.startswith("depot") for name in names(boss))


def test_a_site_that_lets_the_user_in_no_more_has_none(boss, monkeypatch):
    answers = iter([True, False])
    monkeypatch.setattr(depot_site, "has_permission", lambda request: next(answers, False))

    assert not any(name.startswith("depot") for name in names(boss))


def test_a_model_that_decides_itself_has_the_actions_of_its_admin_if_it_has_one(
    boss, depot, make_user
):
    class Mine(ModelExposure):
        fields = ["id", "name"]
        actions = ["rename"]

        def has_view_permission(self, request, obj=None):
            return True

    registry.register(Driver, Mine)
    try:
        in_the_admin = names(boss)
        outside = names(Client(user=make_user("customer", "change_driver")))
    finally:
        registry.unregister(Driver)

    assert "depot_driver_rename" in in_the_admin
    assert "depot_driver_rename" not in outside


def test_an_admin_that_shows_no_changelist_has_none(boss, monkeypatch):
    monkeypatch.setattr(
        DriverAdmin, "has_view_or_change_permission", lambda self, request, obj=None: False
    )

    assert "depot_driver_rename" not in names(boss)


def test_an_action_that_only_the_request_brings_is_found_by_its_name(boss, monkeypatch):
    def get_actions(self, request, **options):
        def late(modeladmin, request, queryset):
            modeladmin.message_user(request, "Late.")

        return {"late": (late, "late", "Late")}

    monkeypatch.setattr(DriverAdmin, "get_actions", get_actions)
    monkeypatch.setattr(DriverAdmin, "action_form", admin.helpers.ActionForm)
    monkeypatch.setattr(DriverAdmin, "mcp_actions", ["late"])
    registry.forget_resolved()
    driver = Driver.objects.create(name="Ada")

    answer = boss.call_tool("depot_driver_late", pks=[driver.pk])

    registry.forget_resolved()
    assert answer.data["messages"] == [{"level": "info", "text": "Late."}]


# Lists that are kept for a second


@pytest.fixture
def shopkeeper(make_user):
    return make_user("ada", "view_customer", "change_customer", is_staff=True)


def test_a_lost_right_is_lost_to_a_kept_list_at_once(shopkeeper):
    client = Client(user=shopkeeper)
    before = [names(client), names(client)]

    shopkeeper.user_permissions.clear()

    assert all("shop_customer_greet" in found for found in before)
    assert "shop_customer_greet" not in names(client)


def test_a_right_that_is_given_shows_at_once(make_user):
    user = make_user("ada", "view_customer", is_staff=True)
    client = Client(user=user)
    before = [names(client), names(client)]

    user.is_superuser = True
    user.save()

    assert not any("shop_customer_greet" in found for found in before)
    assert "shop_customer_greet" in names(client)


def test_what_code_of_the_site_decides_is_asked_for_every_list(boss, monkeypatch):
    before = names(boss), names(boss)
    monkeypatch.setattr(ParcelAdmin, "has_lose_permission", lambda self, request: False)

    assert all("depot_parcel_lose" in found for found in before)
    assert "depot_parcel_lose" not in names(boss)


class OwnActions(admin.ModelAdmin):
    def get_actions(self, request, **options):
        return {}


class OwnChoices(admin.ModelAdmin):
    def get_action_choices(self, request, *args, **options):
        return []


class OwnVerb(admin.ModelAdmin):
    actions = ["act"]

    @admin.action(permissions=["act"])
    def act(self, request, queryset):
        """Act."""

    def has_act_permission(self, request):
        return True


class OwnDelete(admin.ModelAdmin):
    def has_delete_permission(self, request, obj=None):
        return True


class OwnRows(admin.ModelAdmin):
    def get_queryset(self, request):
        return super().get_queryset(request)


class Plain(admin.ModelAdmin):
    actions = ["act"]

    @admin.action(permissions=["change"])
    def act(self, request, queryset):
        """Act."""


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Plain, True),
        (OwnActions, False),
        (OwnChoices, False),
        (OwnVerb, False),
        (OwnDelete, False),
        (OwnRows, False),
        (VanAdmin, False),
    ],
)
def test_whose_list_may_be_kept(monkeypatch, kind, expected):
    monkeypatch.setitem(admin.site._registry, Customer, kind(Customer, admin.site))

    assert is_constant(ModelExposure(Customer)) is expected


class OwnExposure(ModelExposure):
    def get_queryset(self, request):
        return Customer.objects.all()


class OwnFields(ModelExposure):
    def get_fields(self, request):
        return ["id"]


@pytest.mark.parametrize("kind", [OwnExposure, OwnFields])
def test_an_exposure_with_rules_of_its_own_is_asked_each_time(kind):
    assert not is_constant(kind(Customer))


def test_an_admin_that_shows_its_list_at_another_address_only_has_none(boss, monkeypatch):
    """The rule is asked about the endpoint for records, and about the page of the list here."""
    monkeypatch.setattr(
        DriverAdmin,
        "has_view_or_change_permission",
        lambda self, request, obj=None: not request.path.endswith("/depot/driver/"),
    )

    assert "depot_driver_rename" not in names(boss)
    assert not boss.call_tool("describe_model", model="depot.driver").is_error
