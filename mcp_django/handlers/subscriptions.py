"""What a client wants to hear of: resources/subscribe, subscriptions/listen, logging/setLevel."""

from __future__ import annotations

from functools import partial
from typing import Any

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import NotFound, ToolError
from mcp_django.exposure.permissions import Rights
from mcp_django.handlers.resources import refusal
from mcp_django.protocol.errors import INVALID_PARAMS, INVALID_REQUEST, ProtocolError
from mcp_django.protocol.methods import Wishes, parse_params
from mcp_django.protocol.results import EmptyResult, ListenResult
from mcp_django.stores.sessions import get_store
from mcp_django.subscriptions.admission import Verdict, admit_all, may_subscribe
from mcp_django.subscriptions.outbox import publish
from mcp_django.subscriptions.topics import PROMPTS, RESOURCES, SESSION, TOOLS, Change
from mcp_django.subscriptions.topics import control_topic as control

#: Members of `notifications` in subscriptions/listen, and the lists that they ask for.
LIST_WISHES = {
    "toolsListChanged": TOOLS,
    "promptsListChanged": PROMPTS,
    "resourcesListChanged": RESOURCES,
}
#: Characters of a URI.
LONGEST_URI = 2048


def session_of(context: CallContext) -> str:
    if not context.session:
        raise ProtocolError(
            INVALID_REQUEST, "This needs a session: send Mcp-Session-Id.", status=400
        )
    return context.session


def subscribe(context: CallContext, params: dict[str, Any]) -> EmptyResult:
    session = session_of(context)
    uri = parse_params("resources/subscribe", params).uri
    rights = Rights(context.request, context.principal)
    try:
        if len(uri) > LONGEST_URI:
            raise NotFound("There is no such resource.")
        may_subscribe(rights, uri)
    except ToolError as error:
        raise refusal(context, uri, error) from error
    most = get_config().max_subscriptions

    def add() -> None:
        if not get_store().subscribe(session, uri, most=most):
            sentence = f"A session subscribes to {most} resources at most."
            raise ProtocolError(INVALID_PARAMS, sentence)
        publish({Change(topic=control(SESSION, session))})

    context.outside_transaction(add)
    return EmptyResult()


def unsubscribe(context: CallContext, params: dict[str, Any]) -> EmptyResult:
    """Succeeds without a subscription, too, so that the answer says nothing about the URI."""
    session = session_of(context)
    uri = parse_params("resources/unsubscribe", params).uri

    def remove() -> None:
        get_store().unsubscribe(session, uri)
        publish({Change(topic=control(SESSION, session))})

    context.outside_transaction(remove)
    return EmptyResult()


def set_level(context: CallContext, params: dict[str, Any]) -> EmptyResult:
    session = session_of(context)
    level = parse_params("logging/setLevel", params).level
    context.outside_transaction(partial(get_store().update_session, session, log_level=level))
    return EmptyResult()


def listen(context: CallContext, params: dict[str, Any]) -> ListenResult:
    """What of the wishes is honoured. URIs that are not there for this caller are left out."""
    wanted: Wishes = parse_params("subscriptions/listen", params).notifications
    most = get_config().max_subscriptions
    uris = list(dict.fromkeys(wanted.resourceSubscriptions))
    if len(uris) > most:
        raise ProtocolError(INVALID_PARAMS, f"A stream subscribes to {most} resources at most.")
    rights = Rights(context.request, context.principal)
    verdicts = admit_all(rights, [uri for uri in uris if len(uri) <= LONGEST_URI])
    found = tuple(uri for uri in uris if verdicts.get(uri) is Verdict.VISIBLE)
    lists = {name: one for name, one in LIST_WISHES.items() if getattr(wanted, name)}
    honoured: dict[str, Any] = dict.fromkeys(lists, True)
    if uris:
        honoured["resourceSubscriptions"] = found
    return ListenResult(
        lists=frozenset(lists.values()),
        uris=found,
        honoured=honoured,
        subscription=context.request_id,
    )
