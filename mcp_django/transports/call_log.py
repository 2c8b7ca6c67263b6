"""The log of what a legacy call said on its stream, for a client that lost the connection."""

from __future__ import annotations

import secrets

import msgspec
from django.utils.crypto import constant_time_compare, salted_hmac

from mcp_django.exposure.decisions import rights_digest
from mcp_django.exposure.prompts.stored import prompt_groups
from mcp_django.principal import Principal
from mcp_django.protocol.errors import INTERNAL_ERROR, ProtocolError
from mcp_django.protocol.jsonrpc import decoder, encode_error
from mcp_django.stores.sessions import Page, Store
from mcp_django.subscriptions.topics import LOG, Topic, control_topic

# Keys of logs, each bound to what its reader may do: what a call said may wait for minutes, and
# a user who has lost a right since then, or comes with a weaker token, does not get it.

SALT = "mcp_django.transports.call_log"
#: Characters of the part that nobody can guess, and of the seal behind it.
RANDOM, SEAL = 24, 24


def new_key(principal: Principal) -> str:
    """For messages to this principal. May query the database."""
    random = secrets.token_urlsafe(18)
    return random + seal(random, principal)


def may_read(key: str, principal: Principal) -> bool:
    """Whether the principal has the rights that it had when the key was made."""
    expected = seal(key[:RANDOM], principal)
    return constant_time_compare(key[RANDOM:], expected)


def seal(random: str, principal: Principal) -> str:
    # Keyed: otherwise a client could find out by guessing what staff decided.
    rights = rights_digest(principal), prompt_groups(principal.server)
    return salted_hmac(SALT, f"{random} {rights}", algorithm="sha256").hexdigest()[:SEAL]


LOST = "The server process that ran this call is gone. Whether it was done is not known."


def log_topic(key: str) -> Topic:
    return control_topic(LOG, key)


def read_log(
    store: Store, key: str, *, session: str, after: int, id_optional: bool
) -> Page | None:
    """Return what `Store.read` does. The log ends with the answer, which is an error where the
    process that ran the call is gone.
    """
    page = store.read(key, session=session, after=after)
    if page is None or page.is_final:
        return page
    if any("method" not in msgspec.json.decode(event.data) for event in page.events):
        # From here on the store may forget it.
        store.append(key, (), is_final=True)
    elif page.is_orphaned:
        error = ProtocolError(INTERNAL_ERROR, LOST, request_id=decoder.decode(page.request))
        event = encode_error(error, id_optional=id_optional)
        store.append(key, [event], is_final=True, if_orphan=True)
    else:
        return page
    return store.read(key, session=session, after=after)
