"""The endpoint as a Django view, for WSGI sites and plain `runserver`: JSON only, no streams."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from threading import Event
from typing import Any

from django.core.handlers.exception import response_for_exception
from django.http import Http404, HttpRequest, HttpResponseBase, UnreadablePostError
from django.views.decorators.csrf import csrf_exempt

from mcp_django.auth.authenticate import authenticate, lacks_credential
from mcp_django.conf import get_config
from mcp_django.protocol.errors import INTERNAL_ERROR
from mcp_django.protocol.headers import Headers
from mcp_django.stores.transactions import turns
from mcp_django.transports.endpoint import (
    answer_to_browser,
    check_host_and_origin,
    cors_headers,
    evidence_revision,
    preflight,
    understand,
    unidentified,
    with_cors,
)
from mcp_django.transports.exchanges import Reply, crashed
from mcp_django.transports.middleware import (
    CALLER,
    Caller,
    advice,
    middleware_before_caller,
    response_of,
    serve_as,
)
from mcp_django.transports.requests import FURNITURE, furnish
from mcp_django.transports.serving import Service

logger = logging.getLogger("mcp_django")


def as_caller(request: HttpRequest) -> AbstractContextManager[None]:
    """Let middleware see the user behind the token, and no session of a browser."""
    request._mcp_caller = Caller(request, authenticate)  # type: ignore[attr-defined]  # for the view
    return apart_from_browsers(request)


def headers_of(request: HttpRequest) -> Headers:
    # HTTP/1.0 and Django's own test client send no Host; the server's name stands for it.
    host = request._get_raw_host()  # type: ignore[attr-defined]  # with nothing checked yet
    found = {"Host": host, **request.headers}
    return Headers(
        (name.encode("latin-1", "replace"), value.encode("latin-1", "replace"))
        for name, value in found.items()
    )


def cross_origin(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Let pages of ALLOWED_ORIGINS use a view. Goes around everything else that answers for it."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        headers = headers_of(request)
        asked = preflight(request.method or "", headers)
        try:
            response = view(request, *args, **kwargs) if asked is None else response_of(asked)
        except Http404 as error:
            # A page must be able to read that nothing is there: it looks in several places.
            response = response_for_exception(request, error)
        return add_cors(response, headers)

    return answer


def add_cors(response: HttpResponseBase, headers: Headers) -> HttpResponseBase:
    """Add what lets a page of ALLOWED_ORIGINS read the response to a request with `headers`."""
    for name, value in with_cors(tuple(response.items()), cors_headers(headers)):
        response.headers[name] = value
    return response


def read_body(request: HttpRequest, headers: Headers) -> bytes | None:
    """The body, or None where it is longer than the limit."""
    limit = get_config().max_body
    declared = headers.get("content-length") or "0"
    if declared.isdecimal() and int(declared[:20]) > limit:
        return None
    try:
        # Django takes a body in chunks for an empty one. Some servers say where it ends.
        is_chunked = headers.get("transfer-encoding") and request.META.get("wsgi.input_terminated")
        # Not `request.body`: its limit is that of form data, and answers with a page.
        body = (request.META["wsgi.input"] if is_chunked else request).read(limit + 1)
    except UnreadablePostError:
        # The client has left. Nobody reads what is answered to nothing.
        return b""
    return body if len(body) <= limit else None


@csrf_exempt
def mcp_view(request: HttpRequest) -> HttpResponseBase:
    """Answer one HTTP request. The project's middleware has run already."""
    headers = headers_of(request)
    query = request.META.get("QUERY_STRING", "").encode("latin-1", "replace")
    refusal = check_host_and_origin(headers, query) or answer_to_browser(
        request.method or "", headers
    )
    response = serve_post(request, headers) if refusal is None else response_of(refusal)
    return add_cors(response, headers)


def serve_post(request: HttpRequest, headers: Headers) -> HttpResponseBase:
    verb = request.method or ""
    if lacks_credential(headers):
        exchange = unidentified(verb, revision=evidence_revision(headers))
    else:
        exchange = understand(verb, headers, read_body(request, headers), streams=False)
    caller: Caller | None = getattr(request, "_mcp_caller", None)
    service = Service(
        exchange=exchange,
        request=request,
        cancelled=Event(),
        streams=False,
        recognize=authenticate if caller is None else caller.recognize,
    )
    try:
        # Middleware may have opened a transaction, and calls may write.
        with turns.call(), apart_from_browsers(request):
            return response_of(respond(service, caller))
    except Exception:
        return response_of(crashed(exchange))


def respond(service: Service, caller: Caller | None) -> Reply:
    principal = service.identify()
    if isinstance(principal, Reply):
        return principal
    early = middleware_before_caller(is_identified=caller is not None)
    if early:
        # They may have chosen the tenant of somebody else. Nothing is read or written there.
        logger.error("A call was refused. %s", advice(early))
        return service.refuse(
            f"This server is not set up: {CALLER} must stand in front of the site's own "
            "middleware. `manage.py check` says where.",
            status=503,
            code=INTERNAL_ERROR,
        )
    if caller is None:
        return service.wait_for(service.serve(principal))
    return serve_as(service, caller, principal)


# LoginRequiredMiddleware (Django 5.1 and later) lets views pass that say so.
mcp_view.login_required = False  # type: ignore[attr-defined]  # Django's own marker


@contextmanager
def apart_from_browsers(request: HttpRequest) -> Iterator[None]:
    """Keep a call away from the Django session that its cookies belong to."""
    kept = dict(request.__dict__)
    furnish(request)
    try:
        yield
    finally:
        for name in FURNITURE:
            del request.__dict__[name]
        request.__dict__.update({name: kept[name] for name in FURNITURE if name in kept})
