"""Pages that a person is sent to in the middle of a call."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

from mcp_django.exposure.options import SECRET_WORDS

#: Characters. Clients show all of it to the person.
LONGEST_URL = 2048
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
#: Beside what names a secret anywhere: what opens a page for whoever has its URL.
OPENS = re.compile(r"(^|_)(jwt|session|sessionid|sid|sig|signature)(_|$)", re.IGNORECASE)
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
#: RFC 3986: no blank, no quotation mark, nothing that is not ASCII.
URL = re.compile(r"[!#-;=?-\[\]_a-z~%]+")


def checked_url(url: str) -> str:
    """The same URL. Raises ValueError for one that a client may not be given.

    2025-11-25, client/elicitation: no credentials or other secrets, no URL that is already
    authenticated, and HTTPS outside of development.
    """
    if len(url) > LONGEST_URL or URL.fullmatch(url) is None:
        raise ValueError(
            f"A URL has at most {LONGEST_URL} characters, and only those of RFC 3986."
        )
    parts = urlsplit(url)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    if not parts.hostname or not is_safe:
        raise ValueError(f"The page must be https, and have a host: {shown(url)}")
    if "@" in parts.netloc:
        raise ValueError(f"The page must not have a user in its URL: {shown(url)}")
    for text in (parts.query, parts.fragment):
        for name, _ in parse_qsl(text, keep_blank_values=True):
            if names_credential(name):
                raise ValueError(f"The URL of the page has a credential in {name[:40]!r}.")
    return url


def names_credential(name: str) -> bool:
    # apiKey and api-key are api_key.
    words = HUMP.sub("_", name).replace("-", "_")
    return bool(SECRET_WORDS.search(words) or OPENS.search(words))


def shown(url: str) -> str:
    """What errors may say of it."""
    scheme, _, rest = url.partition("://")
    return f"{scheme[:20]}://{rest.partition('/')[0].rpartition('@')[2][:80]}"
