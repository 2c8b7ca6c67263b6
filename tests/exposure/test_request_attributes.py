"""What code of the site gets to know about the user of a token that is held to some models."""

from __future__ import annotations

import pickle

import pytest
from asgiref.sync import async_to_sync
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType

from mcp_django.principal import Principal, Restriction
from mcp_django.transports.requests import own_copy
from tests.shop.models import Customer, Order

pytestmark = pytest.mark.django_db


def limited(user, *models):
    principal = Principal(
        user=user,
        scopes=frozenset(),
        method="test",
        restriction=Restriction(models=frozenset(models)),
    )
    return own_copy(principal).user


@pytest.fixture
def root(make_user):
    return make_user("root", is_staff=True, is_superuser=True)


@pytest.fixture
def clerk(make_user):
    return make_user("clerk", "view_order", "change_order", "view_customer", is_staff=True)


#: A question, and what a user may do that is limited to orders.
ANSWERS = [
    ("has_perm", "shop.view_order", True),
    ("has_perm", "shop.delete_order", False),
    ("has_perm", "shop.view_customer", False),
    ("has_perms", ["shop.view_order", "shop.change_order"], True),
    ("has_perms", ["shop.view_order", "shop.view_customer"], False),
    ("has_module_perms", "shop", True),
    ("has_module_perms", "auth", False),
    ("get_all_permissions", None, {"shop.view_order", "shop.change_order"}),
    ("get_user_permissions", None, {"shop.view_order", "shop.change_order"}),
    ("get_group_permissions", None, set()),
]


@pytest.mark.parametrize(("question", "about", "answer"), ANSWERS, ids=range(len(ANSWERS)))
def test_only_permissions_on_the_models_are_held_also_for_a_coroutine(
    clerk, question, about, answer
):
    user = limited(clerk, "shop.order")

    assert getattr(user, question)(about) == answer
    assert async_to_sync(getattr(user, f"a{question}"))(about) == answer


def test_a_permission_that_the_model_declares_is_one_on_the_model(make_user):
    user = make_user("ada", "manage_all_tokens", "inspect_as")

    assert limited(user, "mcp_django.personaltoken").has_perm("mcp_django.manage_all_tokens")
    assert not limited(user, "shop.order").has_perm("mcp_django.manage_all_tokens")


def test_a_permission_that_another_model_declares_is_none_on_the_model_in_its_name(
    make_user, monkeypatch
):
    monkeypatch.setattr(Customer._meta, "permissions", [("export_order", "Export")])
    root = make_user("root", is_superuser=True)

    assert not limited(root, "shop.order").has_perm("shop.export_order")
    assert limited(root, "shop.customer").has_perm("shop.export_order")
    assert limited(root, "shop.order").has_perm("shop.change_order")


def test_it_is_the_same_user_for_django_and_the_database(root):
    user = limited(root, "shop.order")

    LogEntry.objects.create(
        user=user, action_flag=2, content_type=ContentType.objects.get_for_model(Order)
    )

    assert isinstance(user, get_user_model())
    assert user == root
    assert hash(user) == hash(root)
    assert user.pk == root.pk
    assert LogEntry.objects.get().user == root


def test_what_is_saved_keeps_the_flag_of_a_superuser(root):
    user = limited(root, "shop.order")

    user.first_name = "Ada"
    user.save()

    row = get_user_model().objects.get(pk=root.pk)
    assert (row.first_name, row.is_superuser) == ("Ada", True)
    assert not user.is_superuser
    user.refresh_from_db()
    assert not user.is_superuser
    assert not pickle.loads(pickle.dumps(user)).has_perm("shop.view_customer")
    # That of other calls is another.
    assert root.is_superuser
    assert root.has_perm("shop.view_customer")


def test_a_user_without_permissions_gets_no_methods_for_them():
    class Visitor:
        """As a site may have it: somebody without a row."""

        pk = None

    user = limited(Visitor(), "shop.order")

    assert not hasattr(user, "has_perm")
    assert not hasattr(user, "get_all_permissions")
