"""The pages on an admin site of the project's own."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.urls import reverse

import mcp_django.admin
from mcp_django.models import ExposedModel
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

    there = {model for model in office._registry if model._meta.app_label == "mcp_django"}
    assert own == there
