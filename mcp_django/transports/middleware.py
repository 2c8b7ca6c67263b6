"""The project's middleware around a call, without what only browsers need.

A class that sets a tenant or a language must run, or tools would work on the wrong rows. Django's
own browser classes must not: they would ask for sessions, CSRF tokens and cookies.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cache, partial
from typing import Any, TypeAlias

from asgiref.sync import async_to_sync
from django import urls
from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import MiddlewareNotUsed
from django.core.handlers.base import BaseHandler
from django.core.handlers.exception import convert_exception_to_response
from django.core.signals import request_started, setting_changed
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import Resolver404, ResolverMatch, URLPattern
from django.urls.resolvers import RoutePattern
from django.utils.functional import SimpleLazyObject, cached_property
from django.utils.module_loading import import_string

from mcp_django.auth.resource import endpoint_route
from mcp_django.conf import get_config
from mcp_django.exceptions import Cancelled
from mcp_django.principal import Principal
from mcp_django.protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, ProtocolError
from mcp_django.stores.transactions import is_inside, session_database
from mcp_django.transports.exchanges import HeaderList, Reply, crashed, refuse_exchange
from mcp_django.transports.serving import Service

logger = logging.getLogger("mcp_django")

Handler: TypeAlias = Callable[[HttpRequest], HttpResponseBase]

#: Modules of Django with classes that only browsers need. So are their subclasses.
BROWSER_ONLY = frozenset(
    [f"django.contrib.{name}.middleware" for name in ("auth", "messages", "sessions")]
    + [
        f"django.middleware.{name}"
        for name in ("cache", "clickjacking", "common", "csp", "csrf", "gzip", "http", "security")
    ]
)

#: Sets the user for the view. Round a call the user is set already.
CALLER = "mcp_django.middleware.CallerMiddleware"
AUTHENTICATION = "django.contrib.auth.middleware.AuthenticationMiddleware"


def chosen() -> list[str]:
    """The dotted paths that run around a call, in order. Empty: the fast path."""
    choice = get_config().run_middleware
    if choice == "none":
        return []
    if choice == "project":
        paths = list(settings.MIDDLEWARE)
    elif choice == "auto":
        paths = [path for path in settings.MIDDLEWARE if not is_for_browsers(path)]
    else:
        paths = list(choice)
    return [path for path in paths if path != CALLER]


def is_for_browsers(path: str) -> bool:
    bases = getattr(import_string(path), "__mro__", ())
    return any(base.__module__ in BROWSER_ONLY for base in bases)


def middleware_before_caller(*, is_identified: bool = True) -> list[str]:
    """What should run around a call, but does not see the caller where Django runs the view.

    That is what stands between Django's AuthenticationMiddleware and ours, or anywhere behind
    Django's while ours is missing or has not identified the caller. What stands in front of
    Django's sees no user of any request, and Django's own classes ask for none.
    """
    paths = list(settings.MIDDLEWARE)
    behind = paths
    for position, path in enumerate(paths, 1):
        middleware = import_string(path)
        if isinstance(middleware, type) and issubclass(middleware, AuthenticationMiddleware):
            behind = paths[position:]
    if is_identified and CALLER in behind:
        behind = behind[: behind.index(CALLER)]
    return [
        path
        for path in chosen()
        if (path in behind or path not in paths) and not path.startswith("django.")
    ]


def advice(early: Sequence[str]) -> str:
    """What is wrong with MIDDLEWARE, and what to do."""
    return (
        "Where the endpoint is a view, this middleware does not see who calls: "
        f"{', '.join(early)}. Put {CALLER} behind {AUTHENTICATION} and in front of the others."
    )


class Chain(BaseHandler):
    """Middleware loaded once, around any innermost function.

    `load_middleware` of Django takes all of MIDDLEWARE, and nothing runs between its layers.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._hooks: list[Handler] = []
        handler = layer("", self._view)
        for path in reversed(paths):
            middleware = import_string(path)
            is_sync = getattr(middleware, "sync_capable", True)
            try:
                loaded = middleware(self.adapt_method_mode(not is_sync, handler))
            except MiddlewareNotUsed:
                continue
            if hasattr(loaded, "process_view"):
                hook = self.adapt_method_mode(is_async=False, method=loaded.process_view)
                self._hooks.insert(0, layer(path, partial(call_hook, hook)))
            handler = layer(path, loaded if is_sync else async_to_sync(loaded))
        self._handler = handler

    @contextmanager
    def responding(self, request: Any, innermost: Handler) -> Iterator[HttpResponseBase]:
        """Give the response of `innermost`, or of a middleware that answered first."""
        request_started.send(sender=Chain, scope=getattr(request, "scope", None))
        # Closing it sends request_finished.
        with closing(self(request, innermost)) as response:
            yield response

    def __call__(self, request: Any, innermost: Handler) -> HttpResponseBase:
        """Return that response. Its end is the caller's affair."""
        request._mcp_innermost = innermost
        request._mcp_user = getattr(request, "user", None)
        request._mcp_urlconfs = (None, None)
        before, token = urls.get_urlconf(), served.set(request.path_info.removeprefix("/"))
        urls.set_urlconf(settings.ROOT_URLCONF)
        try:
            return self._handler(request)
        finally:
            urls.set_urlconf(before)
            served.reset(token)

    def _view(self, request: Any) -> HttpResponseBase:
        for hook in self._hooks:
            response: HttpResponseBase | None = hook(request)
            if response is not None:
                return response
        innermost: Handler = request._mcp_innermost
        return innermost(request)


def call_hook(hook: Callable[..., Any], request: Any) -> Any:
    return hook(request, request.resolver_match.func, (), {})


def layer(path: str, handler: Handler) -> Handler:
    """One middleware. As Django has it, what it raises becomes a response for those outside.

    In front of it URLs are set, and who calls: what the one outside has set does not hide the call
    from it. Its name is on what it answers by itself.
    """
    guarded: Any = convert_exception_to_response(handler)

    def run(request: Any) -> Any:
        keep_urls(request)
        caller: Any = request._mcp_user
        user: Any = getattr(request, "user", None)
        if user is not caller:
            # Whom middleware identified, unless that is nobody: it has looked for a session.
            request.user = request._mcp_user = SimpleLazyObject(
                lambda: user if user.is_authenticated else caller
            )
        response = guarded(request)
        if response is not None and not hasattr(response, "_mcp_made_by"):
            response._mcp_made_by = path
        return response

    return run


class Loaded:
    """The chain of this process, loaded at first need."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        #: None where nothing is left to run.
        self._chains: list[Chain | None] = []

    @property
    def is_known_to_be_empty(self) -> bool:
        """Never loads anything, so event loops may ask."""
        return self._chains == [None]

    def chain(self) -> Chain | None:
        """None where nothing is left to run: the fast path. May load it, so ask in a thread."""
        with self._lock:
            if not self._chains:
                paths = chosen()
                self._chains = [Chain(paths) if paths else None]
            return self._chains[0]


loaded = Loaded()


@receiver(setting_changed)
def forget_chain(*, setting: str, **kwargs: Any) -> None:
    if setting in ("MIDDLEWARE", "MCP_DJANGO"):
        loaded.forget()


# A call inside the project's middleware: what middleware may see and change, and what not.

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


class Caller:
    """Who calls, as the user of the request. That is found out at first touch and once: a tenant
    can be set before the first query.
    """

    def __init__(
        self, request: HttpRequest, recognize: Callable[[HttpRequest], Principal]
    ) -> None:
        self._request = request
        self._recognize = recognize
        user: Any = SimpleLazyObject(lambda: getattr(self._found, "user", AnonymousUser()))
        #: The user behind the credential, or AnonymousUser: the call itself is refused then.
        self.user = request.user = user

    @cached_property
    def _found(self) -> Principal | Exception:
        try:
            return self._recognize(self._request)
        except Exception as error:
            # The call answers for it, a bug of an authenticator included.
            return error

    def recognize(self, request: HttpRequest) -> Principal:
        """As `authenticate`."""
        if isinstance(self._found, Exception):
            raise self._found
        return self._found

    def is_replaced(self, principal: Principal) -> bool:
        """Return whether middleware takes the caller for somebody else."""
        user: Any = getattr(self._request, "user", None)
        # Not so for AnonymousUser either, whom the rest of middleware took for the caller.
        return user is not self.user and user.pk != principal.user.pk


def serve_as(service: Service, caller: Caller, principal: Principal) -> Reply:
    """The reply to a caller who is known, unless middleware takes them for somebody else."""
    if caller.is_replaced(principal):
        return service.refuse("Middleware identified another user.", status=403)
    return service.wait_for(service.serve(principal))


def respond_through(chain: Chain, service: Service) -> Reply:
    """The reply, with `service` as the innermost view of the chain. Raises Cancelled."""
    request, exchange = service.request, service.exchange
    caller = Caller(request, service.recognize)
    given_up: list[Cancelled] = []
    waiting: list[Callable[[], object]] = []
    later = partial(now_or_later, waiting)
    service = replace(service, outside_transaction=later, recognize=caller.recognize)

    def innermost(request: HttpRequest) -> HttpResponseBase:
        try:
            principal = service.identify()
            if isinstance(principal, Reply):
                return response_of(principal)
            return response_of(serve_as(service, caller, principal))
        except Cancelled as error:
            # Middleware would take it for a bug of the site, and log it.
            given_up.append(error)
            return HttpResponse(status=503)
        except Exception:
            # A bug of ours is no answer of the site's middleware.
            return response_of(crashed(exchange))

    with chain.responding(request, innermost) as response:
        if given_up:
            raise given_up[0]
        headers = tuple(
            (name, value) for name, value in response.items() if name.lower() not in NOT_PASSED_ON
        )
        own: Reply | None = getattr(response, "_mcp_reply", None)
        if own is None:
            # A middleware has answered. That begins no session.
            return refusal_of(response, service, headers)
    try:
        for work in waiting:
            work()
    except ProtocolError as error:
        return refuse_exchange(exchange, error, headers=headers)
    return replace(own, status=response.status_code, headers=headers)


def now_or_later(waiting: list[Callable[[], object]], work: Callable[[], object]) -> None:
    """What a store keeps must not roll back with a middleware's transaction."""
    if is_inside(session_database()):
        waiting.append(work)
    else:
        work()


def response_of(reply: Reply) -> HttpResponseBase:
    """A reply as Django's response, which has one value per header."""
    response = HttpResponse(reply.body, status=reply.status, content_type=reply.content_type)
    if not reply.body:
        del response.headers["Content-Type"]
    for name, value in reply.headers:
        before = response.headers.get(name)
        response.headers[name] = value if before is None else f"{before}, {value}"
    response._mcp_reply = reply  # type: ignore[attr-defined]  # no middleware made it
    return response


def refusal_of(response: Any, service: Service, headers: HeaderList) -> Reply:
    """The page that middleware made is for people, and may tell them more than a peer may know."""
    status, made_by = response.status_code, response._mcp_made_by
    if service.request.method == "OPTIONS" and 200 <= status < 300:
        # A browser asks whether a page of another origin may send the request.
        logger.debug("%s answered a preflight with status %s", made_by, status)
        return Reply(status=status, headers=headers)
    if status >= 500:
        correlation_id = secrets.token_hex(8)
        logger.error("%s answered a call with status %s [%s]", made_by, status, correlation_id)
        error = ProtocolError(INTERNAL_ERROR, "Internal error", {"id": correlation_id})
    else:
        logger.warning("%s answered a call with status %s", made_by, status)
        error = ProtocolError(INVALID_REQUEST, "The site's middleware refused this request.")
    error.status = status if status >= 400 else 403
    return refuse_exchange(service.exchange, error, headers=headers)


# The URLconf of a call: the site's own, in which the path of the endpoint resolves as well.
#
# Servers route the endpoint before Django sees a URL, so a site need not have it in its URLconf.
# Middleware asks Django all the same which view it is in front of.

#: The path of the call that is being answered, without the prefix of the site and without a slash.
served: ContextVar[str] = ContextVar("served")


def keep_urls(request: Any) -> None:
    """Set `resolver_match`, and the URLconf unless the site's own has the endpoint: it keeps
    resolving in whatever URLconf middleware chooses for the call.
    """
    before = request._mcp_urlconfs
    urlconfs = getattr(request, "urlconf", None), urls.get_urlconf()
    if urlconfs == before:
        return
    # Middleware may set either, as Django's own documentation has it.
    urlconf = urlconfs[urlconfs[0] is before[0]] or settings.ROOT_URLCONF
    both = with_endpoint(urlconf, endpoint_route())
    try:
        match = urls.resolve(request.path_info, urlconf)
    except Resolver404:
        match = None
    if match is None or match.func is not both.endpoint.callback:
        urlconf = request.urlconf = both
        match = both.endpoint.resolve(served.get())
    urls.set_urlconf(urlconf)
    request.resolver_match = match
    request._mcp_urlconfs = getattr(request, "urlconf", None), urlconf


class EndpointURL(URLPattern):
    """Matches the path of the call, whatever path a server routes to the endpoint."""

    def resolve(self, path: str) -> ResolverMatch | None:
        if path != served.get(None):
            return None
        names: list[str | None] = ["mcp_django"]
        return ResolverMatch(
            self.callback, (), {}, "endpoint", names, names, path, None, {}, extra_kwargs={}
        )


class SiteURLs:
    """A URLconf of the site, and the endpoint."""

    def __init__(self, site: Any, route: str) -> None:
        self.site = urls.get_resolver(site)
        included: Any = urls.path(route, urls.include("mcp_django.urls"))
        self.endpoint = EndpointURL(RoutePattern(route), included.url_patterns[0].callback)
        # First, since a site may send all other paths to one view. Last, so that a site that
        # includes the endpoint itself reverses to its own path.
        self.urlpatterns = [self.endpoint, *self.site.url_patterns, included]

    def __getattr__(self, name: str) -> Any:
        # The site's handlers of errors.
        return getattr(self.site.urlconf_module, name)


#: Django keeps what it resolves with for each URLconf, so there is one for each of the site's.
with_endpoint = cache(SiteURLs)
