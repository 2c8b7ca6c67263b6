"""Actions are found whatever Django made them, and in the words that its menus have."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import django
import pytest
from django.contrib import admin
from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.auth.models import User
from django.test import RequestFactory

from mcp_django.admin_actions import SOURCES, AdminAction
from mcp_django.exposure.admin_bridge import compat
from mcp_django.exposure.admin_bridge.compat import Place, known_actions, offered_actions
from tests.depot.admin import site as depot
from tests.depot.models import Van
from tests.shop.models import Customer

pytestmark = [
    pytest.mark.django_db,
    # Django itself warns of overrides that were written for an earlier release.
    pytest.mark.filterwarnings("ignore:Overriding get_action"),
]
needs_61 = pytest.mark.skipif(
    django.VERSION < (6, 1), reason="Django 6.1 has actions on change forms"
)


@pytest.fixture
def request_by_boss():
    request = RequestFactory().get("/")
    request.user = User(username="boss", is_active=True, is_staff=True, is_superuser=True)
    return request


@admin.action(description="Greet %(verbose_name_plural)s", permissions=["view"])
def greet(modeladmin, request, queryset):
    """Say hello."""


def wave(modeladmin, request, queryset):
    """Wave."""


class CustomerAdmin(ModelAdmin):
    actions = [greet, wave, "bow"]

    def bow(self, request, queryset):
        """Bow."""


class Tuples(CustomerAdmin):
    """As packages have written it for years, with a signature that knows no location."""

    def get_actions(self, request):
        return {"made": (wave, "made", "Made up"), "hidden": (wave, "hidden", "Hidden")}

    def get_action_choices(self, request, default_choices=()):
        return [("", "---"), ("made", "Chosen")]


class Grouped(CustomerAdmin):
    def get_action_choices(self, request, default_choices=(), action_location=None):
        return {"": "---", "Kind": [("greet", "Be kind"), ("bow", "Be polite")], "wave": "Wave"}


class Without(CustomerAdmin):
    actions = None


def offered(kind, request):
    return offered_actions(kind(Customer, AdminSite()), request)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (CustomerAdmin, {"greet": "Greet customers", "wave": "Wave", "bow": "Bow"}),
        (Tuples, {"made": "Chosen"}),
        (Grouped, {"greet": "Be kind", "bow": "Be polite", "wave": "Wave"}),
        (Without, {}),
    ],
)
def test_actions_have_the_words_of_the_menu(request_by_boss, kind, words):
    actions = offered(kind, request_by_boss)

    actions.pop("delete_selected", None)
    assert {name: action.description for name, action in actions.items()} == words
    assert {action.place for action in actions.values()} <= {Place.CHANGELIST}


if django.VERSION >= (6, 1):
    BOTH = [admin.ActionLocation.CHANGE_FORM, admin.ActionLocation.CHANGE_LIST]

    @admin.action(location=admin.ActionLocation.CHANGE_FORM, permissions=["change"])
    def refund(modeladmin, request, queryset):
        """Refund one."""

    @admin.action(location=BOTH, description="Thank", description_plural="Thank all")
    def thank(modeladmin, request, queryset):
        """Thank."""

    class FormAdmin(ModelAdmin):
        actions = [refund, thank]


@needs_61
def test_an_action_of_the_change_form_has_its_place(request_by_boss):
    actions = offered(FormAdmin, request_by_boss)

    assert actions["refund"].place is Place.CHANGE_FORM
    assert (actions["thank"].place, actions["thank"].description) == (
        Place.CHANGELIST,
        "Thank all",
    )
    assert {"refund", "thank"} <= known_actions(FormAdmin(Customer, AdminSite())).keys()


class Locations(enum.Enum):
    """As Django 6.1 has them, for those releases that have none."""

    CHANGE_LIST = "CHANGE_LIST"
    CHANGE_FORM = "CHANGE_FORM"


@dataclass
class Action:
    func: object
    name: str


class LikeDjango61(CustomerAdmin):
    def get_actions(self, request, action_location=Locations.CHANGE_LIST):
        name = "listed" if action_location is Locations.CHANGE_LIST else "formed"
        return {name: Action(wave, name)}

    def get_action_choices(
        self, request, default_choices=None, action_location=Locations.CHANGE_LIST
    ):
        return [(name, name.title()) for name in self.get_actions(request, action_location)]


class LikeDjango60(CustomerAdmin):
    def get_actions(self, request, *, action_location=None):
        return {"listed": Action(wave, "listed")}

    def get_action_choices(self, request):
        return [("listed", "Listed"), ("formed", "Formed")]


@pytest.mark.parametrize(
    ("kind", "places"),
    [
        (LikeDjango61, {"listed": Place.CHANGELIST, "formed": Place.CHANGE_FORM}),
        (LikeDjango60, {"listed": Place.CHANGELIST}),
    ],
)
def test_each_place_is_asked_in_the_words_that_an_admin_knows(
    request_by_boss, monkeypatch, kind, places
):
    monkeypatch.setattr(compat, "LOCATIONS", Locations)

    actions = offered(kind, request_by_boss)

    assert {name: action.place for name, action in actions.items()} == places
    assert all(action.function is wave for action in actions.values())


@pytest.mark.parametrize("locations", [None, Locations])
def test_classes_are_asked_for_each_place_that_there_is(monkeypatch, locations):
    def base_actions(self, action_location=None):
        name = "plain" if action_location is None else action_location.value.lower()
        return [(wave, name, "Wave")]

    monkeypatch.setattr(compat, "LOCATIONS", locations)
    monkeypatch.setattr(CustomerAdmin, "_get_base_actions", base_actions)

    names = list(known_actions(CustomerAdmin(Customer, AdminSite())))

    assert names == (["plain"] if locations is None else ["change_list", "change_form"])


def test_classes_tell_of_actions_and_buttons_whoever_may_run_them():
    actions = list(known_actions(CustomerAdmin(Customer, AdminSite())))

    assert actions[-3:] == ["greet", "wave", "bow"]
    assert {"drive", "sell", "hire"} <= known_actions(depot._registry[Van]).keys()


def test_another_source_adds_actions_and_replaces_none(request_by_boss, request):
    def source(model_admin, request):
        yield AdminAction(name="greet", function=wave, description="Not first")
        yield AdminAction(name="extra", function=wave, description="Extra")

    SOURCES.append(source)
    request.addfinalizer(lambda: SOURCES.remove(source))

    actions = offered(CustomerAdmin, request_by_boss)

    assert actions["greet"].function is greet
    assert actions["extra"].description == "Extra"
