"""What the list of tools costs a model: the same for sites of any size."""

from __future__ import annotations

import pytest
from django.contrib.admin import AdminSite, ModelAdmin
from django.db import models
from django.test.utils import isolate_apps

import mcp_django as mcp
from mcp_django.exposure.primitives import BUILT_IN
from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from tests.clients import CheckedClient

pytestmark = pytest.mark.django_db


def make_model(number):
    fields = {
        "name": models.CharField(max_length=50),
        "state": models.CharField(max_length=10, choices=[("new", "New"), ("old", "Old")]),
        "total": models.DecimalField(max_digits=10, decimal_places=2),
        "placed_at": models.DateTimeField(null=True),
        "notes": models.TextField(blank=True),
    }
    meta = type("Meta", (), {"app_label": "shop"})
    attributes = {**fields, "Meta": meta, "__module__": __name__}
    return type(f"Thing{number}", (models.Model,), attributes)


@pytest.fixture
def bytes_of_list(monkeypatch, settings, admin_user):
    """The bytes of `tools/list` on a site of so many models, for somebody who may do everything,
    and the names of the tools.
    """

    def measure(count):
        with isolate_apps("tests.shop"):
            things = [make_model(number) for number in range(count)]
        site = AdminSite(name=f"site_of_{count}")
        exposures = {}
        for thing in things:
            site.register(thing, ModelAdmin)
            options = {"fields": ["id", "name", "state", "total", "placed_at"]}
            exposures[thing] = type("E", (mcp.ModelExposure,), {**options, "level": Level.WRITE})
        monkeypatch.setattr(registry, "_classes", exposures)
        monkeypatch.setattr(registry, "tools", {})
        # Which forgets what was resolved, too.
        settings.MCP_DJANGO = {**settings.MCP_DJANGO, "ADMIN_SITES": [site.name]}
        assert len(registry.exposures) == count
        client = CheckedClient(user=admin_user)
        answer = client.post_request("tools/list")
        [listed] = answer.messages
        return len(answer.body), [tool["name"] for tool in listed["result"]["tools"]]

    yield measure
    registry.forget_resolved()


@pytest.mark.thorough
def test_a_list_for_sixty_models_is_as_long_as_one_for_two(bytes_of_list):
    few, names_of_few = bytes_of_list(2)
    many, names_of_many = bytes_of_list(60)

    assert names_of_many == names_of_few
    assert abs(many - few) <= 0.05 * few


def test_a_list_of_all_built_in_tools_has_at_most_12_kib(bytes_of_list):
    size, names = bytes_of_list(60)

    assert set(names) == BUILT_IN
    assert size <= 12 * 1024
