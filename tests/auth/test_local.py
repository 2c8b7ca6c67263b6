from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from mcp_django.auth import Anonymous, DevUser
from mcp_django.auth.authenticate import authenticate, challenge
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


@pytest.mark.django_db
@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"REMOTE_ADDR": "::1"},
        {"REMOTE_ADDR": "::ffff:127.0.0.1"},
        {"HTTP_HOST": "127.0.0.1:8000"},
        {"HTTP_HOST": "[::1]:8000"},
        {"HTTP_HOST": "LOCALHOST"},
    ],
    ids=str,
)
def test_the_developer_needs_no_credential_at_this_machine(dev, alice, present, facts):
    principal = authenticate(present(**{**LOCAL, **facts}))

    assert (principal.user, principal.method) == (alice, "dev_user")
    assert principal.scopes == set(SCOPES)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "facts",
    [
        {"REMOTE_ADDR": "192.0.2.7"},
        {"REMOTE_ADDR": "::ffff:192.0.2.7"},
        {"REMOTE_ADDR": ""},
        {"HTTP_HOST": "evil.example"},
        {"HTTP_HOST": "localhost.evil.example"},
        {"HTTP_HOST": ""},
        {"HTTP_X_FORWARDED_FOR": "192.0.2.7"},
        {"HTTP_FORWARDED": "for=192.0.2.7"},
        {"HTTP_VIA": "1.1 tunnel"},
    ],
    ids=str,
)
def test_a_request_from_or_to_elsewhere_is_not_the_developers(dev, alice, present, facts):
    with pytest.raises(NotAuthenticated):
        authenticate(present(**{**LOCAL, **facts}))


@pytest.mark.django_db
def test_there_is_no_developer_in_production(settings, dev, alice, present):
    settings.DEBUG = False

    with pytest.raises(NotAuthenticated):
        authenticate(present(**LOCAL))


@pytest.mark.django_db
def test_a_wrong_credential_does_not_become_the_developer(dev, alice, present):
    with pytest.raises(AuthenticationFailed):
        authenticate(present("Bearer x", **LOCAL))


@pytest.mark.django_db
@pytest.mark.parametrize("is_there", [True, False])
def test_a_developer_who_may_not_act_is_named_in_the_refusal(dev, alice, present, is_there):
    alice.is_active = False
    alice.save() if is_there else alice.delete()

    with pytest.raises(AuthenticationFailed, match="no active user 'alice'"):
        authenticate(present(**LOCAL))


@pytest.mark.django_db
def test_the_developers_scopes_may_be_narrowed(settings, dev, alice, present):
    settings.MCP_DJANGO = {"AUTHENTICATORS": [DevUser("alice", scopes=["mcp:read"])]}

    assert authenticate(present(**LOCAL)).scopes == {"mcp:read"}


def test_a_scope_that_does_not_exist_is_named(settings, present):
    settings.MCP_DJANGO = {"AUTHENTICATORS": [DevUser("alice", scopes="mcp:reed")]}

    with pytest.raises(ImproperlyConfigured, match="unknown scope 'mcp:reed'"):
        authenticate(present())


def test_neither_asks_for_a_credential(dev):
    assert challenge(NotAuthenticated()) == ["Bearer"]
