"""Two people who decide about one thing in the same moment."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.test import Client as Browser
from django.urls import reverse

from mcp_django.admin import make_all_rows
from mcp_django.models import ExposedModel
from tests.clients import browser_of
from tests.exposure.races import together

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = reverse("admin:mcp_django_exposedmodel_change", args=["shop.order"])


@pytest.mark.parametrize("notes", ["", "Seven"])
def test_one_of_them_decides_and_the_other_is_told(make_user, notes):
    row = ExposedModel.objects.create(label="shop.order", notes=notes)
    browsers, forms = [], []
    for number in range(2):
        browser = Browser()
        browser.force_login(make_user(f"boss{number}", is_staff=True, is_superuser=True))
        form = browser.get(PAGE).context["adminform"].form
        codes = {f"uses-{name}-code": "1" for name in form.fields["uses"].initial}
        browsers.append(browser)
        forms.append({"level": number + 1, "based_on": form["based_on"].value(), **codes})

    pages = together(
        lambda number: browsers[number].post(PAGE, forms[number], follow=True).content.decode()
    )

    told = [page for page in pages if "was changed successfully" in page]
    refused = [page for page in pages if "Somebody else" in page]
    assert (len(told), len(refused)) == (1, 1)
    row.refresh_from_db()
    assert row.level == pages.index(told[0]) + 1
    assert LogEntry.objects.count() == 1


@pytest.mark.parametrize(
    "address",
    [
        "/admin/mcp_django/exposedtool/echo/change/",
        "/admin/mcp_django/exposedmodel/shop.order/change/",
        "/admin/mcp_django/prompttemplate/add/",
    ],
)
def test_where_there_are_no_groups_the_page_says_so(admin_user, address):
    browser = browser_of(admin_user)
    make_all_rows(using="default")
    words = "There are no groups yet, so this is for everybody."

    assert words in browser.get(address).content.decode()
    Group.objects.create(name="Support")
    assert words not in browser.get(address).content.decode()
