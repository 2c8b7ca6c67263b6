"""What a stream will be, worked out in the hop that was asked for it."""

from __future__ import annotations

import time
from dataclasses import replace

from mcp_django.principal import Principal
from mcp_django.protocol.errors import INVALID_REQUEST, ProtocolError
from mcp_django.protocol.notifications import acknowledged, with_subscription
from mcp_django.protocol.render import notification
from mcp_django.protocol.results import ListenResult
from mcp_django.protocol.revisions import Revision
from mcp_django.protocol.sse import parse_event_id
from mcp_django.stores.chosen import get_store
from mcp_django.stores.interface import Session, Store
from mcp_django.subscriptions.events import LISTS
from mcp_django.subscriptions.topics import Uris, by_topic
from mcp_django.transports.exchanges import Call, Opening
from mcp_django.transports.log_keys import may_read

LISTEN = "listen"
STANDALONE = "standalone"
RESUMED = "resumed"
HTTP_SSE = "http_sse"


def open_listening(
    principal: Principal, call: Call, result: ListenResult, ending: bytes
) -> Opening:
    """The stream of a subscription. `ending` is the answer, which comes last."""
    revision = call.envelope.revision
    hello = with_subscription(acknowledged(result.honoured), result.subscription)
    return Opening(
        kind=LISTEN,
        principal=principal,
        revision=revision,
        client=str(call.envelope.client.get("name", ""))[:200],
        lists=result.wishes.lists,
        uris=by_topic(result.wishes.uris),
        request_id=result.subscription,
        first=(notification(hello, revision),),
        last=(ending,),
    )


def open_standalone(session: Session, principal: Principal, last_event_id: str | None) -> Opening:
    """The stream of a session for what belongs to no request, or one that goes on with a call's.

    Raises ProtocolError: status 400 for an id that is malformed, 404 for one of another session.
    """
    opening = Opening(
        kind=STANDALONE,
        principal=principal,
        # Before the subscriptions are read.
        at=time.monotonic(),
        revision=Revision(session.revision),
        client=str(session.client.get("name", ""))[:200],
        # A legacy client hears of every list, and of what it subscribed to.
        lists=LISTS,
        uris=subscribed_by(session.key, store=get_store()),
        session=session.key,
    )
    if last_event_id is None:
        return opening
    stream, number = parse_event_id(last_event_id)
    if stream == standalone_name(session.key):
        return replace(opening, after=number)
    page = get_store().read(stream, session=session.key, after=number)
    if page is None or not may_read(stream, principal):
        raise ProtocolError(INVALID_REQUEST, "There is nothing to resume.", status=404)
    return replace(opening, kind=RESUMED, log=stream, after=number)


def subscribed_by(session: str, *, store: Store) -> Uris:
    return by_topic(sorted(store.subscriptions(session)))


def standalone_name(session: str) -> str:
    """A session has one such stream, so that a client may come back to it in any process."""
    return f"s-{session[:32]}"
