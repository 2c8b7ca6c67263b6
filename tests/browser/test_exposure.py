from __future__ import annotations

import pytest
from django.urls import reverse

from mcp_django.admin import make_all_rows
from mcp_django.levels import Level
from mcp_django.models import ExposedModel, ExposedTool
from mcp_django.testing import Client
from tests.browser.looks import every_look
from tests.decisions import decide

MODELS = reverse("admin:mcp_django_exposedmodel_changelist")
TOOLS = reverse("admin:mcp_django_exposedtool_changelist")


@pytest.fixture(autouse=True)
def _rows(transactional_db):
    make_all_rows(using="default")


def page_of(label):
    return reverse("admin:mcp_django_exposedmodel_change", args=[label])


def test_a_model_is_narrowed_by_the_keyboard_alone(browse, superuser):
    page = browse(superuser)
    page.goto(MODELS)

    page.tab_to("textbox", "Search")
    page.keyboard.type("shop.ord")
    page.press("Enter")
    page.wait_for_url("**q=shop.ord**")
    page.enter("link", "shop.order")
    page.tab_to("combobox", "Level:")
    page.keyboard.type("read")
    page.tab_to("checkbox", "Shown: total")
    page.press("Space")
    page.enter("button", "Save")
    page.expect(page.get_by_text("was changed successfully")).to_be_visible()

    row = ExposedModel.objects.get(label="shop.order")
    assert (row.label, row.level) == ("shop.order", Level.READ)
    assert row.fields == ["id", "number", "customer", "status", "placed_at"]
    assert row.filter_fields is None
    described = Client(user=superuser).call_tool("describe_model", model="shop.order")
    assert "total" not in {one["name"] for one in described.data["fields"]}


def test_a_tool_is_switched_off_by_the_keyboard_alone(browse, superuser):
    page = browse(superuser)
    page.goto(TOOLS)

    page.enter("link", "echo")
    page.tab_to("combobox", "State:")
    page.keyboard.type("off")
    page.enter("button", "Save")
    page.expect(page.get_by_text("was changed successfully")).to_be_visible()

    assert "echo" not in {one["name"] for one in Client(user=superuser).list_tools()}


def test_a_field_that_records_do_not_show_is_seen_to_leave_the_other_uses(browse, superuser):
    page = browse(superuser)
    page.goto(page_of("shop.order"))

    page.get_by_label("Shown: customer").uncheck()

    page.expect(page.get_by_label("Shown: as in code")).not_to_be_checked()
    page.expect(page.get_by_label("Filter: as in code")).to_be_checked()
    page.expect(page.get_by_label("Filter: customer__country")).not_to_be_checked()
    page.expect(page.get_by_label("Filter: status")).to_be_checked()
    page.get_by_label("Shown: as in code").check()
    page.expect(page.get_by_label("Filter: customer__country")).to_be_checked()


def test_pages_work_without_scripts(browse, superuser):
    page = browse(superuser, java_script_enabled=False)
    page.goto(page_of("shop.order"))

    page.get_by_label("Shown: as in code").uncheck()
    page.get_by_label("Shown: total").uncheck()
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url(f"**{MODELS}")

    row = ExposedModel.objects.get(label="shop.order")
    assert "total" not in row.fields
    assert row.filter_fields is None


def test_what_staff_write_runs_no_script(browse, superuser):
    evil = "<img src=x onerror=alert(1)><script>alert(1)</script>\"'"
    decide("shop.order", notes=evil, fields=["id", evil])
    ExposedTool.objects.filter(name="echo").update(title=evil, description=evil)
    page = browse(superuser)

    for url in (
        MODELS,
        TOOLS,
        page_of("shop.order"),
        reverse("admin:mcp_django_exposedtool_change", args=["echo"]),
    ):
        page.goto(url)
        assert page.locator("img[src=x]").count() == 0


def test_people_who_may_only_look_have_pages_for_everybody_too(browse, make_user):
    decide("shop.order", level=Level.AGGREGATES, fields=["id"])
    looker = make_user("looker", "view_exposedmodel", "view_exposedtool", is_staff=True)
    page = browse(looker)

    for name, url in (
        ("model-looker", page_of("shop.order")),
        ("tool-looker", reverse("admin:mcp_django_exposedtool_change", args=["echo"])),
    ):
        page.goto(url)
        page.check_accessible(name)
        assert page.get_by_role("button", name="Save").count() == 0


@every_look
def test_models_are_opened_together(browse, superuser):
    page = browse(superuser)
    page.goto(reverse("admin:mcp_django_exposedmodel_changelist"))

    page.get_by_role("row", name="auth.group").get_by_role("checkbox").check()
    page.locator("select[name=action]").select_option("open_for_reading")
    page.locator("button[name=index]").click()
    page.expect(page.get_by_text("level: as in code -> read: records")).to_be_visible()
    page.check_accessible("exposed-models-bulk")
    page.get_by_role("button", name="Open for reading").click()

    page.expect(page.get_by_text("Open for reading: 1 changed.")).to_be_visible()
