"""The endpoint as a Django view, for WSGI sites and plain `runserver`: JSON only, no streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

from django.http import HttpRequest, HttpResponseBase, UnreadablePostError
from django.views.decorators.csrf import csrf_exempt

from mcp_django.conf import get_config
from mcp_django.exposure.budget import lift_deadlines
from mcp_django.protocol.headers import Headers
from mcp_django.transports.bridge import response_of
from mcp_django.transports.endpoint import understand
from mcp_django.transports.refusals import crashed
from mcp_django.transports.requests import FURNITURE, furnish
from mcp_django.transports.serving import Service
from mcp_django.transports.strangers import stranger


def headers_of(request: HttpRequest) -> Headers:
    # HTTP/1.0 and Django's own test client send no Host; the server's name stands for it.
    host = request._get_raw_host()  # type: ignore[attr-defined]  # with nothing checked yet
    found = {"Host": host, **request.headers}
    return Headers(
        (name.encode("latin-1", "replace"), value.encode("latin-1", "replace"))
        for name, value in found.items()
    )


def read_body(request: HttpRequest, headers: Headers) -> bytes | None:
    """The body, or None where it is longer than the limit."""
    limit = get_config().max_body
    declared = headers.get("content-length") or "0"
    if declared.isdecimal() and int(declared[:20]) > limit:
        return None
    try:
        # Not `request.body`: its limit is that of form data, and answers with a page.
        body = request.read(limit + 1)
    except UnreadablePostError:
        # The client has left. Nobody reads what is answered to nothing.
        return b""
    return body if len(body) <= limit else None


@csrf_exempt
def mcp_view(request: HttpRequest) -> HttpResponseBase:
    """Answer one HTTP request. The project's middleware has run already."""
    headers = headers_of(request)
    refusal = stranger(headers)
    if refusal is not None:
        return response_of(refusal)
    exchange = understand(
        request.method or "", headers, read_body(request, headers), streams=False
    )
    service = Service(exchange=exchange, request=request, cancelled=Event(), streams=False)
    try:
        with apart_from_browsers(request):
            return response_of(service.finish(service.respond()))
    except Exception:
        return response_of(crashed(exchange))
    finally:
        # The site's own views go on with these connections.
        lift_deadlines()


# LoginRequiredMiddleware (Django 5.1 and later) lets views pass that say so.
mcp_view.login_required = False  # type: ignore[attr-defined]  # Django's own marker


@contextmanager
def apart_from_browsers(request: HttpRequest) -> Iterator[None]:
    """Keep a call off the Django session of whoever's cookies came with it."""
    kept = dict(request.__dict__)
    furnish(request)
    try:
        yield
    finally:
        for name in FURNITURE:
            del request.__dict__[name]
        request.__dict__.update({name: kept[name] for name in FURNITURE if name in kept})
