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

pytestmark = pytest.mark.django_db

is_61 = django.VERSION >= (6, 1)
needs_61 = pytest.mark.skipif(not is_61, reason="Django 6.1 has actions on change forms")
#: Django itself warns of overrides that were written for an earlier release.
old_signatures = pytest.mark.filterwarnings("ignore:Overriding get_action")


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


def offered(kind, request, model=Customer):
    return offered_actions(kind(model, AdminSite()), request)


def test_actions_have_the_function_and_the_words_of_the_menu(request_by_boss):
    found = offered(CustomerAdmin, request_by_boss)

    assert list(found) == ["delete_selected", "greet", "wave", "bow"]
    assert found["greet"].function is greet
    assert found["greet"].description == "Greet customers"
    assert found["bow"].function is CustomerAdmin.bow
    assert {one.place for one in found.values()} == {Place.CHANGELIST}


def test_an_action_tells_whether_it_declares_permissions(request_by_boss):
    found = offered(CustomerAdmin, request_by_boss)

    assert found["greet"].permissions == ("view",)
    assert found["wave"].permissions is None


class Tuples(CustomerAdmin):
    """As packages have written it for years, with a signature that knows no location."""

    def get_actions(self, request):
        def made(modeladmin, request, queryset):
            """Made for this request."""

        return {"made": (made, "made", "Made up"), "hidden": (made, "hidden", "Hidden")}

    def get_action_choices(self, request, default_choices=()):
        return [("", "---"), ("made", "Chosen")]


@old_signatures
def test_tuples_and_old_signatures_are_understood(request_by_boss):
    found = offered(Tuples, request_by_boss)

    assert {name: one.description for name, one in found.items()} == {"made": "Chosen"}


class Grouped(CustomerAdmin):
    def get_action_choices(self, request, default_choices=(), action_location=None):
        return {"": "---", "Kind": [("greet", "Be kind"), ("bow", "Be polite")], "wave": "Wave"}


def test_choices_in_groups_are_choices(request_by_boss):
    found = offered(Grouped, request_by_boss)

    assert {name: one.description for name, one in found.items() if name != "delete_selected"} == {
        "greet": "Be kind",
        "bow": "Be polite",
        "wave": "Wave",
    }


class Without(CustomerAdmin):
    actions = None


def test_an_admin_without_actions_offers_none(request_by_boss):
    assert offered(Without, request_by_boss) == {}


if is_61:

    @admin.action(location=admin.ActionLocation.CHANGE_FORM, permissions=["change"])
    def refund(modeladmin, request, queryset):
        """Refund one."""

    @admin.action(
        location=[admin.ActionLocation.CHANGE_FORM, admin.ActionLocation.CHANGE_LIST],
        description="Thank %(verbose_name)s",
        description_plural="Thank %(verbose_name_plural)s",
    )
    def thank(modeladmin, request, queryset):
        """Thank."""

    class FormAdmin(ModelAdmin):
        actions = [refund, thank]

    class OldActions(FormAdmin):
        def get_actions(self, request):
            return super().get_actions(request)

    class OldChoices(FormAdmin):
        def get_action_choices(self, request, default_choices=()):
            return [(name, name) for name in self.get_actions(request)]


@needs_61
def test_an_action_of_the_change_form_has_its_place(request_by_boss):
    found = offered(FormAdmin, request_by_boss)

    assert found["refund"].place is Place.CHANGE_FORM
    assert (found["thank"].place, found["thank"].description) == (
        Place.CHANGELIST,
        "Thank customers",
    )


@needs_61
@old_signatures
@pytest.mark.parametrize("name", ["OldActions", "OldChoices"])
def test_an_override_for_django_6_0_has_no_actions_on_the_change_form(request_by_boss, name):
    assert "refund" not in offered(globals()[name], request_by_boss)


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
    ("kind", "expected"),
    [
        (LikeDjango61, {"listed": Place.CHANGELIST, "formed": Place.CHANGE_FORM}),
        (LikeDjango60, {"listed": Place.CHANGELIST}),
    ],
)
def test_each_place_is_asked_in_the_words_that_an_admin_knows(
    request_by_boss, monkeypatch, kind, expected
):
    monkeypatch.setattr(compat, "LOCATIONS", Locations)

    found = offered(kind, request_by_boss)

    assert {name: one.place for name, one in found.items()} == expected
    assert all(one.function is wave for one in found.values())


@pytest.mark.parametrize("locations", [None, Locations])
def test_classes_are_asked_for_each_place_that_there_is(monkeypatch, locations):
    def base_actions(self, action_location=None):
        name = "plain" if action_location is None else action_location.value.lower()
        return [(wave, name, "Wave")]

    monkeypatch.setattr(compat, "LOCATIONS", locations)
    monkeypatch.setattr(CustomerAdmin, "_get_base_actions", base_actions)

    found = known_actions(CustomerAdmin(Customer, AdminSite()))

    assert list(found) == (["plain"] if locations is None else ["change_list", "change_form"])


@needs_61
def test_classes_tell_of_actions_of_both_places():
    assert {"refund", "thank"} <= known_actions(FormAdmin(Customer, AdminSite())).keys()


def test_classes_tell_of_actions_and_buttons_whoever_may_run_them():
    assert list(known_actions(CustomerAdmin(Customer, AdminSite())))[-3:] == [
        "greet",
        "wave",
        "bow",
    ]
    assert {"drive", "sell", "hire"} <= known_actions(depot._registry[Van]).keys()


@old_signatures
def test_buttons_are_actions_with_the_words_that_stand_on_them(request_by_boss):
    found = offered_actions(depot._registry[Van], request_by_boss)

    assert (found["drive"].place, found["drive"].description) == (
        Place.RECORD_BUTTON,
        "Drive a kilometre",
    )
    assert (found["hire"].place, found["hire"].description) == (Place.MODEL_BUTTON, "Hire")
    assert found["export_admin_action"].place is Place.CHANGELIST


@old_signatures
def test_the_permissions_of_a_button_are_asked(make_user):
    request = RequestFactory().get("/")
    request.user = make_user("clerk", "view_van", "change_van", is_staff=True)

    found = offered_actions(depot._registry[Van], request)

    assert "drive" in found
    assert "sell" not in found
    assert "close_down" not in found  # get_changelist_actions hides it


def test_what_a_record_says_of_its_buttons_is_not_taken_for_granted(request_by_boss):
    van = Van.objects.create(plate="A")
    vans = depot._registry[Van]

    shown = compat.shown_buttons(vans, request_by_boss, Place.RECORD_BUTTON, str(van.pk))

    assert "return_it" not in shown
    with pytest.raises(Van.DoesNotExist):
        compat.shown_buttons(vans, request_by_boss, Place.RECORD_BUTTON, "0")


def test_another_source_adds_actions(request_by_boss, request):
    def source(model_admin, request):
        yield AdminAction(name="greet", function=wave, description="Not first")
        yield AdminAction(name="extra", function=wave, description="Extra")

    SOURCES.append(source)
    request.addfinalizer(lambda: SOURCES.remove(source))

    found = offered(CustomerAdmin, request_by_boss)

    assert found["greet"].function is greet
    assert found["extra"].description == "Extra"
