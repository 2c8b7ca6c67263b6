"""An action is a tool for those to whom the admin offers it, where it is switched on."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.urls import path

from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.registry import registry
from mcp_django.exposure.tools.actions import is_constant
from mcp_django.levels import Level
from mcp_django.testing import Client
from tests.clients import CheckedClient
from tests.depot.admin import DriverAdmin, ParcelAdmin, VanAdmin
from tests.depot.admin import site as depot_site
from tests.depot.models import Driver, Parcel
from tests.shop.models import Customer

# Of packages that were written for Django 6.0.
pytestmark = [pytest.mark.django_db, pytest.mark.filterwarnings("ignore:Overriding get_action")]


def names(client):
    return {tool["name"] for tool in client.list_tools()}


CHANGES, READS, FREE = "mark_shipped", "labels", "list_numbers"
STAFF, ROOT = {"is_staff": True}, {"is_staff": True, "is_superuser": True}


@pytest.mark.parametrize(
    ("codenames", "attributes", "options", "expected"),
    [
        ("", ROOT, {}, {CHANGES, READS, FREE, "lose"}),
        # The permission of `lose` is the superuser's.
        ("view_parcel change_parcel", STAFF, {}, {CHANGES, READS, FREE}),
        ("view_parcel", STAFF, {}, {READS, FREE}),
        ("change_van", STAFF, {}, set()),
        ("view_parcel change_parcel", {}, {}, set()),
        ("", ROOT, {"scopes": ["mcp:read"]}, set()),
        ("", ROOT, {"scopes": ["mcp:action"]}, set()),
        ("", ROOT, {"scopes": ["mcp:read", "mcp:write"]}, set()),
        ("", ROOT, {"read_only": True}, {READS, FREE}),
        # It declares no permission, so it may touch anything.
        ("", ROOT, {"models": ["depot.parcel"]}, {CHANGES, READS}),
        ("", ROOT, {"models": ["depot.driver"]}, set()),
    ],
)
def test_a_user_and_a_credential_find_the_actions_that_the_admin_offers_them(
    depot, make_user, codenames, attributes, options, expected
):
    user = make_user("ada", *codenames.split(), **attributes)

    found = names(CheckedClient(user=user, **options))

    actions = {f"depot_parcel_{name}": name for name in (CHANGES, READS, FREE, "lose")}
    assert {actions[name] for name in found if name in actions} == expected


def no(self, request, obj=None):
    return False


def elsewhere_only(self, request, obj=None):
    """The rule is asked about the endpoint for records, and about the page of the list here."""
    return not request.path.endswith("/depot/driver/")


@pytest.mark.parametrize("rule", [no, elsewhere_only])
def test_an_admin_that_shows_no_changelist_has_none(boss, monkeypatch, rule):
    monkeypatch.setattr(DriverAdmin, "has_view_or_change_permission", rule)

    assert "depot_driver_rename" not in names(boss)


def test_a_site_without_urls_or_that_lets_the_user_in_no_more_has_none(
    boss, settings, monkeypatch
):
    class Urls:
        urlpatterns = [path("admin/", admin.site.urls)]

    with monkeypatch.context() as patched:
        answers = iter([True, False])
        patched.setattr(depot_site, "has_permission", lambda request: next(answers, False))
        let_in_no_more = names(boss)
    settings.ROOT_URLCONF = Urls

    assert not any(name.startswith("depot") for name in let_in_no_more | names(boss))


def test_a_model_that_is_only_read_has_none(boss, monkeypatch):
    levels = {Parcel: Level.READ}
    monkeypatch.setattr(
        "mcp_django.exposure.permissions.Rights.level",
        lambda rights, model: levels.get(model, Level.ACT),
    )

    assert not any(name.startswith("depot_parcel") for name in names(boss))
    assert "depot_van_drive" in names(boss)


def test_an_admin_that_fails_loses_its_own_actions_only(boss, monkeypatch, caplog):
    def fail(self, request, **options):
        raise RuntimeError("broken")

    monkeypatch.setattr(ParcelAdmin, "get_actions", fail)

    found = names(boss)

    assert {"depot_van_drive", "ship_now"} & found == {"depot_van_drive"}
    assert "depot_parcel_mark_shipped" not in found
    assert "The actions of depot.ParcelAdmin cannot be told." in caplog.text


def test_a_declared_form_that_fails_is_left_out(boss, monkeypatch, caplog):
    def fail():
        raise RuntimeError("broken")

    monkeypatch.setattr("tests.depot.actions.ship_declared.mcp_form", fail)

    assert "depot_parcel_ship_declared" in names(boss)
    assert "cannot be described" in caplog.text


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


def act(permission):
    """An action of that permission, which the admin has a rule for."""

    @admin.action(permissions=[permission])
    def act(self, request, queryset):
        """Act."""

    return {"act": act, "actions": ["act"], "has_act_permission": lambda self, request: True}


def own(*arguments, **options):
    """A rule of the site."""


@pytest.mark.parametrize(
    ("attributes", "exposed", "is_kept"),
    [
        (act("change"), {}, True),
        (act("act"), {}, False),
        ({"get_actions": own}, {}, False),
        ({"get_action_choices": own}, {}, False),
        ({"has_delete_permission": own}, {}, False),
        ({"get_queryset": own}, {}, False),
        (vars(VanAdmin), {}, False),
        ({}, {"get_queryset": own}, False),
        ({}, {"get_fields": own}, False),
    ],
    ids=range(9),
)
def test_a_list_is_kept_where_no_code_of_the_site_has_a_say(
    monkeypatch, attributes, exposed, is_kept
):
    kind = type("Admin", (admin.ModelAdmin,), dict(attributes))
    monkeypatch.setitem(admin.site._registry, Customer, kind(Customer, admin.site))

    assert is_constant(type("Exposure", (ModelExposure,), exposed)(Customer)) is is_kept


def test_what_code_of_the_site_decides_is_asked_for_every_list(boss, monkeypatch):
    before = names(boss), names(boss)
    monkeypatch.setattr(ParcelAdmin, "has_lose_permission", lambda self, request: False)

    assert all("depot_parcel_lose" in found for found in before)
    assert "depot_parcel_lose" not in names(boss)
