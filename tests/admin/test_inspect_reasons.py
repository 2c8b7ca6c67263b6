"""What can it see: why a model, a field, a tool or all of it is not there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.utils import timezone

from mcp_django.levels import Level
from mcp_django.models import ExposedTool, PersonalToken, ServerSettings, UserRestriction
from tests.admin.looking import allow, row_of, text_of
from tests.decisions import decide
from tests.exposure.stored import make_prompt
from tests.shop.models import Ledger, Order

pytestmark = pytest.mark.django_db


@dataclass
class Scene:
    """Where something is not there for bob, and for the looker it is."""

    bob: Any
    looker: Any
    settings: Any
    monkeypatch: Any
    token_of: Any
    add_tool: Any
    expose: Any

    def set(self, **settings):
        self.settings.MCP_DJANGO = {**self.settings.MCP_DJANGO, **settings}

    def change_bob(self, **attributes):
        type(self.bob).objects.filter(pk=self.bob.pk).update(**attributes)

    def restrict(self, **restriction):
        UserRestriction.objects.create(user=self.bob, **restriction)

    def take(self, codename):
        left = self.bob.user_permissions.exclude(codename=codename)
        self.bob.user_permissions.set(left)

    def patch_order_admin(self, name, method):
        order_admin = type(admin.site.get_model_admin(Order))
        self.monkeypatch.setattr(order_admin, name, method, raising=False)

    def expose_ledger(self, **attributes):
        self.expose(Ledger, fields=["id", "amount"], **attributes)


@pytest.fixture
def scene(bob, looker, settings, monkeypatch, token_of, add_tool, expose):
    return Scene(bob, looker, settings, monkeypatch, token_of, add_tool, expose)


def is_not_bob(request):
    return request.user.get_username() != "bob"


def not_for_bob(self, request, obj=None):
    return is_not_bob(request)


def closed_to_bob(scene):
    scene.monkeypatch.setattr(admin.AdminSite, "has_permission", not_for_bob)


def fail_for_bob(self, request):
    if not is_not_bob(request):
        raise RuntimeError("no tenant")
    return Order.objects.all()


def over(scene):
    token = scene.token_of()
    PersonalToken.objects.update(expires_at=timezone.now())
    return token


def revoked(scene):
    token = scene.token_of()
    token.revoke()
    return token


def only_for_looker(scene):
    def secret_tool() -> str:
        """Only for lookers."""
        return ""

    scene.add_tool(secret_tool, permission=is_not_bob)


def held_from_writing(scene, *, read_only=False):
    """Return a token of somebody who may pay."""
    allow(scene.bob, "shop.change_order")
    return scene.token_of(scopes=["mcp:read", "mcp:write"], read_only=read_only)


def with_action(scene, **options):
    """Return a token of bob, who may do as much with customers as the looker."""
    for person in (scene.bob, scene.looker):
        allow(person, "shop.change_customer")
    return scene.token_of(**options)


def with_writing(scene, **settings):
    """Return a token that only reads, unless it is about the settings."""
    decide("shop.order", level=Level.WRITE)
    allow(scene.bob, "shop.change_order")
    return scene.set(**settings) if settings else scene.token_of()


def without_customers(scene):
    allow(scene.looker, "shop.change_customer")
    scene.bob.user_permissions.clear()


def tool(name, **decision):
    return ExposedTool.objects.create(name=name, **decision)


def for_support(row):
    row.groups.add(Group.objects.create(name="Support"))


TURNED_AWAY = {"RUN_MIDDLEWARE": ["tests.admin.test_inspect.turn_away"]}
#: How it came about, where it stands, and what the page says there. A preparation may return the
#: token that is looked at. A field stands behind its model, and an empty place is the whole page.
REASONS = [
    # Everything
    (lambda s: s.bob.delete(), "", "There is no such user whom you may see."),
    (lambda s: s.change_bob(is_active=False), "", "no credential of the user opens anything"),
    (lambda s: s.restrict(blocked=True), "", "Staff blocked this user"),
    (over, "", "This token is expired: it opens nothing."),
    (revoked, "", "This token is revoked: it opens nothing."),
    (lambda s: s.set(**TURNED_AWAY), "", "Middleware of this site answers in place of the call."),
    # Models
    (lambda s: None, "shop.memo", "does not have the permission shop.view_memo."),
    (lambda s: None, "shop.ledger", "neither code nor staff opened it"),
    (lambda s: decide("shop.order", level=Level.HIDDEN), "shop.order", "Staff hid it."),
    (
        lambda s: for_support(decide("shop.order")),
        "shop.order",
        "groups that this user is not in.",
    ),
    (
        lambda s: s.change_bob(is_staff=False),
        "shop.order",
        "does not let this user in: not staff.",
    ),
    (closed_to_bob, "shop.order", "The admin does not let this user in."),
    (
        lambda s: s.patch_order_admin("has_view_permission", not_for_bob),
        "shop.order",
        "The rules of OrderAdmin refuse this user",
    ),
    (
        lambda s: s.patch_order_admin("get_queryset", fail_for_bob),
        "shop.order",
        "failed: see the log",
    ),
    (
        lambda s: s.expose_ledger(has_view_permission=not_for_bob),
        "shop.ledger",
        "The rules of Exposed refuse this user.",
    ),
    (lambda s: s.expose_ledger(level=Level.HIDDEN), "shop.ledger", "Code hides it."),
    (lambda s: s.token_of(models=["shop.order"]), "shop.customer", "is held to other models."),
    (lambda s: s.token_of(scopes=["mcp:action"]), "shop.order", "lacks the scope mcp:read"),
    # The level is that of the user, and not the one to which staff opened the model.
    (
        lambda s: decide("shop.order", level=Level.WRITE),
        "shop.order",
        "read: records. The model is opened for “write”, but the admin offers this user nothing",
    ),
    (
        lambda s: with_writing(s, READ_ONLY=True),
        "shop.order",
        "but nothing can be changed. READ_ONLY is set for the site.",
    ),
    (with_writing, "shop.order", "but the credential has no scope for that."),
    # Fields
    (
        lambda s: decide("shop.order", fields=["id", "number"]),
        "shop.order total",
        "Staff took it out.",
    ),
    (lambda s: None, "shop.order margin", "Code does not name it."),
    (
        lambda s: s.take("view_customer"),
        "shop.order customer__country",
        "It leads through shop.customer, which this user does not have.",
    ),
    (
        lambda s: decide("shop.customer", fields=["id", "name"]),
        "shop.order customer__country",
        "Staff took it out of shop.customer.",
    ),
    (
        lambda s: decide("shop.customer", level=Level.AGGREGATES),
        "shop.order customer__country",
        "It leads through shop.customer, which has only numbers about groups.",
    ),
    # Prompts
    (
        lambda s: make_prompt("reply", "Hi.") and s.token_of(scopes=["mcp:action"]),
        "reply",
        "The credential lacks the scope mcp:read.",
    ),
    # Tools
    (without_customers, "shop_customer_greet", "It is about shop.customer, which this user does"),
    (
        lambda s: with_action(s, scopes=["mcp:read"]),
        "shop_customer_greet",
        "The credential lacks a scope.",
    ),
    (lambda s: s.token_of(read_only=True), "pay", "permission shop.change_order."),
    (lambda s: tool("echo", enabled=False), "echo", "Staff switched it off."),
    (lambda s: for_support(tool("echo")), "echo", "groups that this user is not in"),
    (lambda s: s.change_bob(is_staff=False), "echo", "It is for active staff"),
    (only_for_looker, "secret_tool", "The rules of the site refuse this user."),
    (lambda s: s.token_of(scopes=["mcp:action"]), "find_records", "lacks a scope"),
    (lambda s: s.token_of(models=["shop.order"]), "echo", "The token is held to some models."),
    (
        lambda s: decide("shop.order", level=Level.WRITE),
        "update_record",
        "There is no model of which this user's assistants may change records.",
    ),
    (lambda s: held_from_writing(s, read_only=True), "pay", "The token is read-only."),
    *(
        (lambda s, close=close: (close(s), held_from_writing(s))[1], "pay", sentence)
        for sentence, close in {
            "READ_ONLY is set for the site.": lambda s: s.set(READ_ONLY=True),
            "Staff made the server read-only.": lambda s: ServerSettings.objects.create(
                read_only=True
            ),
            "Staff made assistants of this user read-only.": lambda s: s.restrict(read_only=True),
        }.items()
    ),
]


@pytest.mark.parametrize(
    ("prepare", "place", "sentence"), REASONS, ids=[f"{place}: {why}" for _, place, why in REASONS]
)
def test_the_page_says_why_something_is_not_there(scene, look, prepare, place, sentence):
    prepared = prepare(scene)
    token = prepared if isinstance(prepared, PersonalToken) else None
    model, _, field = place.rpartition(" ")

    who = {"who": "", "token": token.pk} if token else {"who": "bob"}
    page = look(model=model, **who)

    row = row_of(page, field) if place else text_of(page)
    assert sentence in row
    assert ("As token phone of bob" in text_of(page)) is bool(token)
    # What is said of a switch is not said of a scope as well.
    assert not ("read-only" in sentence and "scope" in row)
