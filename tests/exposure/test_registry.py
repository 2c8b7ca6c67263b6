from __future__ import annotations

import re
from functools import partial

import pytest
from django.contrib import admin
from django.core.exceptions import ImproperlyConfigured
from django.db import models
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

import mcp_django as mcp
from mcp_django.exceptions import AlreadyRegistered, NotRegistered
from mcp_django.exposure import registry as module
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.registry import Registry, check_name, suggest_tool_name
from tests.shop.models import Customer, Memo, Order
from tests.spec import requirement


class Numbers(ModelExposure):
    fields = ("id",)


def named() -> str:
    """Look."""
    return ""


def typed() -> Order:
    """Look."""
    return Order()


@pytest.fixture
def registry(monkeypatch):
    own = Registry()
    monkeypatch.setattr(module, "registry", own)
    return own


def test_register_takes_every_option_of_an_exposure_and_no_other_and_is_a_decorator(registry):
    mcp.register(Memo, fields=["id"], label_fields=["text"], description="Notes.")

    assert registry.exposures[Memo].fields == ["id"]
    assert registry.exposures[Memo].label_fields == ["text"]
    assert [one.label for one in registry.exposures.values()] == ["shop.customer", "shop.memo"]
    mcp.unregister(Memo)
    assert mcp.register(Order, Memo)(Numbers) is Numbers
    assert mcp.is_registered(Order)
    assert mcp.is_registered(Memo)


def test_what_is_registered_twice_or_never_is_told(registry):
    mcp.register(Memo, exposure_class=Numbers)

    with pytest.raises(AlreadyRegistered):
        mcp.register(Memo, exposure_class=Numbers)
    with pytest.raises(AlreadyRegistered):
        # That of a generic tool.
        mcp.tool(name="find_records")(named)
    mcp.unregister(Memo)
    assert not mcp.is_registered(Memo)
    with pytest.raises(NotRegistered):
        mcp.unregister(Memo)


DECORATORS = {
    "FunctionTool named": (mcp.tool, "tools"),
    "FunctionTool other": (partial(mcp.tool, name="other"), "tools"),
    "CodePrompt named": (mcp.prompt, "prompts"),
    "CodeResource shop://x": (partial(mcp.resource, "shop://x"), "resources"),
}


@pytest.mark.parametrize("made", DECORATORS)
def test_a_function_is_offered_once_and_stays_itself(made):
    (decorate, table), key = DECORATORS[made], made.partition(" ")[2]
    own = Registry()

    assert decorate(registry=own)(named) is named
    assert repr(getattr(own, table)[key]) == f"<{made}>"
    with pytest.raises(AlreadyRegistered, match=key):
        decorate(registry=own)(named)
    own.remove(table[:-1], key)
    with pytest.raises(NotRegistered, match=key):
        own.remove(table[:-1], key)


class Abstract(models.Model):
    class Meta:
        app_label = "shop"
        abstract = True


#: What a site may write, and what it is told.
MISTAKES = [
    (lambda: mcp.register(Memo, field=["id"]), "no option 'field'"),
    *(
        (partial(mcp.register, Memo, fields=["id"], level=level), "one of mcp_django.Level: HID")
        for level in ("write", 5, True)
    ),
    (lambda: mcp.register(Memo)(type("Empty", (ModelExposure,), {})), "lists no fields"),
    *(
        (lambda wrong=wrong: module.registry.register(wrong, Numbers), "not a model")
        for wrong in (Abstract, object, "shop.Order")
    ),
    *((partial(mcp.register, *bare), "Name the model") for bare in ((), (Numbers,))),
    *(
        (lambda wrong=wrong: mcp.register(Memo)(wrong), "is no subclass of mcp_django")
        for wrong in (type("Plain", (), {"fields": ["id"]}), admin.ModelAdmin)
    ),
    (lambda: mcp.tool(readonly=True), "no option 'readonly'; did you mean read_only."),
    (lambda: mcp.prompt(titel="T"), "no option 'titel'; did you mean title."),
    (lambda: mcp.tool(permission=["shop.view_order"])(named), "is not a permission for the"),
    (lambda: mcp.resource(named), "is no URI. Write a scheme of your own"),
    (lambda: mcp.tool(typed), "JSON: type <class 'tests.shop.models.Order'> is not supported"),
]


@pytest.mark.parametrize(("mistake", "sentence"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_in_a_registration_is_a_sentence(registry, mistake, sentence):
    with pytest.raises(ImproperlyConfigured, match=re.escape(sentence)):
        mistake()

    assert not mcp.is_registered(Memo)


def test_code_decides_where_an_admin_exposes_the_same_model(registry):
    mcp.register(Customer, exposure_class=Numbers)

    assert registry.exposures[Customer].fields == ("id",)
    registry.unregister(Customer)
    assert registry.exposures[Customer].fields == ("id", "name", "country")


def test_other_admin_sites_in_the_settings_are_other_exposures(settings):
    assert Customer in module.registry.exposures
    with override_settings(MCP_DJANGO={**settings.MCP_DJANGO, "ADMIN_SITES": []}):
        assert Customer not in module.registry.exposures

    assert Customer in module.registry.exposures


def test_without_the_admin_only_code_exposes_anything(registry, settings):
    mcp.register(Order, fields=["id"])
    installed = [app for app in settings.INSTALLED_APPS if app != "django.contrib.admin"]

    with override_settings(INSTALLED_APPS=installed):
        found = dict(registry.candidates)

    assert list(found) == [Order]


# Names of tools


@requirement("tools:names")
@pytest.mark.parametrize(
    "name",
    ["", "A", "1st", "_private", "two__parts", "with-hyphen", "with.dot", "a\n", "é", "a" * 41],
)
def test_a_name_that_some_client_refuses_is_refused_with_one_that_works(name):
    with pytest.raises(ImproperlyConfigured, match="cannot be the name of a tool") as caught:
        check_name(name, kind="tool")

    assert f'name="{suggest_tool_name(name)}"' in str(caught.value)


def test_a_suggestion_stays_near_to_the_name():
    suggested = {
        "monthlyRevenue": "monthly_revenue",
        "two__parts": "two_parts",
        "shop.order-list": "shop_order_list",
        "a" * 50: "a" * 40,
        "12": "my_tool",
    }

    assert {name: suggest_tool_name(name) for name in suggested} == suggested


@given(st.text())
def test_every_suggestion_is_a_valid_name(name):
    suggested = suggest_tool_name(name)

    assert check_name(suggested, kind="tool") == suggested
