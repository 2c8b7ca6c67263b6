"""What sites put into MIDDLEWARE. `seen` collects what they noticed."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.exceptions import MiddlewareNotUsed, PermissionDenied
from django.db import connection, transaction
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.middleware.csrf import CsrfViewMiddleware
from django.urls import resolve, reverse, set_urlconf
from django.utils.decorators import sync_and_async_middleware
from django.utils.functional import SimpleLazyObject

seen: list[Any] = []
tenant = threading.local()
owner: ContextVar[str] = ContextVar("owner", default="")


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


def in_transaction(get_response):
    """As the middleware of django-reversion, and many of sites' own."""

    def middleware(request):
        with transaction.atomic():
            return get_response(request)

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


class ViewRefusal(Plain):
    def process_view(self, request, view, args, kwargs):
        return HttpResponse("<h1>secret page</h1>", status=403)


class Closing(Plain):
    """Answers with a page of its own once everything is done."""

    def __call__(self, request):
        self.get_response(request)
        return HttpResponse("closed", status=403)


def answering(answer):
    """Middleware that answers by itself, or raises."""
    return lambda get_response: lambda request: answer()


def page(status):
    return HttpResponse("<h1>secret page</h1>", status=status, headers={"X-Page": "1"})


def fail(error):
    raise error


Page = answering(lambda: page(200))
Forbidding = answering(lambda: page(403))
Maintenance = answering(lambda: page(503))
Login = answering(lambda: HttpResponseRedirect("/secret-login/"))
Missing = answering(lambda: fail(Http404()))
Denying = answering(lambda: fail(PermissionDenied("secret reason")))
Raising = answering(lambda: fail(ValueError("secret bug")))


class ViewRaising(Plain):
    def process_view(self, request, view, args, kwargs):
        raise ValueError("secret bug")


class Replacing(Plain):
    """Answers in place of whatever answered."""

    def __call__(self, request):
        return HttpResponse(status=max(self.get_response(request).status_code, 404))


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


class UserTenant(Plain):
    """Chooses the tenant of the user, and one of its own for nobody."""

    def __call__(self, request):
        chosen = owner.set(request.user.get_username() or "nobody")
        try:
            return self.get_response(request)
        finally:
            owner.reset(chosen)


class EagerUser(Plain):
    def __call__(self, request):
        seen.append((request.user.is_authenticated, request.user.get_username()))
        return self.get_response(request)


def with_user(replace):
    """Middleware that replaces the user of a request."""

    def make(get_response):
        def middleware(request):
            request.user = replace(request)
            return get_response(request)

        return middleware

    return make


def verified(user):
    user.device = "phone"
    return user


ForgetfulUser = with_user(lambda request: AnonymousUser())
LazilyForgetfulUser = with_user(lambda request: SimpleLazyObject(AnonymousUser))
#: Puts the same user behind something lazy, as django-otp does.
DeviceUser = with_user(lambda request: SimpleLazyObject(partial(verified, request.user)))
OtherUser = with_user(lambda request: get_user_model().objects.get(username="eve"))


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
        response["Set-Cookie"] = "more=1"
        return response


class Resolving(Plain):
    """Asks which view the request is for, in each of the ways that Django has."""

    def __call__(self, request):
        urlconf = getattr(request, "urlconf", None)
        matches = [
            resolve(request.path_info),
            resolve(request.path_info, urlconf),
            request.resolver_match,
        ]
        seen.append({(match.view_name, match.func.__name__) for match in matches})
        return self.get_response(request)


class Measuring(Plain):
    """As django-prometheus does, for which a request without a match is a bug."""

    def process_view(self, request, view, args, kwargs):
        match = request.resolver_match
        seen.append((match.view_name, match.url_name, match.app_names, match.route))


class Reversing(Plain):
    def __call__(self, request):
        seen.append([reverse("admin:index"), reverse("mcp_django:endpoint")])
        return self.get_response(request)


def with_urlconf(name, *, of_request=True, of_thread=True):
    """Middleware that chooses a URLconf."""

    def make(get_response):
        def middleware(request):
            if of_request:
                request.urlconf = name
            if of_thread:
                set_urlconf(name)
            return get_response(request)

        return middleware

    return make


#: For a subdomain, as django-hosts does.
Hosts = with_urlconf("tests.transports.other_urls")
#: For the request, and the rest is left to Django.
RequestHosts = with_urlconf("tests.transports.other_urls", of_thread=False)
ThreadHosts = with_urlconf("tests.transports.other_urls", of_request=False)
#: The one that has the endpoint.
OwnURLs = with_urlconf("tests.urls", of_thread=False)


class Shop(Plain):
    """Asks for a page that one subdomain has."""

    def __call__(self, request):
        seen.append((reverse("shop"), resolve("/shop/").view_name))
        return self.get_response(request)


class Gatekeeper(Plain):
    """Closed while `seen` says so."""

    def __call__(self, request):
        return HttpResponse(status=403) if "closed" in seen else self.get_response(request)
