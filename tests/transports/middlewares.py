"""What sites put into MIDDLEWARE. `seen` collects what they noticed."""

from __future__ import annotations

import threading
from typing import Any

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.exceptions import MiddlewareNotUsed, PermissionDenied
from django.db import connection
from django.http import HttpResponse, HttpResponseRedirect
from django.middleware.csrf import CsrfViewMiddleware
from django.urls import resolve
from django.utils.decorators import sync_and_async_middleware

seen: list[Any] = []
tenant = threading.local()


class OwnSessions(SessionMiddleware):
    """A site's subclass of a browser class."""


class OwnCsrf(CsrfViewMiddleware):
    pass


class OwnUsers(AuthenticationMiddleware):
    pass


def function(get_response):
    def middleware(request):
        seen.append("function in")
        response = get_response(request)
        seen.append("function out")
        return response

    return middleware


@sync_and_async_middleware
def both(get_response):
    def middleware(request):
        seen.append("both")
        return get_response(request)

    return middleware


class Plain:
    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        return self.get_response(request)


class Async:
    sync_capable = False
    async_capable = True

    def __init__(self, get_response):
        self.get_response = get_response

    async def __call__(self, request):
        seen.append("async in")
        response = await self.get_response(request)
        response["X-Async"] = "yes"
        return response

    async def process_view(self, request, view, args, kwargs):
        seen.append("async view")


class AsyncWithSyncHook(Async):
    def process_view(self, request, view, args, kwargs):
        seen.append("sync view")


class Unused(Plain):
    def __init__(self, get_response):
        raise MiddlewareNotUsed


class ViewHook(Plain):
    def process_view(self, request, view, args, kwargs):
        seen.append((view.__name__, args, kwargs, getattr(view, "csrf_exempt", False)))


class SecondViewHook(Plain):
    def process_view(self, request, view, args, kwargs):
        seen.append("second")


class ViewRefusal(Plain):
    def process_view(self, request, view, args, kwargs):
        return HttpResponse("<h1>secret page</h1>", status=403)


class Page(Plain):
    """Answers by itself."""

    status = 200

    def __call__(self, request):
        return HttpResponse("<h1>secret page</h1>", status=self.status, headers={"X-Page": "1"})


class Forbidding(Page):
    status = 403


class Maintenance(Page):
    status = 503


class Login(Plain):
    def __call__(self, request):
        return HttpResponseRedirect("/secret-login/")


class Denying(Plain):
    def __call__(self, request):
        raise PermissionDenied("secret reason")


class Raising(Plain):
    def __call__(self, request):
        raise ValueError("secret bug")


class RaisingAfterwards(Plain):
    def __call__(self, request):
        self.get_response(request)
        raise ValueError("secret bug")


class Tenant(Plain):
    """Without it no query runs."""

    def __call__(self, request):
        tenant.name = request.headers.get("X-Tenant", "")
        try:
            with connection.execute_wrapper(only_for_a_tenant):
                return self.get_response(request)
        finally:
            tenant.name = ""


def only_for_a_tenant(execute, sql, params, many, context):
    if not tenant.name:
        raise RuntimeError("no tenant")
    seen.append(tenant.name)
    return execute(sql, params, many, context)


class EagerUser(Plain):
    def __call__(self, request):
        seen.append((request.user.is_authenticated, request.user.get_username()))
        return self.get_response(request)


class ForgetfulUser(Plain):
    def __call__(self, request):
        request.user = AnonymousUser()
        return self.get_response(request)


class OtherUser(Plain):
    def __call__(self, request):
        request.user = get_user_model().objects.get(username="eve")
        return self.get_response(request)


class SessionAndMessages(Plain):
    def __call__(self, request):
        request.session["visits"] = request.session.get("visits", 0) + 1
        seen.append(request.session["visits"])
        messages.info(request, "hello")
        response = self.get_response(request)
        seen.append([str(message) for message in messages.get_messages(request)])
        return response


class Header(Plain):
    def __call__(self, request):
        response = self.get_response(request)
        response["X-Site"] = "shop"
        response["Vary"] = "Accept-Language"
        response.set_cookie("tracking", "1")
        return response


class Resolving(Plain):
    def __call__(self, request):
        match = resolve(request.path_info)
        seen.append((match.view_name, request.resolver_match.view_name))
        return self.get_response(request)


class Gatekeeper(Plain):
    """Closed while `seen` says so."""

    def __call__(self, request):
        return HttpResponse(status=403) if "closed" in seen else self.get_response(request)
