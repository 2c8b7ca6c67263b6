"""What a legacy call said on its stream, kept for a client that lost the connection."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence

from django.utils.crypto import constant_time_compare, salted_hmac

from mcp_django.connections import TenantSchemas, entered
from mcp_django.exposure.decisions import rights_digest
from mcp_django.exposure.prompts.stored import prompt_groups
from mcp_django.principal import Principal
from mcp_django.protocol import sse
from mcp_django.protocol.revisions import Revision
from mcp_django.stores.sessions import Session, Store
from mcp_django.subscriptions.outbox import publish
from mcp_django.subscriptions.topics import LOG, Change, Topic, control_topic
from mcp_django.transports.sessions import in_store

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


logger = logging.getLogger("mcp_django.streams")


def log_topic(key: str) -> Topic:
    return control_topic(LOG, key)


class CallLog:
    """Each event is kept before it is sent. Where that fails the call goes on without."""

    def __init__(
        self,
        session: Session,
        *,
        principal: Principal,
        schemas: TenantSchemas,
        owner: str,
        request: str,
    ) -> None:
        self.key = ""
        self.session = session
        self.principal = principal
        self.schemas = schemas
        self.owner = owner
        self.request = request
        self.is_kept = True

    async def open(self) -> bytes:
        """The frame that tells a client how to come back, where its revision has one."""
        session = self.session

        def begin(store: Store) -> None:
            self.key = new_key(self.principal)
            store.open_log(self.key, session=session.key, owner=self.owner, request=self.request)

        try:
            await in_store(entered(self.schemas)(begin))
        except Exception:
            logger.exception("A stream cannot be resumed.")
            self.is_kept = False
        if self.is_kept and Revision(session.revision).features.priming_events:
            return sse.encode_priming(sse.event_id(self.key, 0))
        return b""

    async def frames(self, messages: Sequence[bytes], *, is_final: bool) -> bytes:
        """The messages as frames, which can be resumed from."""
        last = -1
        if self.is_kept:
            try:
                last = await in_store(
                    lambda store: store.append(self.key, messages, is_final=is_final)
                )
            except Exception:
                logger.exception("A stream cannot be resumed from here on.")
        # With its session a log is gone, and nobody can come back.
        self.is_kept = last >= len(messages)
        first = last - len(messages) + 1
        return b"".join(
            sse.encode_event(
                message, event_id=sse.event_id(self.key, first + index) if self.is_kept else ""
            )
            for index, message in enumerate(messages)
        )

    def tell(self) -> None:
        """Whoever reads the log instead of the stream: there is more."""
        publish({Change(topic=log_topic(self.key))})
