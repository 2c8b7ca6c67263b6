from __future__ import annotations

import base64

import pytest
from django.core.exceptions import ImproperlyConfigured

from mcp_django.auth import DRF
from mcp_django.auth import authenticate as module
from mcp_django.auth.authenticate import authenticate, challenge
from mcp_django.exceptions import AuthenticationFailed as Refused
from mcp_django.exceptions import NotAuthenticated

SAME = r"^The credential is not valid\.$"
BASIC = "rest_framework.authentication.BasicAuthentication"
SITES = "tests.auth.drf_classes"

pytestmark = pytest.mark.needs("drf")


@pytest.fixture
def use(settings):
    def configure(path, **options):
        settings.MCP_DJANGO = {"AUTHENTICATORS": [DRF(path, **options)]}

    return configure


def basic(username, password):
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


@pytest.mark.django_db
@pytest.mark.parametrize("scopes", [{"mcp:read"}, {"mcp:read", "mcp:write"}])
def test_the_sites_own_credentials_are_good_for_what_the_site_says_or_for_reading(
    use, alice, present, scopes
):
    use(BASIC, **({} if scopes == {"mcp:read"} else {"scopes": scopes}))

    principal = authenticate(present(basic("alice", "correct horse")))

    assert (principal.user, principal.scopes) == (alice, scopes)
    assert (principal.method, principal.client) == ("drf", "drf:BasicAuthentication")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "credential"),
    [
        (BASIC, basic("alice", "wrong")),
        (BASIC, basic("nobody", "wrong")),
        *((f"{SITES}.Keys", f"Key {word}") for word in ("bad", "forbidden", "anonymous")),
    ],
)
def test_every_refusal_of_the_class_is_ours_and_a_failure_of_its_own_is_none(
    use, alice, present, path, credential
):
    use(path)

    with pytest.raises(Refused, match=SAME):
        authenticate(present(credential))
    with pytest.raises(NotAuthenticated):
        authenticate(present())
    use(f"{SITES}.Keys")
    with pytest.raises(Exception, match=r"^Our database is down\.$"):
        authenticate(present("Key broken"))


@pytest.mark.django_db
@pytest.mark.parametrize("header_only", [True, False])
def test_its_answer_is_remembered_only_where_the_header_decides(
    use, alice, present, clock, header_only
):
    use(BASIC, header_only=header_only)

    authenticate(present(basic("alice", "correct horse")))

    assert len(module.cache) == header_only


def test_its_challenge_is_the_classs_own(use):
    use(BASIC)
    assert challenge(NotAuthenticated()) == ['Basic realm="api"']
    assert challenge(Refused()) == ['Basic realm="api"']

    use(f"{SITES}.Keys")
    assert challenge(NotAuthenticated()) == ["Bearer"]


@pytest.mark.parametrize(
    ("path", "options", "sentence"),
    [
        ("oauth2_provider.contrib.rest_framework.OAuth2Authentication", {}, "OAuthBearer"),
        ("rest_framework.authentication.SessionAuthentication", {}, "cookies"),
        (f"{SITES}.CookieAuthentication", {}, "cookies"),
        ("rest_framework.authentication.Nothing", {}, "cannot be imported"),
        (BASIC, {"scopes": {"mcp:all"}}, "unknown scope 'mcp:all'"),
    ],
)
def test_what_must_not_be_used_is_refused_by_name(use, present, path, options, sentence):
    use(path, **options)

    with pytest.raises(ImproperlyConfigured, match=sentence):
        authenticate(present())
