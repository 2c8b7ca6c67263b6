"""The pages on an admin site of the project's own."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.urls import reverse

import mcp_django.admin
from mcp_django.models import ExposedModel, PromptTemplate
from tests.clients import browser_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def office(settings):
    from tests.admin import office_urls

    settings.ROOT_URLCONF = "tests.admin.office_urls"
    return office_urls.office


@pytest.fixture
def browser(make_user):
    return browser_of(make_user("boss", is_staff=True, is_superuser=True))


@pytest.mark.thorough
@pytest.mark.usefixtures("office")
def test_every_page_works_there_and_links_stay_there(browser):
    PromptTemplate.objects.create(name="greet")
    names = [
        model._meta.model_name
        for model in admin.site._registry
        if model._meta.app_label == "mcp_django"
    ]
    lists = [
        reverse(f"admin:mcp_django_{name}_changelist", current_app="office") for name in names
    ]
    label = reverse(
        "admin:mcp_django_exposedmodel_change", args=["shop.order"], current_app="office"
    )

    assert len(lists) >= 7
    for url in (*lists, label):
        page = browser.get(url, follow=True)
        assert page.status_code == 200
        assert url.startswith("/office/")
        assert 'href="/admin/' not in page.content.decode()


@pytest.mark.usefixtures("office")
def test_what_is_decided_there_counts(browser):
    ExposedModel.objects.create(label="shop.order")
    url = reverse(
        "admin:mcp_django_exposedmodel_change", args=["shop.order"], current_app="office"
    )
    form = browser.get(url).context["adminform"].form
    codes = {f"uses-{name}-code": "1" for name in form.fields["uses"].initial}

    answer = browser.post(url, {"level": 2, "based_on": form["based_on"].value(), **codes})

    assert answer.url.startswith("/office/")
    assert ExposedModel.objects.get().level == 2


def test_they_are_registered_once(office):
    with pytest.raises(admin.exceptions.AlreadyRegistered):
        mcp_django.admin.register(office)


def test_the_default_site_has_the_same(office):
    own = {model for model in admin.site._registry if model._meta.app_label == "mcp_django"}

    assert own == set(office._registry)
