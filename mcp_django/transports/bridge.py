"""A call inside the project's middleware: what middleware may see and change, and what not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import Resolver404, resolve
from django.utils.functional import SimpleLazyObject

from mcp_django.principal import Principal
from mcp_django.protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, ProtocolError
from mcp_django.transports.endpoint import HeaderList, Reply
from mcp_django.transports.middleware import Chain
from mcp_django.transports.serving import Service, finish_here, refuse_exchange

#: Headers that describe a body, which is ours, or belong to browsers.
NOT_PASSED_ON = frozenset({"content-type", "content-length", "set-cookie", "location"})


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
    """The reply, with `service` as the innermost view of the chain."""
    request, identity = service.request, Identity(service)
    user: Any = SimpleLazyObject(identity.user)
    request.user = user
    try:
        request.resolver_match = resolve(request.path_info)
    except Resolver404:
        # The endpoint is routed before Django's URLconf; some middleware asks all the same.
        request.resolver_match = None

    def innermost(request: HttpRequest) -> HttpResponseBase:
        found = identity.find()
        if isinstance(found, Reply):
            return response_of(found)
        other = request.user
        if other is not user and other.is_authenticated and other.pk != found.user.pk:
            return response_of(service.refuse("Middleware identified another user.", status=403))
        # A site's own authentication middleware may have put AnonymousUser in its place.
        return response_of(finish_here(service.serve(found)))

    response = chain(request, innermost, view=view)
    try:
        return reply_of(response, service)
    finally:
        response.close()


def response_of(reply: Reply) -> HttpResponseBase:
    response = HttpResponse(reply.body, status=reply.status, content_type="application/json")
    for name, value in reply.headers:
        response.headers[name] = value
    response._mcp_reply = reply  # type: ignore[attr-defined]  # found again in reply_of
    return response


def reply_of(response: HttpResponseBase, service: Service) -> Reply:
    """Our own reply with the headers that middleware added, or what a middleware answered."""
    own: Reply | None = getattr(response, "_mcp_reply", None)
    headers: HeaderList = tuple(
        (name, value) for name, value in response.items() if name.lower() not in NOT_PASSED_ON
    )
    if own is not None:
        return Reply(
            status=response.status_code, parts=own.parts, is_batch=own.is_batch, headers=headers
        )
    # The page that middleware made is for people and may tell them more than a peer may know.
    status = response.status_code if response.status_code >= 400 else 403
    code, sentence = INVALID_REQUEST, "The site's middleware refused this request."
    if status >= 500:
        code, sentence = INTERNAL_ERROR, "Internal error"
    error = ProtocolError(code, sentence, status=status)
    return refuse_exchange(service.exchange, error, headers=headers)
