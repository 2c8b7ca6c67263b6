"""A call inside the project's middleware: what middleware may see and change, and what not."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.core.signals import request_started
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import Resolver404, ResolverMatch, resolve
from django.utils.functional import SimpleLazyObject

from mcp_django.exceptions import Cancelled
from mcp_django.principal import Principal
from mcp_django.protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, ProtocolError
from mcp_django.transports.exchanges import JSON, HeaderList, Reply
from mcp_django.transports.middleware import Chain
from mcp_django.transports.refusals import refuse_exchange
from mcp_django.transports.serving import Service

logger = logging.getLogger("mcp_django")

#: Headers that describe a body, which is ours, or a connection, or belong to browsers.
NOT_PASSED_ON = frozenset(
    {
        "connection",
        "content-disposition",
        "content-encoding",
        "content-length",
        "content-type",
        "etag",
        "last-modified",
        "location",
        "set-cookie",
        "transfer-encoding",
    }
)


class Identity:
    """Authenticates at first touch, so that a tenant can be set before the first query."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._found: Principal | Reply | None = None

    def find(self) -> Principal | Reply:
        if self._found is None:
            self._found = self._service.identify()
        return self._found

    def user(self) -> Any:
        found = self.find()
        return found.user if isinstance(found, Principal) else AnonymousUser()


def respond_through(chain: Chain, service: Service, *, view: Callable[..., Any]) -> Reply:
    """The reply, with `service` as the innermost view of the chain. Raises Cancelled."""
    request, identity = service.request, Identity(service)
    user: Any = SimpleLazyObject(identity.user)
    request.user = user
    request.resolver_match = match_of(request)
    given_up: list[Cancelled] = []

    def innermost(request: HttpRequest) -> HttpResponseBase:
        found = identity.find()
        if isinstance(found, Reply):
            return response_of(found)
        other = request.user
        # A site's own authentication middleware may have put AnonymousUser in its place.
        if other is not user and other.is_authenticated and other.pk != found.user.pk:
            return response_of(service.refuse("Middleware identified another user.", status=403))
        try:
            return response_of(service.finish(service.serve(found)))
        except Cancelled as error:
            # Middleware would take it for a bug of the site, and log it.
            given_up.append(error)
            return HttpResponse(status=503)

    request_started.send(sender=Chain, scope=getattr(request, "scope", None))
    # Closing it sends request_finished.
    with closing(chain(request, innermost, view=view)) as response:
        if given_up:
            raise given_up[0]
        return reply_of(response, service)


def match_of(request: HttpRequest) -> ResolverMatch | None:
    try:
        return resolve(request.path_info)
    except Resolver404:
        # The endpoint is routed before Django's URLconf; some middleware asks all the same.
        return None


def response_of(reply: Reply) -> HttpResponseBase:
    """A reply as Django's response, which has one value per header."""
    response = HttpResponse(reply.body, status=reply.status, content_type=JSON)
    if not reply.body:
        del response.headers["Content-Type"]
    for name, value in reply.headers:
        given = response.headers.get(name)
        response.headers[name] = value if given is None else f"{given}, {value}"
    response._mcp_reply = reply  # type: ignore[attr-defined]  # found again in reply_of
    return response


def reply_of(response: HttpResponseBase, service: Service) -> Reply:
    """Our own reply with the headers that middleware added, or what a middleware answered."""
    own: Reply | None = getattr(response, "_mcp_reply", None)
    headers: HeaderList = tuple(
        (name, value) for name, value in response.items() if name.lower() not in NOT_PASSED_ON
    )
    if own is not None:
        return replace(own, status=response.status_code, headers=headers)
    return refusal_of(response.status_code, service, headers)


def refusal_of(status: int, service: Service, headers: HeaderList) -> Reply:
    """The page that middleware made is for people, and may tell them more than a peer may know."""
    if status >= 500:
        correlation_id = secrets.token_hex(8)
        logger.error("Middleware answered a call with status %s [%s]", status, correlation_id)
        error = ProtocolError(INTERNAL_ERROR, "Internal error", {"id": correlation_id})
    else:
        error = ProtocolError(INVALID_REQUEST, "The site's middleware refused this request.")
    error.status = status if status >= 400 else 403
    return refuse_exchange(service.exchange, error, headers=headers)
