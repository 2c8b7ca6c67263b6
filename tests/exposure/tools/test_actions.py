"""An action is a tool for those to whom the admin offers it, where it is switched on."""

from __future__ import annotations

import re
from types import SimpleNamespace

import msgspec
import pytest
from django.contrib import admin
from django.urls import path
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_django.exposure.admin_bridge.compat import AdminAction, Place
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.registry import registry
from mcp_django.exposure.tools.actions import (
    MOST_BYTES,
    ActionNames,
    action_definition,
    is_constant,
)
from mcp_django.levels import Level
from mcp_django.protocol.render import tool_definition
from mcp_django.protocol.revisions import Revision
from tests.clients import CheckedClient
from tests.depot.admin import DriverAdmin, ParcelAdmin, VanAdmin
from tests.depot.admin import site as depot_site
from tests.depot.models import Driver, Parcel
from tests.shop.models import Customer

# Of packages that were written for Django 6.0.
pytestmark = [pytest.mark.django_db, pytest.mark.filterwarnings("ignore:Overriding get_action")]


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

    found = CheckedClient(user=user, **options).tools()

    actions = {f"depot_parcel_{name}": name for name in (CHANGES, READS, FREE, "lose")}
    assert {actions[name] for name in found if name in actions} == expected


def elsewhere_only(self, request, obj=None):
    """The rule is asked about the endpoint for records, and about the page of the list here."""
    return not request.path.endswith("/depot/driver/")


@pytest.mark.parametrize("rule", [lambda self, request, obj=None: False, elsewhere_only])
def test_an_admin_that_shows_no_changelist_has_none(boss, monkeypatch, rule):
    monkeypatch.setattr(DriverAdmin, "has_view_or_change_permission", rule)

    assert "depot_driver_rename" not in boss.tools()


def test_a_site_without_urls_or_that_lets_the_user_in_no_more_has_none(
    boss, settings, monkeypatch
):
    class Urls:
        urlpatterns = [path("admin/", admin.site.urls)]

    with monkeypatch.context() as patched:
        answers = iter([True, False])
        patched.setattr(depot_site, "has_permission", lambda request: next(answers, False))
        let_in_no_more = boss.tools().keys()
    settings.ROOT_URLCONF = Urls

    assert not any(name.startswith("depot") for name in let_in_no_more | boss.tools().keys())


def test_a_model_that_is_only_read_has_none(boss, monkeypatch):
    levels = {Parcel: Level.READ}
    monkeypatch.setattr(
        "mcp_django.exposure.permissions.Rights.level",
        lambda rights, model: levels.get(model, Level.ACT),
    )

    assert not any(name.startswith("depot_parcel") for name in boss.tools())
    assert "depot_van_drive" in boss.tools()


def fail(*arguments, **options):
    raise RuntimeError("broken")


@pytest.mark.parametrize("method", ["get_actions", "_get_base_actions"])
def test_an_admin_that_fails_loses_its_own_actions_only(boss, monkeypatch, caplog, method):
    monkeypatch.setattr(ParcelAdmin, method, fail)
    registry.forget_resolved()

    found = boss.tools()

    registry.forget_resolved()
    assert {"depot_van_drive", "ship_now"} & found.keys() == {"depot_van_drive"}
    assert "depot_parcel_mark_shipped" not in found
    assert "The actions of depot.ParcelAdmin cannot be told." in caplog.text


def test_a_declared_form_that_fails_is_left_out(boss, monkeypatch, caplog):
    monkeypatch.setattr("tests.depot.actions.ship_declared.mcp_form", fail)

    assert "depot_parcel_ship_declared" in boss.tools()
    assert "cannot be described" in caplog.text


def test_a_model_that_decides_itself_has_the_actions_of_its_admin_if_it_has_one(
    boss, depot, make_user, expose
):
    expose(
        Driver,
        fields=["id", "name"],
        actions=["rename"],
        has_view_permission=lambda self, request, obj=None: True,
    )
    outside = CheckedClient(user=make_user("customer", "change_driver"))

    assert "depot_driver_rename" in boss.tools()
    assert "depot_driver_rename" not in outside.tools()


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
        *(
            ({name: own}, {}, False)
            for name in (
                "get_actions",
                "get_action_choices",
                "has_delete_permission",
                "get_queryset",
            )
        ),
        (vars(VanAdmin), {}, False),
        *(({}, {name: own}, False) for name in ("get_queryset", "get_fields")),
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
    before = boss.tools(), boss.tools()
    monkeypatch.setattr(ParcelAdmin, "has_lose_permission", lambda self, request: False)

    assert all("depot_parcel_lose" in found for found in before)
    assert "depot_parcel_lose" not in boss.tools()


# Its definition has at most 720 bytes, whatever the site wrote about it


def action(menu="Ship", place=Place.CHANGELIST, doc=None, permissions=("change",), **attributes):
    def function(modeladmin, request, queryset):
        pass

    function.__doc__ = doc
    if permissions is not None:
        function.allowed_permissions = list(permissions)
    for name, value in attributes.items():
        setattr(function, f"mcp_{name}", value)
    return AdminAction(name="ship", function=function, description=menu, place=place)


def size(definition):
    return max(
        len(msgspec.json.encode(tool_definition(definition, revision.features)))
        for revision in Revision
    )


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (action("Ship them"), ("", "Ship them")),
        (action("Ship them", doc="Send parcels.\n\nMore."), ("Ship them", "Send parcels.")),
        # A title that repeats the name is left out.
        (action("Ship selected orders", doc="Send."), ("", "Send.")),
        (action("Go", doc="For programs.", description="For models."), ("Go", "For models.")),
        (
            action("Ship", permissions=None),
            ("", "Ship. Declares no permission: who may view the model may run it."),
        ),
    ],
)
def test_title_and_description_are_those_of_the_menu_and_the_docstring(written, told):
    made = action_definition("shop_order_ship", written)

    assert (made.title, made.description) == told


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (False, True, False)),
        ({"read_only": True}, (True, False, True)),
        ({"destructive": False}, (False, False, False)),
        ({"idempotent": True}, (False, True, True)),
    ],
)
def test_annotations_are_careful_unless_the_site_says_otherwise(given, expected):
    made = action_definition("ship", action(**given)).annotations

    assert (made.read_only, made.destructive, made.idempotent) == expected


def test_each_place_has_its_own_selection():
    properties = {
        place: list(action_definition("ship", action(place=place)).input_schema["properties"])
        for place in Place
    }

    rest = ["answer", "confirmation"]
    chosen = action_definition("ship", action(place=Place.CHANGELIST)).input_schema
    assert chosen["properties"]["pks"]["items"] == {"type": "string"}
    assert properties == {
        Place.CHANGELIST: ["pks", "filters", "exclude", "search", *rest],
        Place.CHANGE_FORM: ["pk", *rest],
        Place.RECORD_BUTTON: ["pk", *rest],
        Place.MODEL_BUTTON: rest,
    }


def test_a_declared_form_is_in_the_schema_where_it_fits_and_costs_the_end_of_a_description():
    small = {"type": "object", "properties": {"carrier": {"type": ["string", "null"]}}}
    large = {"type": "object", "properties": {f"field_{n}": {} for n in range(100)}}

    told = action_definition("ship", action(doc="Word " * 200), answer=small)
    left_out = action_definition("ship", action(), answer=large).input_schema["properties"]

    # One type at a time.
    carrier = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert told.input_schema["properties"]["answer"] == {
        **small,
        "properties": {"carrier": carrier},
        "required": [],
    }
    assert left_out["answer"] == {"type": "object", "additionalProperties": True}
    assert len(told.description) > 40
    assert told.description.endswith("…")
    assert size(told) < MOST_BYTES


@given(st.text(max_size=200), st.text(max_size=2000), st.sampled_from(Place), st.booleans())
def test_no_definition_is_longer_than_720_bytes(description, doc, place, is_marked):
    written = action(description, place, doc=doc, permissions=None if is_marked else ())

    made = action_definition("a" * 40, written)

    assert size(made) < MOST_BYTES
    assert not is_marked or "Declares no permission" in made.description


# Every action has a name that all clients take, that is its own, and that stays

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def names_for(*keys, taken=(), **given):
    known = {key: SimpleNamespace(mcp_name=given.get(key[1], "")) for key in keys}
    return ActionNames(known, taken=frozenset(taken))


SHIP, C = ("shop.order", "ship"), ("a.b", "c")
LONG = [("warehouse.shipment", f"recalculate_every_total{end}") for end in ("_of", "_of_all")]


@pytest.mark.parametrize(
    ("made", "key", "name"),
    [
        (names_for(SHIP), SHIP, "shop_order_ship"),
        # What else there is does not matter, unless the name is shared.
        (
            names_for(SHIP, ("shop.customer", "ship"), ("shop.order", "pay")),
            SHIP,
            "shop_order_ship",
        ),
        (names_for(SHIP, ship="ship_orders"), SHIP, "ship_orders"),
        (names_for(C, c="Not A Name"), C, "a_b_c"),
        (names_for(C, c="revenue", taken=["revenue"]), C, "a_b_c"),
        # That of a tool of code, or of two actions.
        (names_for(SHIP, taken=["shop_order_ship"]), SHIP, "shop_order_ship_[0-9a-f]{4}"),
        (names_for(("a_b.c", "d"), ("a.b", "c_d")), ("a_b.c", "d"), "a_b_c_d_[0-9a-f]{4}"),
        (names_for(("a_b.c", "d"), ("a.b", "c_d")), ("a.b", "c_d"), "a_b_c_d_[0-9a-f]{4}"),
        # Only a request brings these.
        (names_for(C), ("x.y", "Late One!"), "x_y_late_one"),
        (names_for(("a_b.c", "d")), ("a.b", "c_d"), "a_b_c_d_[0-9a-f]{4}"),
        # Longer than clients take.
        *(
            (names_for(*LONG), key, "warehouse_shipment_recalculate_ever_[0-9a-f]{4}")
            for key in LONG
        ),
    ],
    ids=range(12),
)
def test_a_name_is_the_given_one_or_app_model_and_action_with_a_hash_where_it_has_to(
    made, key, name
):
    assert re.fullmatch(name, made.of(*key))


@given(st.sets(st.tuples(st.text(min_size=1), st.text()), max_size=20))
@example(set(LONG))
def test_any_label_and_action_make_a_name_that_clients_take(keys):
    found = names_for(*keys)

    assert len(found.keys) == len(keys)
    assert all(NAME.fullmatch(name) and "__" not in name for name in found.keys)
    assert [found.of(*key) for key in keys] == [names_for(*sorted(keys)).of(*key) for key in keys]
