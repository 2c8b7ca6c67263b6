"""All that this package takes from django-oauth-toolkit, and the settings that it needs there.

Nothing else imports `oauth2_provider`: what moves in one of its releases is mended here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string
from django.utils.translation import gettext_lazy as _
from oauth2_provider import cimd, views
from oauth2_provider.exceptions import FatalClientError
from oauth2_provider.forms import AllowForm
from oauth2_provider.models import (
    get_access_token_model,
    get_application_model,
    get_grant_model,
    get_refresh_token_model,
)
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauth2_provider.scopes import SettingsScopes
from oauth2_provider.settings import oauth2_settings

from mcp_django.conf import get_config
from mcp_django.principal import ACTION, DELETE, READ, WRITE

__all__ = [
    "AllowForm",
    "FatalClientError",
    "OAuth2Validator",
    "SettingsScopes",
    "cimd",
    "get_access_token_model",
    "get_application_model",
    "get_grant_model",
    "oauth2_settings",
    "views",
]

#: The scopes of the endpoint, as people read them.
SCOPE_DESCRIPTIONS = {
    READ: _("See what you may see on this site"),
    WRITE: _("Create and change records for you"),
    DELETE: _("Delete records for you"),
    ACTION: _("Run actions of the admin and tools of this site for you"),
}

#: Settings that a site may replace by classes of its own, if they are subclasses of these.
CLASSES = {
    "OAUTH2_VALIDATOR_CLASS": "mcp_django.oauth.validators.Validator",
    "SCOPES_BACKEND_CLASS": "mcp_django.oauth.scopes.Scopes",
    "CIMD_METADATA_FETCHER": "mcp_django.oauth.client_documents.ClientDocuments",
}
#: Settings whose other values would let strangers in: RFC 9700 and MCP, authorization.
FIXED: dict[str, object] = {
    "PKCE_REQUIRED": True,
    "REQUEST_APPROVAL_PROMPT": "force",
    "ALLOW_URI_WILDCARDS": False,
    "ROTATE_REFRESH_TOKEN": True,
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    # With tokens that are stored as digests, there is none to give a second time.
    "REFRESH_TOKEN_GRACE_PERIOD_SECONDS": 0,
    "COMPLIANT_BCP_RFC9700_IMPLICIT_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PASSWORD_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PKCE_METHOD": True,
    "COMPLIANT_BCP_RFC9700_ACCESS_TOKEN_TRANSPORT": True,
    "COMPLIANT_BCP_RFC9700_AUTHZ_RESPONSE_ISS": True,
    "COMPLIANT_BCP_RFC9700_TOKEN_STORAGE": True,
}


def issuer() -> str:
    """Return the name of this authorization server, or "" while PUBLIC_URL is missing.

    It is an address without a slash at the end: RFC 8414, 2.
    """
    origin = get_config().public_url.rstrip("/")
    return f"{origin}{(settings.FORCE_SCRIPT_NAME or '').rstrip('/')}" if origin else ""


def safe_defaults() -> dict[str, object]:
    """Return the settings of the toolkit, for a site that sets none of them."""
    return {
        **FIXED,
        **CLASSES,
        "SCOPES": dict(SCOPE_DESCRIPTIONS),
        "DEFAULT_SCOPES": [READ],
        "OIDC_ISS_ENDPOINT": issuer(),
        "ACCESS_TOKEN_EXPIRE_SECONDS": 3600,
        "REFRESH_TOKEN_EXPIRE_SECONDS": 14 * 24 * 3600,
        # Programs on the own machine of a person listen at http://127.0.0.1 and
        # http://localhost (RFC 8252, 7.3). Registration takes no other http addresses.
        "ALLOWED_REDIRECT_URI_SCHEMES": ["https", "http"],
        "ALLOW_LOCALHOST_LOOPBACK": True,
        "OAUTH2_GRANT_TYPES_SUPPORTED": [
            "authorization_code",
            "refresh_token",
            "client_credentials",
        ],
        "OAUTH2_RESPONSE_TYPES_SUPPORTED": ["code"],
        # Clients that publish a document about themselves look for "none".
        "OAUTH2_TOKEN_ENDPOINT_AUTH_METHODS_SUPPORTED": [
            "none",
            "client_secret_basic",
            "client_secret_post",
        ],
        "CIMD_ENABLED": get_config().registration != "manual",
        "DCR_ENABLED": get_config().registration == "cimd+dcr",
    }


def use_safe_defaults() -> None:
    """Replace the defaults of the toolkit. What the site sets in OAUTH2_PROVIDER stays."""
    oauth2_settings.defaults = {**oauth2_settings.defaults, **safe_defaults()}
    oauth2_settings.reload()


def unsafe_settings() -> Iterator[tuple[str, str]]:
    """Yield the keys of OAUTH2_PROVIDER that open a door, and what is wrong with each."""
    chosen: Mapping[str, Any] = getattr(settings, "OAUTH2_PROVIDER", {})
    for key, value in FIXED.items():
        if key in chosen and chosen[key] != value:
            yield key, f"must be {value!r}"
    for key, path in CLASSES.items():
        if key in chosen and not issubclass(getattr(oauth2_settings, key), import_string(path)):
            yield key, f"must be a subclass of {path}"
    if chosen.get("OIDC_ISS_ENDPOINT", issuer()) != issuer():
        yield "OIDC_ISS_ENDPOINT", f"must be {issuer()!r}"


def keep_codes_out_of_logs() -> None:
    """Drop what the libraries say at DEBUG: codes, verifiers and refresh tokens stand there."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in {"oauthlib", "oauth2_provider"}:
            logging.getLogger(name).addFilter(is_above_debug)


def is_above_debug(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG


def delete_tokens(user: Any, application: Any, resource: str) -> None:
    """Delete the codes and tokens of a client for a user and the endpoint."""
    models = get_grant_model(), get_access_token_model(), get_refresh_token_model()
    for model in models:
        rows = model._default_manager.filter(user=user, application=application)
        # Read here: databases differ in how they compare JSON.
        theirs = [row.pk for row in rows if row.resource == [resource]]
        model._default_manager.filter(pk__in=theirs).delete()


def may_ask(application: Any) -> bool:
    """Return whether clients of this kind may ask people to sign in, as REGISTRATION says."""
    by_source = {
        application.RegistrationSource.CIMD: oauth2_settings.CIMD_ENABLED,
        application.RegistrationSource.DCR: oauth2_settings.DCR_ENABLED,
    }
    return bool(by_source.get(application.registration_source, True))


def is_self_registered(application: Any) -> bool:
    """Return whether a program has told about itself, and nobody of the site has checked it."""
    return bool(application.registration_source != application.RegistrationSource.MANUAL)
