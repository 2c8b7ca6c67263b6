"""What a site has to do, as `manage.py mcp_oauth` and the system check say it."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command

from mcp_django.oauth.setup import missing_steps

pytestmark = [pytest.mark.needs("oauth"), pytest.mark.django_db]


NOTHING = "Nothing is missing. Assistants connect to http://testserver/mcp\n"
TOKENS_ONLY = {
    "PUBLIC_URL": "http://testserver",
    "AUTHENTICATORS": ["mcp_django.auth.PersonalTokens"],
}


@pytest.mark.parametrize(
    ("changes", "step"),
    [
        ({}, NOTHING),
        # People may sign in elsewhere.
        (
            {"ROOT_URLCONF": "mcp_django.oauth.urls", "LOGIN_URL": "https://sso.example.com/"},
            NOTHING,
        ),
        # The other settings of the toolkit are those of the site.
        (
            {"OAUTH2_PROVIDER": {"ACCESS_TOKEN_EXPIRE_SECONDS": 60, "SCOPES": {"read": "Read"}}},
            NOTHING,
        ),
        (
            {"MCP_DJANGO": {"NAME": "Shop"}},
            'MCP_DJANGO = {..., "PUBLIC_URL": "https://shop.example.com"}',
        ),
        (
            {"ROOT_URLCONF": "tests.oauth.urls_elsewhere"},
            'path("", include("mcp_django.oauth.urls"))',
        ),
        ({"ROOT_URLCONF": "mcp_django.oauth.urls"}, "There is no page at LOGIN_URL"),
        (
            {"MCP_DJANGO": TOKENS_ONLY},
            '"AUTHENTICATORS": [..., "mcp_django.oauth.bearer.OAuthBearer"]',
        ),
    ],
)
def test_a_step_that_is_missing_is_shown_as_text_to_paste(settings, changes, step):
    for name, value in changes.items():
        setattr(settings, name, value)

    call_command("mcp_oauth", stdout=(out := StringIO()))

    assert step in out.getvalue()
    if step == NOTHING:
        assert (out.getvalue(), [*missing_steps()]) == (NOTHING, [])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("PKCE_REQUIRED", False),
        ("REQUEST_APPROVAL_PROMPT", "auto"),
        ("ALLOW_URI_WILDCARDS", True),
        ("REFRESH_TOKEN_REUSE_PROTECTION", False),
        ("REFRESH_TOKEN_GRACE_PERIOD_SECONDS", 60),
        ("COMPLIANT_BCP_RFC9700_TOKEN_STORAGE", False),
        ("OAUTH2_VALIDATOR_CLASS", "oauth2_provider.oauth2_validators.OAuth2Validator"),
        ("SCOPES_BACKEND_CLASS", "oauth2_provider.scopes.SettingsScopes"),
        ("CIMD_METADATA_FETCHER", "oauth2_provider.cimd.SafeMetadataFetcher"),
        ("OIDC_ISS_ENDPOINT", "https://elsewhere.example"),
    ],
)
def test_a_setting_of_the_toolkit_that_opens_a_door_is_named(settings, key, value):
    settings.OAUTH2_PROVIDER = {key: value}

    (step,) = missing_steps()
    assert step.problem.startswith(f"OAUTH2_PROVIDER['{key}'] must be ")
