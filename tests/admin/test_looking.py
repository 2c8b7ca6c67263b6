from __future__ import annotations

import pytest
from django.urls import reverse

from mcp_django.models import PersonalToken
from tests.admin.looking import many_models, queries_of, text_of
from tests.clients import browser_of

pytestmark = pytest.mark.django_db
PAGES = ["overview", "inspect", "cost", "try_it"]


@pytest.fixture
def in_two_admins(settings):
    settings.ROOT_URLCONF = "tests.admin.other_site"


@pytest.mark.parametrize("name", PAGES)
def test_the_pages_of_a_second_admin_link_to_each_other(in_two_admins, admin_user, name):
    browser = browser_of(admin_user)

    page = browser.get(reverse(f"admin:mcp_django_{name}", current_app="other"))

    assert page.status_code == 200
    content = page.content.decode()
    for other in PAGES:
        assert f'href="/other/mcp_django/assistants/{other.replace("_", "-")}/"' in content
    assert 'href="/admin/' not in content


def test_a_second_admin_looks_at_the_users_that_it_shows_itself(in_two_admins, admin_user, staff):
    url = reverse("admin:mcp_django_inspect", current_app="other")

    response = browser_of(admin_user).post(url, {"username": "staff"})

    assert "As staff" in text_of(response)


@pytest.mark.parametrize("name", PAGES)
def test_the_pages_are_kept_nowhere(admin_user, name):
    page = browser_of(admin_user).get(reverse(f"admin:mcp_django_{name}"))

    assert "no-store" in page["Cache-Control"]


@pytest.mark.parametrize("name", PAGES)
def test_two_hundred_models_take_no_more_queries_than_few(admin_user, name):
    browser = browser_of(admin_user)
    url = reverse(f"admin:mcp_django_{name}")

    few = queries_of(lambda: browser.get(url))
    with many_models(200):
        many = queries_of(lambda: browser.get(url))

    assert many <= few + 2


@pytest.mark.parametrize("name", ["overview", "inspect"])
def test_names_of_tokens_are_text_whatever_they_hold(admin_user, name):
    evil = "<script>alert(1)</script>"
    PersonalToken.create(user=admin_user, name=evil)

    page = browser_of(admin_user).get(reverse(f"admin:mcp_django_{name}"))

    assert evil not in page.content.decode()
    assert "&lt;script&gt;" in page.content.decode()
