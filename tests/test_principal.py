from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser, User

from mcp_django.principal import ACTION, DELETE, READ, WRITE, Principal, Restriction, satisfies
from tests.spec import requirement


@requirement("authorization:scope-hierarchy")
@pytest.mark.parametrize(
    ("granted", "needed", "enough"),
    [
        ({READ}, {READ}, True),
        ({WRITE}, {READ}, True),
        ({DELETE}, {READ}, True),
        ({ACTION}, {READ}, False),
        ({READ}, {WRITE}, False),
        ({WRITE}, {DELETE}, False),
        ({READ, ACTION}, {READ, ACTION}, True),
        (set(), {READ}, False),
        (set(), set(), True),
    ],
)
def test_scopes_imply_what_they_cannot_do_without(granted, needed, enough):
    assert satisfies(frozenset(granted), frozenset(needed)) is enough


def test_the_key_names_the_user_and_the_client_and_not_the_credential():
    def key(**attributes):
        return Principal(scopes=frozenset(), method="test", **attributes).key

    ada, bob = User(pk=1), User(pk=2)
    assert key(user=ada, credential_id="1") == key(user=ada, credential_id="2")
    assert key(user=ada) != key(user=bob)
    assert key(user=ada, client="a") != key(user=ada, client="b")
    assert key(user=ada, server="a") != key(user=ada, server="b")
    assert key(user=AnonymousUser()) != key(user=ada)


def test_a_restriction_without_models_allows_all_and_an_empty_one_none():
    assert Restriction().allows_model("shop.order")
    assert not Restriction(models=frozenset()).allows_model("shop.order")
    assert Restriction(models=frozenset({"shop.order"})).allows_model("shop.order")
