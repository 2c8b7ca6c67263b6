"""What clients read before anybody signs in, over the site's URLconf."""

from __future__ import annotations

import pytest
from django.test import Client as WebClient

from mcp_django.auth import JWTBearer

pytestmark = pytest.mark.needs("jwt")

PATH = "/.well-known/oauth-protected-resource"
ISSUER = "https://login.example.com/realms/shop"
OTHER = "https://other.example.com"
DOCUMENT = {
    "resource": "https://shop.example.com/mcp",
    "resource_name": "My shop",
    "authorization_servers": [ISSUER, OTHER],
    "scopes_supported": ["mcp:read"],
    "bearer_methods_supported": ["header"],
}


@pytest.fixture
def browser():
    return WebClient()


@pytest.fixture
def use(settings):
    def configure(*issuers, **changes):
        bearers = [
            JWTBearer(issuer, jwks_url=f"{issuer}/certs", user=len, audience="a")
            for issuer in issuers
        ]
        settings.MCP_DJANGO = {
            "NAME": "My shop",
            "PUBLIC_URL": "https://shop.example.com",
            "AUTHENTICATORS": ["mcp_django.auth.PersonalTokens", *bearers],
            **changes,
        }

    return configure


@pytest.mark.parametrize("path", [PATH, f"{PATH}/", f"{PATH}/mcp", f"{PATH}/mcp/"])
@pytest.mark.parametrize("host", ["testserver", "evil.example.com"])
def test_clients_of_each_revision_find_the_metadata_where_they_look_whatever_the_host(
    use, browser, settings, path, host
):
    settings.ALLOWED_HOSTS = ["*"]
    # Each issuer is named once.
    use(ISSUER, OTHER, ISSUER)

    answer = browser.get(path, headers={"host": host})

    assert answer.json() == DOCUMENT
    assert answer.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("verb", "path", "issuers", "changes", "status"),
    [
        *(
            ("get", path, [ISSUER], {}, 404)
            for path in ["/mcp/internal", "/other", "//mcp", "/mcp//", "/MCP", "/mcp/..", "mcp"]
        ),
        ("get", "/mcp%00", [ISSUER], {}, 404),
        # A site that takes no tokens of others, and one without a public address.
        ("get", "/mcp", [], {}, 404),
        ("get", "/mcp", [ISSUER], {"PUBLIC_URL": ""}, 404),
        *((verb, "/mcp", [ISSUER], {}, 405) for verb in ("post", "put", "delete", "options")),
    ],
)
def test_nothing_else_has_metadata_and_they_are_only_read(
    use, browser, verb, path, issuers, changes, status
):
    use(*issuers, **changes)

    answer = getattr(browser, verb)(f"{PATH}{path}")

    assert answer.status_code == status
    assert answer.headers.get("Allow") == ("GET, HEAD" if status == 405 else None)
