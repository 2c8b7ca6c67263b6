from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured
from django.test import RequestFactory

from mcp_django.auth import Anonymous, DevUser
from mcp_django.auth.authenticate import NamedUser, authenticate, challenge
from mcp_django.exceptions import AuthenticationFailed, NotAuthenticated
from mcp_django.principal import SCOPES


@pytest.fixture
def anonymous(settings):
    settings.MCP_DJANGO = {"AUTHENTICATORS": ["mcp_django.auth.PersonalTokens", Anonymous()]}


@pytest.fixture
def dev(settings):
    settings.DEBUG = True
    settings.MCP_DJANGO = {"AUTHENTICATORS": [DevUser("alice")]}


LOCAL = {"REMOTE_ADDR": "127.0.0.1", "HTTP_HOST": "localhost:8000"}


def test_anybody_may_read_where_the_site_says_so(anonymous, present):
    principal = authenticate(present())

    assert principal.user.is_anonymous
    assert principal.scopes == {"mcp:read"}
    assert principal.method == "anonymous"


@pytest.mark.django_db
@pytest.mark.parametrize("header", ["Bearer mcp_wrong", "Bearer other", ""])
def test_nobody_with_a_wrong_credential_becomes_anonymous(anonymous, present, header):
    with pytest.raises(AuthenticationFailed):
        authenticate(present(header))


HERE = None
#: What differs of a request at this machine, and who refuses it.
PLACES = [
    ({}, HERE),
    *(({"REMOTE_ADDR": address}, HERE) for address in ("::1", "::ffff:127.0.0.1")),
    *(({"HTTP_HOST": host}, HERE) for host in ("127.0.0.1:8000", "[::1]:8000", "LOCALHOST")),
    *(
        ({"REMOTE_ADDR": address}, NotAuthenticated)
        for address in ("192.0.2.7", "::ffff:192.0.2.7", "")
    ),
    *(
        ({"HTTP_HOST": host}, NotAuthenticated)
        for host in ("evil.example", "localhost.evil.example", "")
    ),
    ({"HTTP_X_FORWARDED_FOR": "192.0.2.7"}, NotAuthenticated),
    ({"HTTP_FORWARDED": "for=192.0.2.7"}, NotAuthenticated),
    ({"HTTP_VIA": "1.1 tunnel"}, NotAuthenticated),
    ({"HTTP_AUTHORIZATION": "Bearer x"}, AuthenticationFailed),
    # In production.
    ({"DEBUG": False}, NotAuthenticated),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("facts", "refusal"), PLACES, ids=str)
def test_the_developer_needs_no_credential_at_this_machine_and_nobody_else_is_one(
    settings, dev, alice, present, facts, refusal
):
    settings.DEBUG = facts.get("DEBUG", True)
    request = present(**{**LOCAL, **facts})

    if refusal is not HERE:
        with pytest.raises(refusal):
            authenticate(request)
    else:
        principal = authenticate(request)
        assert (principal.user, principal.method) == (alice, "dev_user")
        assert principal.scopes == set(SCOPES)


@pytest.mark.django_db
@pytest.mark.parametrize("is_there", [True, False])
def test_a_developer_who_may_not_act_is_named_in_the_refusal(dev, alice, present, is_there):
    alice.is_active = False
    alice.save() if is_there else alice.delete()

    with pytest.raises(AuthenticationFailed, match="no active user 'alice'"):
        authenticate(present(**LOCAL))


@pytest.mark.django_db
def test_the_developers_scopes_may_be_narrowed_to_some_that_exist_and_no_credential_is_asked_for(
    settings, dev, alice, present
):
    settings.MCP_DJANGO = {"AUTHENTICATORS": [DevUser("alice", scopes=["mcp:read"])]}

    assert authenticate(present(**LOCAL)).scopes == {"mcp:read"}
    assert challenge(NotAuthenticated()) == ["Bearer"]
    settings.MCP_DJANGO = {"AUTHENTICATORS": [DevUser("alice", scopes="mcp:reed")]}
    with pytest.raises(ImproperlyConfigured, match="unknown scope 'mcp:reed'"):
        authenticate(present())


# The user of a process that a person started


REQUEST = RequestFactory().post("/mcp")


@pytest.mark.django_db
def test_the_user_acts_with_every_scope_or_with_those_that_are_named(staff):
    everything = NamedUser("staff").authenticate(REQUEST)
    reading = NamedUser("staff", scopes=["mcp:read"]).authenticate(REQUEST)

    assert everything.scopes == set(SCOPES)
    assert reading.scopes == {"mcp:read"}
    assert (everything.user, everything.method, everything.client) == (staff, "stdio", "stdio")


@pytest.mark.django_db
def test_the_user_is_read_once_a_second_and_not_for_each_call(
    staff, django_assert_num_queries, clock
):
    with pytest.raises(AuthenticationFailed):
        NamedUser("nobody").authenticate(REQUEST)
    named = NamedUser("staff")
    named._cache.clock = clock
    named.authenticate(REQUEST)

    with django_assert_num_queries(0):
        named.authenticate(REQUEST)
    get_user_model().objects.filter(pk=staff.pk).update(is_active=False)
    clock.now += 1

    with pytest.raises(AuthenticationFailed):
        named.authenticate(REQUEST)
