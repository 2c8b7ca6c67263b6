"""Breadcrumbs of our pages look like those of the admin's own, in every version of Django."""

from __future__ import annotations

import pytest
from django.urls import reverse

from mcp_django.models import ExposedModel
from tests.browser.looks import DARK, LIGHT, NARROW, SKIN
from tests.exposure.stored import make_prompt

STOCK = "admin:shop_order_changelist"
# What a person sees of a page's breadcrumbs: the bar, each of its steps and what parts them.
LOOK = """() => {
  const seen = element => {
    const style = getComputedStyle(element), after = getComputedStyle(element, "::after");
    const names = ["display", "color", "backgroundColor", "padding", "margin", "fontSize",
                   "fontWeight", "lineHeight", "listStyleType", "textDecorationLine"];
    return [element.tagName, ...names.map(name => style[name]), after.content];
  };
  const bar = document.querySelector("nav .breadcrumbs");
  const separators = bar.textContent.split("\\u203a").length;
  return {
    bar: seen(bar),
    inside: [...new Set([...bar.querySelectorAll("*")].map(one => seen(one).join()))].sort(),
    separators: separators > 1,
    left: bar.getBoundingClientRect().left,
    isCurrent: bar.querySelector("[aria-current]")?.matches(":last-child"),
  };
}"""


@pytest.fixture
def prompt(db):
    return make_prompt("reply", "Reply.")


def pages():
    for name in ("overview", "inspect", "cost", "try_it", "live"):
        yield name, ()
    for model in ("exposedmodel", "exposedtool", "exposedprompt"):
        yield f"{model}_changelist", ()
    yield "prompttemplate_upload", ()
    yield "prompttemplate_preview", ("prompt",)
    yield "prompttemplate_versions", ("prompt",)


@pytest.mark.parametrize("look", [LIGHT, DARK, NARROW], indirect=True, ids=lambda look: look.name)
def test_breadcrumbs_look_like_those_of_a_stock_page(browse, boss, prompt):
    ExposedModel.objects.create(label="shop.ledger", level=0)
    page = browse(boss)
    page.goto(reverse(STOCK))
    stock = page.evaluate(LOOK)
    found = {}

    for name, arguments in pages():
        keys = [prompt.pk for _ in arguments]
        page.goto(reverse(f"admin:mcp_django_{name}", args=keys))
        found[name] = page.evaluate(LOOK)
    page.screenshot_to("breadcrumbs")

    assert found == dict.fromkeys(found, stock)


def test_the_breadcrumbs_of_a_new_token_look_like_those_of_a_stock_page(browse, boss):
    page = browse(boss)
    page.goto(reverse(STOCK))
    stock = page.evaluate(LOOK)

    page.goto(reverse("admin:mcp_django_personaltoken_add"))
    page.get_by_label("Name").fill("My editor")
    page.get_by_role("button", name="Save", exact=True).click()
    page.expect(page.get_by_role("heading", name="Copy the token now")).to_be_visible()

    assert page.evaluate(LOOK) == stock


@pytest.mark.needs("jazzmin")
@pytest.mark.parametrize("look", [SKIN], indirect=True)
def test_breadcrumbs_are_one_line_in_a_skin(browse, boss, prompt):
    page = browse(boss)
    page.goto(reverse("admin:mcp_django_prompttemplate_preview", args=[prompt.pk]))
    page.screenshot_to("breadcrumbs")

    links = [link.bounding_box() for link in page.locator(".breadcrumbs a").all()]
    bar = page.locator(".breadcrumbs").bounding_box()

    assert len(links) == 4
    assert len({link["y"] for link in links}) == 1
    assert bar["height"] < 2 * links[0]["height"]
    assert links[0]["x"] == bar["x"]


def test_breadcrumbs_lead_back_step_by_step(browse, boss, prompt):
    page = browse(boss)
    page.goto(reverse("admin:mcp_django_prompttemplate_preview", args=[prompt.pk]))
    links = page.locator(".breadcrumbs a")

    assert links.all_inner_texts() == ["Home", "MCP", "Prompt templates", str(prompt)]
    links.last.click()
    page.expect(page.get_by_role("heading", name="Change prompt template")).to_be_visible()
