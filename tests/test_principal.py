from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_django.models import CallRecord
from mcp_django.principal import ACTION, DELETE, READ, WRITE, Principal, Restriction, satisfies
from tests.spec import requirement


@requirement("authorization:scope-hierarchy")
@pytest.mark.parametrize(
    ("granted", "needed", "enough"),
    [
        ({READ}, {READ}, True), ({WRITE}, {READ}, True), ({DELETE}, {READ}, True),
        ({ACTION}, {READ}, False), ({READ}, {WRITE}, False), ({WRITE}, {DELETE}, False),
        ({READ, ACTION}, {READ, ACTION}, True), (set(), {READ}, False), (set(), set(), True),
    ],
)  # fmt: skip
def test_scopes_imply_what_they_cannot_do_without(granted, needed, enough):
    assert satisfies(frozenset(granted), frozenset(needed)) is enough


#: Texts that would run into each other if they were only joined.
parts = st.text("a/:%25F 2")


@given(*[st.tuples(parts, parts, parts)] * 2)
@example(("", "acme", "alice"), ("", "acme", "alice"))
@example(("", "acme", "alice/laptop"), ("", "acme/alice", "laptop"))
@example(("", "acme", "alice%2Flaptop"), ("", "acme", "alice/laptop"))
def test_two_principals_have_two_keys_whatever_they_are_called(one, other):
    """The keys of a site's users may be texts, and a token has any name."""
    key, other_key = (
        Principal(
            user=User(pk=user),
            client=client,
            server=server,
            scopes=frozenset(),
            method="test",
            # The credential makes no difference.
            credential_id=str(at),
        ).key
        for at, (server, user, client) in enumerate((one, other))
    )

    assert (key == other_key) is (one == other)


def test_a_restriction_without_models_allows_all_and_an_empty_one_none():
    assert Restriction().allows_model("shop.order")
    assert not Restriction(models=frozenset()).allows_model("shop.order")
    assert Restriction(models=frozenset({"shop.order"})).allows_model("shop.order")


@pytest.mark.parametrize("client", ["a" * 5000, "/" * 100, "ä" * 300, "\ud800" * 300])
def test_a_key_fits_into_its_column_and_long_names_stay_apart(client):
    def key(name):
        return Principal(user=User(pk=1), client=name, scopes=frozenset(), method="test").key

    column = CallRecord._meta.get_field("principal")
    assert len(key(client)) <= column.max_length
    assert key(client) != key(client[:-1])
    assert key(client) == key(client)
