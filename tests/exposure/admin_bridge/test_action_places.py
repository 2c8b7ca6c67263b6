"""Actions outside the menu of the changelist: on the change form, and on buttons."""

from __future__ import annotations

import django
import pytest
from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.http import HttpResponse, HttpResponseRedirect

from mcp_django.exposure.admin_bridge import compat
from mcp_django.exposure.admin_bridge.compat import Place
from mcp_django.exposure.registry import registry
from tests.clients import CheckedClient
from tests.depot.admin import DriverAdmin, VanAdmin
from tests.depot.models import Driver, Van
from tests.exposure.admin_bridge.test_compat import needs_61

# Of packages that were written for Django 6.0.
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore:Overriding get_action"),
]


@pytest.fixture
def van(db):
    return Van.objects.create(plate="A", is_hired=True)


@pytest.mark.parametrize(
    ("name", "messages", "state"),
    [
        ("drive", ["A driven."], (1, True)),
        # Some records have it only.
        ("return_it", [], (0, False)),
        # It takes links only.
        ("look_at", ["GET"], (0, True)),
    ],
)
def test_a_button_of_a_record_is_pressed_as_it_wants(boss, van, name, messages, state):
    done = boss.data(f"depot_van_{name}", pk=str(van.pk))

    van.refresh_from_db()
    assert (done["outcome"], done["records"]) == ("done", 1)
    assert [message["text"] for message in done.get("messages", [])] == messages
    assert (van.kilometres, van.is_hired) == state


def test_buttons_are_offered_in_their_words_to_those_who_may_press_them(depot, make_user):
    user = make_user("ada", "view_van", "change_van", is_staff=True)

    tools = CheckedClient(user=user).tools()

    vans = {name.removeprefix("depot_van_") for name in tools if name.startswith("depot_van_")}
    assert {"drive", "return_it", "look_at", "hire"} <= vans
    # It asks for the permission to delete, and get_changelist_actions hides the other.
    assert not {"sell", "close_down"} & vans
    assert tools["depot_van_drive"]["title"] == "Drive a kilometre"


def test_where_nobody_can_tell_whether_a_record_shows_a_button_it_is_not_pressed(
    boss, van, monkeypatch
):
    monkeypatch.setattr(VanAdmin, "get_change_actions", lambda *args: 1 / 0)

    assert "failed" in boss.refusal("depot_van_drive", pk=van.pk)

    van.refresh_from_db()
    assert van.kilometres == 0


def test_a_button_of_the_model_takes_no_record(boss):
    tool = boss.tools()["depot_van_hire"]
    done = boss.call_tool("depot_van_hire")

    assert set(tool["inputSchema"]["properties"]) == {"answer", "confirmation"}
    assert done.data["messages"] == [{"level": "info", "text": "Hired one."}]
    assert Van.objects.get().plate == "NEW"


def test_a_button_wants_its_record(boss, van, monkeypatch):
    assert "Missing argument: pk." in boss.refusal("depot_van_drive")

    # It goes while the button is pressed.
    monkeypatch.setattr(VanAdmin, "get_queryset", lambda self, request: Van.objects.none())
    refusal = boss.refusal("depot_van_drive", pk=van.pk)

    assert refusal.startswith(f"Not found: {van.pk}. Nothing was done.")


@pytest.fixture
def posted(boss, monkeypatch):
    """What the change form of drivers gets, as if every Django had actions there."""
    found = []

    def function(modeladmin, request, queryset):
        """Promote."""

    def source(model_admin, request):
        if model_admin.model is Driver:
            yield compat.AdminAction(
                name="rename", function=function, description="", place=Place.CHANGE_FORM
            )

    def change_view(self, request, object_id, form_url="", extra_context=None):
        found.append((request.path, object_id, request.POST))
        self.response_action(request, self.get_queryset(request))
        return HttpResponseRedirect(request.path)

    monkeypatch.setattr(compat, "SOURCES", [source])
    monkeypatch.setattr(DriverAdmin, "change_view", change_view)
    monkeypatch.setattr(
        ModelAdmin, "response_action", lambda self, request, queryset: HttpResponse()
    )
    return found


def test_a_change_form_gets_one_record_and_the_prefix_of_its_menu(boss, posted):
    driver = Driver.objects.create(name="Ada")

    done = boss.call_tool("depot_driver_rename", pk=driver.pk, answer={"reason": "luck"})

    [(path, object_id, data)] = posted
    assert done.data == {"outcome": "done", "records": 1}
    assert path == f"/depot/depot/driver/{driver.pk}/change/"
    assert object_id == str(driver.pk)
    assert dict(data) == {
        "CHANGE_FORM-action": ["rename"],
        "CHANGE_FORM-select_across": ["0"],
        "CHANGE_FORM-reason": ["luck"],
        "_selected_action": [str(driver.pk)],
    }


if django.VERSION >= (6, 1):

    @admin.action(
        location=admin.ActionLocation.CHANGE_FORM,
        permissions=["change"],
        description="Promote this %(verbose_name)s",
    )
    def promote(modeladmin, request, queryset):
        queryset.update(name="Captain")
        modeladmin.message_user(
            request, f"{queryset.count()} for {request.POST['CHANGE_FORM-reason']}."
        )


@pytest.fixture
def driver(boss, monkeypatch):
    monkeypatch.setattr(DriverAdmin, "actions", [promote])
    monkeypatch.setattr(DriverAdmin, "mcp_actions", ["promote"])
    registry.forget_resolved()
    yield Driver.objects.create(name="Ada")
    registry.forget_resolved()


@needs_61
def test_an_action_of_the_change_form_is_for_one_record(boss, driver):
    other = Driver.objects.create(name="Eve")
    tool = boss.tools()["depot_driver_promote"]
    asked = boss.call_tool("depot_driver_promote", pk=driver.pk)
    done = boss.call_tool("depot_driver_promote", pk=driver.pk, answer={"reason": "luck"})

    assert tool["description"] == "Promote this driver"
    assert set(tool["inputSchema"]["properties"]) == {"pk", "answer", "confirmation"}
    assert "answer: missing reason." in asked.text
    assert done.data["messages"] == [{"level": "info", "text": "1 for luck."}]
    driver.refresh_from_db()
    other.refresh_from_db()
    assert (driver.name, other.name) == ("Captain", "Eve")


@needs_61
def test_an_action_of_the_change_form_that_fails_is_taken_back(boss, driver, monkeypatch):
    def fail(self, request, message, *args, **options):
        raise RuntimeError("broken")

    monkeypatch.setattr(DriverAdmin, "message_user", fail)

    refusal = boss.refusal("depot_driver_promote", pk=driver.pk, answer={"reason": "luck"})
    missing = boss.refusal("depot_driver_promote", pk=0, answer={"reason": "luck"})

    driver.refresh_from_db()
    assert "What it did in the database was taken back." in refusal
    assert driver.name == "Ada"
    assert missing.startswith("Not found: 0. Nothing was done.")
