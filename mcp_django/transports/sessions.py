"""Sessions of the legacy era, as the hop of a call finds and makes them."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any, TypeVar

import msgspec
from django.utils import timezone

from mcp_django.conf import get_config
from mcp_django.principal import Principal
from mcp_django.protocol.errors import INVALID_REQUEST, ProtocolError
from mcp_django.protocol.jsonrpc import Notification, RequestId, Response, encoder, is_id
from mcp_django.protocol.negotiation import check_batches, negotiate
from mcp_django.protocol.revisions import Revision
from mcp_django.signing import digest_of
from mcp_django.stores.last_used import note_use
from mcp_django.stores.sessions import SEEN_EVERY, Session, Store, get_store
from mcp_django.stores.transactions import session_database, turns
from mcp_django.subscriptions.outbox import publish
from mcp_django.subscriptions.topics import ANSWER, CANCEL, SESSION, Change, Topic, control_topic
from mcp_django.transports.exchanges import Call, Exchange
from mcp_django.transports.threads import Lane, lanes

# The store, asked from the event loop.

logger = logging.getLogger("mcp_django.streams")

T = TypeVar("T")


async def in_store(job: Callable[[Store], T]) -> T:
    """What the store answers. Raises what it raises."""
    return await lanes[Lane.STORE].start(
        lambda: job(get_store()),
        seconds=get_config().tool_timeout,
        cancelled=Event(),
        is_owed=True,
    )


async def try_store(job: Callable[[Store], object]) -> None:
    """Tell the store something that others can do without."""
    try:
        await in_store(job)
    except Exception:
        logger.exception("The store of sessions cannot be reached.")


HEADER = "Mcp-Session-Id"
#: Characters of an id. Ours have 43.
LONGEST_ID = 128
#: Bytes of an answer of the client.
LONGEST_ANSWER = 256 * 1024
#: Of log messages for a client that never said which it wants. 2025-11-25, server/utilities/
#: logging: "the server MAY decide which messages to send automatically".
LOG_LEVEL = "info"
#: Notifications by which a client takes a request back, and the member that names it. Editors
#: send the second, which the protocol does not know.
CANCELLATIONS = {"notifications/cancelled": "requestId", "$/cancelRequest": "id"}


def new_id() -> str:
    return secrets.token_urlsafe(32)


def key_of(session_id: str) -> str:
    """Stores never learn an id: who can read them cannot go on with a session."""
    return digest_of(session_id)


def not_found() -> ProtocolError:
    """Unknown, ended, idle for too long, somebody else's: all alike."""
    return ProtocolError(INVALID_REQUEST, "Session not found.", status=404)


def find_session(session_id: str, principal: Principal, *, transport: str) -> Session:
    """The session of this principal. Raises ProtocolError with status 404."""
    if not 0 < len(session_id) <= LONGEST_ID:
        raise not_found()
    store, key = get_store(), key_of(session_id)
    session = store.session(key)
    if session is None or session.principal != principal.key or session.transport != transport:
        raise not_found()
    return session


def note_session_use(session: Session) -> None:
    """Have it noted that the session was used, at most once a minute. Waits for nobody."""
    if timezone.now() - session.seen >= SEEN_EVERY:
        note_use(("session", session.key), partial(see, session.key))


def see(key: str) -> None:
    using = session_database()
    with nullcontext() if using is None else turns.alone(using):
        get_store().see(key)


def new_session(principal: Principal, *, transport: str, session_id: str) -> Session:
    """Before its handshake a session speaks the first revision."""
    now = timezone.now()
    return Session(
        key=key_of(session_id),
        server=principal.server,
        principal=principal.key,
        user="" if principal.user.pk is None else str(principal.user.pk),
        transport=transport,
        revision=next(iter(Revision)).value,
        created=now,
        seen=now,
    )


def agreed(params: Mapping[str, Any]) -> dict[str, Any]:
    """What a handshake says, as fields of a session. Raises ProtocolError for half of one."""
    return {
        "revision": negotiate(dict(params)).value,
        "client": short(params["clientInfo"]),
        "capabilities": short(params["capabilities"]),
    }


def agree(session: Session, params: Mapping[str, Any]) -> None:
    """Keep what the handshake says of a session that was there before it, and tell its stream."""
    get_store().update_session(session.key, **agreed(params))
    publish({Change(topic=session_topic(session.key))})


#: Bytes of what a client says of itself, in a session.
LONGEST_HELLO = 16 * 1024


def short(told: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a client says of itself, or a refusal of a flood."""
    if len(encoder.encode(told)) > LONGEST_HELLO:
        raise ProtocolError(INVALID_REQUEST, "initialize says too much.", status=400)
    return told


def end_session(key: str) -> None:
    """Forget it, and close its streams in whatever process."""
    get_store().end_session(key)
    publish({Change(topic=session_topic(key))})


def take_standalone(key: str, store: Store, *, owner: str) -> None:
    """Have a process serve the standalone stream of a session. That of another process ends."""
    session = store.session(key)
    if session is not None and session.standalone != owner:
        store.update_session(key, standalone=owner)
        if session.standalone:
            publish({Change(topic=session_topic(key))})


def session_topic(key: str) -> Topic:
    return control_topic(SESSION, key)


def cancel_topic(session: str, request_id: RequestId) -> Topic:
    """The ids 1 and "1" have different topics."""
    return control_topic(CANCEL, session, encoder.encode(request_id).decode())


def work_topic(session: str) -> Topic:
    """All calls of a session."""
    return control_topic(CANCEL, session)


def answer_topic(question: str) -> Topic:
    return control_topic(ANSWER, question)


def as_agreed(exchange: Exchange, session: Session) -> Exchange:
    """The exchange in the revision of its session, by the client of its session.

    Raises ProtocolError for a batch where that revision has none.
    """
    revision = Revision(session.revision)
    if exchange.is_batch:
        check_batches(revision)
    facts: dict[str, Any] = {
        "revision": revision,
        "client": session.client,
        "capabilities": session.capabilities,
        "log_level": session.log_level or LOG_LEVEL,
    }
    calls = tuple(
        replace(call, envelope=replace(call.envelope, **facts)) if isinstance(call, Call) else call
        for call in exchange.calls
    )
    return replace(exchange, calls=calls, revision=revision)


def apply_notifications(session: Session, notices: tuple[Notification | Response, ...]) -> None:
    """Do what notifications and answers of the client are for. What makes no sense is ignored."""
    for notice in notices:
        if isinstance(notice, Response):
            apply_answer(session, notice)
        elif notice.method == "notifications/initialized":
            get_store().update_session(session.key, is_initialized=True)
            publish({Change(topic=session_topic(session.key))})
        elif member := CANCELLATIONS.get(notice.method):
            request_id = notice.params.get(member)
            if request_id is not None and is_id(request_id):
                publish({Change(topic=cancel_topic(session.key, request_id))})


def apply_answer(session: Session, answer: Response) -> None:
    if not isinstance(answer.id, str):
        return
    said = {"result": answer.result} if answer.error is None else {"error": answer.error}
    data = encoder.encode(said)
    if len(data) > LONGEST_ANSWER:
        data = encoder.encode({"error": {"code": INVALID_REQUEST, "message": "Too long."}})
    if get_store().answer(session.key, answer.id, data):
        publish({Change(topic=answer_topic(answer.id))})


def read_answer(data: bytes) -> dict[str, Any]:
    """`result` or `error`, as the client sent it."""
    return msgspec.json.decode(data, type=dict[str, Any])
