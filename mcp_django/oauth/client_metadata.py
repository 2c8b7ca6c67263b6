"""What clients say about themselves (RFC 7591, 2), by document or by registering: the rules."""

from __future__ import annotations

import unicodedata
from urllib.parse import urlsplit

import msgspec

from mcp_django.auth.jwt_bearer import is_safe

LARGEST_DOCUMENT = 16 * 1024
MOST_REDIRECTS, LONGEST_REDIRECT, LONGEST_NAME = 20, 500, 100


class BadMetadata(Exception):
    """A rule that the metadata break. `code` is one of RFC 7591, 3.2.2."""

    def __init__(self, description: str, *, code: str = "invalid_client_metadata") -> None:
        super().__init__(description)
        self.code = code


class ClientMetadata(msgspec.Struct, kw_only=True):
    """The members that mean something here. Clients send many others."""

    redirect_uris: tuple[str, ...]
    client_id: str = ""
    client_name: str = ""
    grant_types: tuple[str, ...] = ("authorization_code",)
    response_types: tuple[str, ...] = ("code",)
    token_endpoint_auth_method: str = "client_secret_basic"  # noqa: S105  no secret
    token_endpoint_auth_methods_supported: tuple[str, ...] = ()


def read_metadata(body: bytes) -> ClientMetadata:
    """Return metadata that keep the rules, without what is not used. Raises BadMetadata.

    RFC 7591, 3.2.1 lets a server replace what a client asks for: of the grants, those that a
    person consents to are left, and of the redirects, those that reach the client and nobody else.
    """
    try:
        metadata = msgspec.json.decode(body, type=ClientMetadata)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BadMetadata(f"These are no metadata of a client: {error}") from error
    if "authorization_code" not in metadata.grant_types or "code" not in metadata.response_types:
        raise BadMetadata("A person must consent: grant authorization_code, response type code.")
    if len(metadata.redirect_uris) > MOST_REDIRECTS:
        raise BadMetadata(
            f"There may be {MOST_REDIRECTS} redirect_uris.", code="invalid_redirect_uri"
        )
    metadata.redirect_uris = tuple(filter(is_safe_redirect, metadata.redirect_uris))
    if not metadata.redirect_uris:
        raise BadMetadata(
            "A redirect_uri must be an https address, or an http address on the loopback.",
            code="invalid_redirect_uri",
        )
    metadata.grant_types = ("authorization_code", "refresh_token")
    metadata.response_types = ("code",)
    metadata.client_name = clean_name(metadata.client_name)
    return metadata


def is_safe_redirect(uri: str) -> bool:
    """Return whether nobody on the way can read what is sent there (OAuth 2.1, 7.5).

    Addresses of a scheme of its own are not: any program may claim one.
    """
    is_plain = uri.isascii() and not set(uri) & set("#*\\ ") and uri.isprintable()
    if len(uri) > LONGEST_REDIRECT or not is_plain or not is_safe(uri):
        return False
    parts = urlsplit(uri)
    return bool(parts.hostname) and "@" not in parts.netloc


def clean_name(name: str) -> str:
    """Return a name that shows what it says: no control characters, no change of direction."""
    letters = unicodedata.normalize("NFKC", name)
    visible = "".join(letter for letter in letters if unicodedata.category(letter)[0] != "C")
    return " ".join(visible.split())[:LONGEST_NAME]
