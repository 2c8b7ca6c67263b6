"""Each page that nothing has to be done on, in each look: nothing keeps anybody from using it."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse
from django.utils import timezone

from mcp_django.admin import make_all_rows
from mcp_django.levels import Level
from mcp_django.models import CallRecord, ExposedTool, PersonalToken, UserRestriction
from tests.browser.looks import SKIN, every_look
from tests.decisions import decide
from tests.exposure.stored import ORDER, TONE, make_prompt, say
from tests.oauth.flow import CALLBACK, CHALLENGE, RESOURCE
from tests.services import is_there

if is_there("oauth"):
    from mcp_django.oauth.models import Authorization
    from mcp_django.oauth.toolkit import get_application_model


def hello() -> str:
    """Say hello."""
    return "Hello"


@pytest.fixture
def site(transactional_db, superuser, add_prompt):
    """Rows for all of the pages. Return the keys that are in addresses."""
    add_prompt(hello)
    make_all_rows(using="default")
    Group.objects.create(name="clerks")
    decide("shop.order", level=Level.AGGREGATES, fields=["id", "gone"], notes="7 is refunded.")
    tools = ExposedTool.objects
    tools.filter(name="echo").update(title="Parrot", needs_confirmation=True, calls_per_minute=5)
    tools.filter(name="shop_customer_greet").update(enabled=False)
    arguments = [ORDER, TONE]
    prompt = make_prompt("late", "Draft {{ order.number }}.", arguments=arguments, title="Late")
    say(prompt, "Draft a {{ tone }} mail about {{ order }}.", arguments=arguments)
    now = timezone.now()
    CallRecord.objects.bulk_create(
        CallRecord(
            kind="tool",
            method="tools/call",
            target="find_records shop.order",
            principal="default/user:1/My editor",
            user=superuser,
            client="My editor 1.2",
            outcome="failed" if number % 9 == 0 else "done",
            milliseconds=(number * 37) % 400,
            at=now - timedelta(minutes=11 * number),
        )
        for number in range(120)
    )
    return {
        "prompt": prompt.pk,
        "token": PersonalToken.create(user=superuser, name="laptop")[0].pk,
        "user": UserRestriction.objects.create(user=superuser).pk,
    }


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


#: Names of pages of the admin, with the key of a record.
PAGES = [
    *[(name, None) for name in ("overview", "cost", "inspect", "try_it", "live")],
    ("serversettings_changelist", None),
    ("exposedmodel_changelist", None),
    ("exposedmodel_change", "shop.order"),
    ("exposedtool_changelist", None),
    ("exposedtool_change", "echo"),
    ("exposedprompt_changelist", None),
    ("exposedprompt_change", "hello"),
    ("userrestriction_changelist", None),
    ("userrestriction_change", "user"),
    ("personaltoken_changelist", None),
    ("personaltoken_add", None),
    ("personaltoken_change", "token"),
    ("prompttemplate_changelist", None),
    ("prompttemplate_add", None),
    ("prompttemplate_upload", None),
    *[(f"prompttemplate_{name}", "prompt") for name in ("change", "versions", "preview")],
]


@every_look
def test_every_page_of_the_admin_is_for_everybody_and_has_djangos_breadcrumbs(
    browse, superuser, site, look
):
    page = browse(superuser)
    page.goto(reverse("admin:shop_order_changelist"))
    stock = page.evaluate(LOOK) if look is not SKIN else None

    for name, key in PAGES:
        page.goto(reverse(f"admin:mcp_django_{name}", args=[site.get(key, key)] if key else []))
        page.check_accessible(name)
        if not name.endswith(("_add", "_change")) and look is not SKIN:
            assert page.evaluate(LOOK) == stock, name

    page.goto(reverse("admin:app_list", args=["mcp_django"]))
    page.get_by_role("link", name="Assistants", exact=True).first.click()
    page.expect(page.get_by_role("heading", name="Connect a client")).to_be_visible()


@pytest.fixture
def application():
    model = get_application_model()
    return model.objects.create(
        client_id="https://claude.example/client.json",
        name="Claude",
        redirect_uris=CALLBACK,
        client_type=model.CLIENT_PUBLIC,
        authorization_grant_type=model.GRANT_AUTHORIZATION_CODE,
        registration_source="cimd",
        cimd_expires_at=None,
    )


@pytest.fixture
def consent(application, superuser):
    Authorization.grant(
        user=superuser,
        application=application,
        resource=RESOURCE,
        scopes=["mcp:read", "mcp:write"],
        code="c",
        limits={"models": ["shop.order"]},
    )


@pytest.mark.needs("oauth")
@every_look
def test_the_pages_of_people_who_sign_in_are_for_everybody(
    browse, superuser, application, consent
):
    asked = {
        "response_type": "code",
        "client_id": application.client_id,
        "redirect_uri": CALLBACK,
        "scope": "mcp:read mcp:write mcp:delete mcp:action",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "resource": RESOURCE,
    }
    page = browse(superuser)

    for name, url in (
        ("consent", f"{reverse('mcp_django_oauth:authorize')}?{urlencode(asked)}"),
        *((name, reverse(f"mcp_django_pages:{name}")) for name in ("connect", "apps", "tokens")),
    ):
        page.goto(url)
        page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
        page.check_accessible(name)


@pytest.mark.needs("oauth")
def test_a_program_is_kept_from_writing_and_ended_by_the_keyboard_alone(
    browse, superuser, consent
):
    page = browse(superuser)
    page.goto(reverse("mcp_django_pages:apps"))

    page.enter("button", "Only let it read")
    page.expect(page.get_by_text("(at the moment it only reads)")).to_be_visible()
    page.enter("button", "End access")

    page.expect(page.get_by_text("There are none.")).to_be_visible()
    assert Authorization.objects.get().read_only
    assert not Authorization.objects.get().is_in_force


@pytest.mark.needs("jazzmin")
@pytest.mark.parametrize("look", [SKIN], indirect=True)
def test_breadcrumbs_are_one_line_in_a_skin(browse, superuser, site):
    page = browse(superuser)
    page.goto(reverse("admin:mcp_django_prompttemplate_preview", args=[site["prompt"]]))
    page.screenshot_to("breadcrumbs")

    steps = page.locator(".breadcrumbs a")
    links = [link.bounding_box() for link in steps.all()]
    bar = page.locator(".breadcrumbs").bounding_box()

    assert steps.all_inner_texts() == ["Home", "MCP", "Prompt templates", "late"]
    assert len({link["y"] for link in links}) == 1
    assert bar["height"] < 2 * links[0]["height"]
    assert links[0]["x"] == bar["x"]
    steps.last.click()
    page.wait_for_url(f"**/prompttemplate/{site['prompt']}/change/")
