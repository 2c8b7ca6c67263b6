"""For sites that serve the endpoint as a view. Under ASGI nothing here is needed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from django.http import HttpRequest, HttpResponseBase
from django.urls import Resolver404, resolve

from mcp_django.transports.wsgi import as_caller, mcp_view


class CallerMiddleware:
    """Sets `request.user` to the user behind the token, for requests to the endpoint alone.

    Django runs MIDDLEWARE before the view. Put this behind Django's AuthenticationMiddleware and
    in front of whatever looks at the user, such as the class that sets a tenant. The token is
    read when somebody asks for the user; where it is not valid that is AnonymousUser, and the
    view refuses the call. `request.session` is empty from here on, and is never saved.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        try:
            view = resolve(request.path_info, getattr(request, "urlconf", None)).func
        except Resolver404:
            view = None
        with as_caller(request) if view is mcp_view else nullcontext():
            return self.get_response(request)
