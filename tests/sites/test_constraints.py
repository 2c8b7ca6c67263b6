"""Where a permission holds for some objects, its bare name opens none."""

from __future__ import annotations

import pytest
from django.core.checks import run_checks
from django.test import Client as WebClient
from django.urls import reverse

from mcp_django.exposure.registry import registry
from mcp_django.testing import Client
from tests.clients import CheckedClient, WSGIClient
from tests.shop.models import Memo
from tests.sites.restricted import restrict

pytestmark = pytest.mark.django_db

WHO = {
    "root": {"is_staff": True, "is_superuser": True},
    "staff": {"is_staff": True},
    "viewer": {},
    "outsider": {},
}


@pytest.fixture(autouse=True)
def memos():
    for code in ("open-1", "open-2", "closed-1"):
        Memo.objects.create(text=code, code=code)


@pytest.fixture
def declared():
    """Let a class stand for the exposure of memos."""
    before = type(registry.candidates[Memo])

    def declare(**attributes):
        registry.unregister(Memo)
        registry.register(Memo, type("MemoExposure", (before,), attributes))

    yield declare
    registry.unregister(Memo)
    registry.register(Memo, before)


@pytest.fixture(params=[CheckedClient, WSGIClient])
def codes(request, make_user):
    """The codes of the memos that somebody finds. None: there are no memos."""

    def find(name):
        client = request.param(user=make_user(name, **WHO[name]))
        models = {one["model"]: one for one in client.call_tool("list_models").data["models"]}
        found = client.call_tool("find_records", model="shop.memo")
        if "shop.memo" not in models:
            assert found.is_error
            return None
        assert models["shop.memo"]["records"] == len(found.records)
        return sorted(one["code"] for one in found.records)

    return find


EVERY = ["closed-1", "open-1", "open-2"]


RESTRICTED = {
    "get_queryset": lambda self, request: restrict(Memo.objects.all(), request.user, "view")
}
ENOUGH = {"queryset_enforces_view_permission": True}


@pytest.mark.parametrize(
    ("declaration", "name", "found"),
    [
        ({}, "root", EVERY),
        ({}, "staff", None),
        ({}, "viewer", None),
        ({}, "outsider", None),
        (RESTRICTED, "root", EVERY),
        (RESTRICTED, "viewer", ["open-1", "open-2"]),
        (RESTRICTED, "outsider", None),
        (ENOUGH, "viewer", EVERY),
        (ENOUGH, "outsider", None),
    ],
)
def test_a_bare_permission_shows_rows_only_where_the_exposure_says_which(
    codes, declared, declaration, name, found
):
    declared(**declaration)

    assert codes(name) == found


def warnings():
    return [one for one in run_checks(tags=["mcp_django"]) if one.id == "mcp_django.W009"]


def test_a_check_says_what_to_type(declared, settings):
    (warning,) = warnings()

    assert "shop.memo" in warning.msg
    assert "tests.sites.restricted.ObjectPermissionBackend" in warning.msg
    assert "def get_queryset(self, request)" in warning.hint
    assert "queryset_enforces_view_permission = True" in warning.hint

    declared(queryset_enforces_view_permission=True)
    assert warnings() == []


@pytest.mark.parametrize(
    "backend",
    [
        "django.contrib.auth.backends.RemoteUserBackend",
        "django.contrib.auth.backends.AllowAllUsersModelBackend",
        "tests.sites.restricted.Door",
        "tests.sites.restricted.Inherited",
    ],
)
def test_backends_without_a_rule_of_their_own_change_nothing(settings, make_user, backend):
    settings.AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend", backend]
    clerk = Client(user=make_user("clerk", "view_memo"))

    found = clerk.call_tool("find_records", model="shop.memo")

    assert len(found.records) == 3
    assert warnings() == []


def test_a_permission_on_the_whole_model_is_enough_beside_such_a_backend(settings, make_user):
    settings.AUTHENTICATION_BACKENDS = [
        "tests.sites.restricted.ObjectPermissionBackend",
        "django.contrib.auth.backends.ModelBackend",
    ]
    clerk, viewer = Client(user=make_user("clerk", "view_memo")), Client(user=make_user("viewer"))

    assert len(clerk.call_tool("find_records", model="shop.memo").records) == 3
    assert viewer.call_tool("find_records", model="shop.memo").is_error


def test_the_page_says_why_a_model_is_not_there(make_user):
    root = make_user("root", is_staff=True, is_superuser=True)
    make_user("viewer")
    browser = WebClient()
    browser.force_login(root, backend="tests.sites.restricted.ObjectPermissionBackend")

    page = browser.post(
        reverse("admin:mcp_django_inspect"), {"username": "viewer", "model": "shop.memo"}
    )

    assert "may hold for some objects only" in page.content.decode()
